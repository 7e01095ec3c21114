"""Labs: each shows one mechanism on a real local cluster, and checks what happened.

`scenarios` holds one lab per file, `catalog.py` lists them. In `framework`, `lab.py` defines a lab,
`stage.py` what a scenario can do, and `runner.py` runs one.
"""
