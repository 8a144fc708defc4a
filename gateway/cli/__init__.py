"""The command line: `rfhbridge`, one module for each command.

A command ends with 0 for success, 1 for failure, and 2 for wrong use. The audit commands end with 0 for clean, 1 for
violations, 2 for not evaluable, and 3 for wrong use. An error is one line on standard error.
"""

import contextlib
import gc
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
    except KeyboardInterrupt:  # the commands do the same, but are not loaded yet
        sys.exit(_INTERRUPTED)
    finally:  # the exit code of the command stands: a second Ctrl-C while Python ends must not change it
        for number in _ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def _start() -> None:
    try:
        from gateway.cli.standard_streams import open_closed_streams

        open_closed_streams()
        # What is loaded here stays until the end. To look for garbage in it, now and at the end, took a fifth of the
        # time of a short command.
        gc.disable()
        _use_compiled()  # before any command loads the source of a compiled module
        from gateway.cli.commands import application

        gc.freeze()
        gc.enable()
    except Exception as error:  # a damaged installation: a table that contradicts itself, a missing package
        sys.exit(f"rfhbridge: cannot start: {error!r} (install rfhbridge again)")
    application(prog_name="rfhbridge")


def _use_compiled() -> None:
    """Takes a build for `rfhbridge run` alone, because the look at all sources takes a tenth of a short command."""
    if "run" not in sys.argv:
        return
    import typer

    from gateway.cli.invocation import invocation_of
    from gateway.compiled import NotCompiled, use

    with contextlib.suppress(typer.BadParameter):  # the command says what is wrong
        if invocation_of(sys.argv[1:]).arguments[:1] == ("run",):
            try:
                use()
            except NotCompiled as error:
                sys.exit(f"rfhbridge: {error}")
