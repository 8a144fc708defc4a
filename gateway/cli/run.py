"""`rfhbridge run`: the gateway."""

import contextlib
import logging
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway import log
from gateway.cli.configuration_warnings import configuration_warnings
from gateway.cli.invocation import Invocation
from gateway.cli.settings_options import ConfigOption, DataOption
from gateway.cli.terminal import write_line
from gateway.config import Address, Settings
from mappings.table import Dialect

if TYPE_CHECKING:
    from gateway.listener import OpenListener

_log = logging.getLogger(__name__)


def listen_address(text: str) -> str:
    """HOST:PORT or [IPV6]:PORT, checked."""
    try:
        return str(Address.parse(text))
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None


def run(
    context: typer.Context,
    config: ConfigOption = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", parser=listen_address, metavar="HOST:PORT", help="Address of the MQTT server."),
    ] = None,
    data: DataOption = None,
    header: Annotated[
        Dialect | None, typer.Option("--header", help="Header of the commands that the gateway writes.")
    ] = None,
) -> None:
    """Run the gateway.

    At SIGTERM and Ctrl-C it finishes its work and stops. At SIGHUP it reads the password file, the access list, the
    keys of tokens and the certificates again.
    """
    invocation = context.find_root().obj
    assert isinstance(invocation, Invocation)
    options = {
        "listen": listen,
        "data": data,
        "header": None if header is None else header.value,
        "log.level": invocation.log_level,
        "log.format": invocation.log_format,
    }
    with _hang_ups_ignored():
        raise typer.Exit(_run(config, options))


def _run(config: Path | None, options: Mapping[str, object]) -> int:
    from gateway.daemon import run as run_gateway
    from gateway.limits.open_files import make_room_for

    settings = Settings.load(config, options)
    log.configure(settings.log.level, settings.log.format)
    make_room_for(settings.mqtt, settings.listeners, settings.mq_listener)
    for warning in configuration_warnings(settings):
        _log.warning("configuration doubted because=%s", warning)
    return run_gateway(settings, ready=_announce, file=config)


@contextlib.contextmanager
def _hang_ups_ignored() -> Iterator[None]:
    """Ignores SIGHUP until the gateway listens for it. A starting gateway reads all these files anyway."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _announce(listeners: "Sequence[OpenListener]") -> None:
    """Prints the addresses once the gateway listens, because with port 0 nobody else knows them.

    Nobody has to read this.
    """
    with contextlib.suppress(OSError):
        for listener in listeners:
            write_line(listener.announcement)
