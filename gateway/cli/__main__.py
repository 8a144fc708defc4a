"""`python -m gateway.cli`: the command line where the entry point `rfhbridge` is not installed."""

from gateway.cli import main

main()
