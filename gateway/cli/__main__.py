"""`python -m gateway.cli`: the command line without the installed entry point `rfhbridge`."""

from gateway.cli import main

main()
