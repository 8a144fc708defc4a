"""`rfhbridge simulate`: sensors and a subscriber against a running gateway, and the fate of every publication."""

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.application import ExitCode
from gateway.cli.password import read_password
from gateway.cli.settings_options import JsonOption
from gateway.cli.terminal import write_json, write_line

if TYPE_CHECKING:
    from gateway.cli.simulate.sensors import EarlyEnd
    from gateway.cli.simulate.simulation_counts import SimulationResult


#: The range of rates and durations. The largest number is a year in seconds.
_NUMBERS: Final = (0.001, 31_536_000.0)


def positive_number(text: str) -> float:
    """A rate or a duration: a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not _NUMBERS[0] <= number <= _NUMBERS[1]:
        raise typer.BadParameter(f"{text!r} must be a number from {_NUMBERS[0]:g} to {_NUMBERS[1]:.0f}")
    return number


def simulate(
    sensors: Annotated[int, typer.Option("--sensors", min=1, max=10_000, metavar="N", help="Number of sensors.")],
    rate: Annotated[
        float, typer.Option("--rate", parser=positive_number, metavar="R", help="Publications a second of each sensor.")
    ],
    qos: Annotated[int, typer.Option("--qos", min=0, max=2, metavar="Q", help="QoS, 0 to 2.")],
    seconds: Annotated[
        float, typer.Option("--seconds", parser=positive_number, metavar="S", help="Seconds to publish for.")
    ],
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Host of the gateway.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, metavar="PORT", help="Port of the gateway.")] = 1883,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="User name of all clients.")] = None,
    password_file: Annotated[
        Path | None,
        typer.Option("--password-file", metavar="FILE", readable=False, help="File whose first line is the password."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Publish as sensors, receive, and count.

    Ctrl-C and SIGTERM end the run early, and the command shows the counts so far. Exit code 1 if QoS 1 or 2 lost an
    acknowledged publication, or if QoS 2 delivered one twice.
    """
    from gateway.cli.simulate.sensors import EarlyEnd, Plan
    from gateway.cli.simulate.sensors import simulate as simulate_sensors

    if (user is None) != (password_file is None):
        raise typer.BadParameter("name a user and a password file, or neither", param_hint="'--user'")
    plan = Plan(
        host=host,
        port=port,
        sensors=sensors,
        rate=rate,
        qos=qos,
        seconds=seconds,
        user=user,
        password=None if password_file is None else read_password(password_file),
    )
    early_end = EarlyEnd()
    with _signals_as_wishes(early_end), _progress_bar(plan.publications) as on_progress:
        result = simulate_sensors(plan, on_progress, early_end)
    if as_json:
        write_json({**asdict(result), "as_promised": result.is_as_promised})
    else:
        _write_result(result)
    if not result.is_as_promised:
        raise typer.Exit(ExitCode.FAILED)


def _write_result(result: "SimulationResult") -> None:
    acknowledged, unacknowledged = str(result.acknowledged), str(result.unacknowledged)
    if result.qos == 0:
        acknowledged = unacknowledged = "-"
    lines = {
        "sent": str(result.sent),
        "acknowledged": acknowledged,
        "unacknowledged": unacknowledged,
        "received": str(result.received),
        "lost": str(result.lost),
        "doubled": str(result.doubled),
        "lost connections": str(result.lost_connections),
    }
    for name, value in lines.items():
        write_line(f"{name:<16} {value}")
    if result.ended_early:
        write_line("the run was ended early")


@contextmanager
def _signals_as_wishes(early_end: "EarlyEnd") -> Iterator[None]:
    """Makes SIGTERM a wish for an early end, as Ctrl-C is. Works in the main thread only."""

    def wish(_number: int, _frame: FrameType | None) -> None:
        early_end.wish()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, wish) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress_bar(publications: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error if that is a terminal. Yields the function that moves it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("publishing", total=publications)
        yield lambda sent: progress.update(task, completed=sent)
