"""`rfhbridge simulate`: sensors and a subscriber against a running gateway, and what became of every publication."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.application import ExitCode
from gateway.cli.terminal import write_json, write_line

if TYPE_CHECKING:
    from gateway.cli.ledger import Outcome


def simulate(
    sensors: Annotated[int, typer.Option("--sensors", min=1, max=10_000, metavar="N", help="Number of sensors.")],
    rate: Annotated[
        float, typer.Option("--rate", min=0.001, metavar="R", help="Publications a second of each sensor.")
    ],
    qos: Annotated[int, typer.Option("--qos", min=0, max=2, metavar="Q", help="QoS, 0 to 2.")],
    seconds: Annotated[float, typer.Option("--seconds", min=0.001, metavar="S", help="How long to publish.")],
    host: Annotated[str, typer.Option("--host", help="Host of the gateway.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Port of the gateway.")] = 1883,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Publish as sensors, receive, and count.

    Exit code 1 when QoS 1 or 2 lost a publication, or QoS 2 delivered one twice.
    """
    from gateway.cli.sensors import Plan
    from gateway.cli.sensors import simulate as simulate_sensors

    plan = Plan(host=host, port=port, sensors=sensors, rate=rate, qos=qos, seconds=seconds)
    with _progress_bar(plan.publications) as on_progress:
        outcome = simulate_sensors(plan, on_progress)
    if as_json:
        write_json({**asdict(outcome), "as_promised": outcome.is_as_promised})
    else:
        _write_outcome(outcome)
    if not outcome.is_as_promised:
        raise typer.Exit(ExitCode.FAILED)


def _write_outcome(outcome: "Outcome") -> None:
    acknowledged = "-" if outcome.qos == 0 else str(outcome.acknowledged)
    lines = {
        "sent": str(outcome.sent),
        "acknowledged": acknowledged,
        "received": str(outcome.received),
        "lost": str(outcome.lost),
        "doubled": str(outcome.doubled),
        "lost connections": str(outcome.lost_connections),
    }
    for name, value in lines.items():
        write_line(f"{name:<16} {value}")


@contextmanager
def _progress_bar(publications: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error where that is a terminal; yields what moves it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("publishing", total=publications)
        yield lambda sent: progress.update(task, completed=sent)
