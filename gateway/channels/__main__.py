"""`python -m gateway.channels`: the channel process of one target."""

import sys

from gateway.channels.process import run

if __name__ == "__main__":
    sys.exit(run())
