"""Labs: each shows one mechanism on a real local cluster, and checks what happened.

`lab.py` says what a lab is, `stage.py` what it can do, `runner.py` runs one, `catalog.py` names
them all; every other file is one lab.
"""
