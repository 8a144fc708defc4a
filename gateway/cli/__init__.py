"""The command line: `rfhbridge`, one module for each command.

A command ends with 0 when it did what was asked, 1 when that failed, 2 when it was asked wrongly; the audit commands
end with 0 clean, 1 violations, 2 not evaluable, 3 asked wrongly. Errors are one line on standard error.
"""

import signal
import sys
from typing import Final

#: 128 + SIGINT, as shells count.
_INTERRUPTED: Final = 130
_ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """The entry point `rfhbridge`."""
    try:
        _start()
    except KeyboardInterrupt:  # before the commands are there to see to it
        sys.exit(_INTERRUPTED)
    finally:  # what came of the command stands: a second Ctrl-C while Python ends is not to make another of it
        for number in _ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _start() -> None:
    try:
        from gateway.cli.standard_streams import open_closed_streams

        open_closed_streams()
        from gateway.cli.commands import application
    except Exception as error:  # a damaged installation: a table that contradicts itself, a missing package
        sys.exit(f"rfhbridge: cannot start: {error!r} (install rfhbridge again)")
    application(prog_name="rfhbridge")
