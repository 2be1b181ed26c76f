"""Calls that fail, one after the other, in the short form, in make test for a third of the steps:
tests/faults/run.py has the whole.
"""
import os
import sys

from tap import ALL

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults", "run.py")
os.execv(sys.executable, [sys.executable, SCRIPT, "--short", "--turns", "1" if ALL else "3"])
