"""Loaded by every Python process that has this folder on its path: plants one mistake in it.

BARNABAS_PLANT names a module of the folder `mistakes` beside this file. Its import replaces a
decision of the real code by a wrong one. The product knows nothing about this.
"""

import importlib
import os

planted = os.environ.get("BARNABAS_PLANT")
if planted:
    importlib.import_module(f"mistakes.{planted}")
