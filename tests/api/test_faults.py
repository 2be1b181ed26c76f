"""Calls that fail, one after the other, in the short form: tests/faults/run.py has the whole."""
import os
import sys

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults", "run.py")
os.execv(sys.executable, [sys.executable, SCRIPT, "--short"])
