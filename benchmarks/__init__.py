"""How fast the gateway is, beside mosquitto on the same machine in the same run: `python -m benchmarks --help`.

A module with a NAME is a benchmark; its `run` gives a Report, and `__main__` lists them all. servers.py starts what is
measured, load/ puts load on it, trail/ makes the trail of the audit, machine.py says where and with which interpreter
the figures were measured, figures.py prints them.

What is measured in this process is compiled wherever a gateway would be: the modules of both are the same.
"""

import sys

from gateway import compiled

try:
    compiled.use()
except compiled.NotCompiled as error:
    sys.exit(f"python -m benchmarks: {error}")
