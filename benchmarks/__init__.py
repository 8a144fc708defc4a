"""How fast the gateway is, beside mosquitto on the same machine in the same run: `python -m benchmarks --help`.

A module is either one benchmark (its `run` gives a Report) or a part of the apparatus: servers.py starts what is
measured, window.py, paced.py and pair.py are the load generators, each in a process of its own, figures.py prints.
"""
