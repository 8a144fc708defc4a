"""What a thousand connections cost in memory when they say nothing."""

import resource
import socket
from contextlib import ExitStack
from typing import Final

from benchmarks.figures import Measure, Report, Row
from benchmarks.servers import IN_MEMORY, Gateway, Mosquitto, Server, peers, resident_mib
from benchmarks.wire import connect

NAME: Final = "idle"
CONNECTIONS: Final = 1_000
#: Descriptors beside those of the connections: files, pipes, the interpreter's own.
_OTHER_DESCRIPTORS: Final = 100


def run(_seconds: float) -> Report:
    """Measures the resident memory of the gateway's own process, and of mosquitto; the time plays no part."""
    allow_descriptors(CONNECTIONS + _OTHER_DESCRIPTORS)
    with Gateway() as gateway:
        rows = [measure(gateway)]
    for persistence in peers(IN_MEMORY):
        with Mosquitto(persistence) as mosquitto:
            rows.append(measure(mosquitto))
    return Report(
        name=NAME,
        title=f"memory of {CONNECTIONS:,} idle connections with clean sessions",
        rows=tuple(rows),
        notes=("The aim is at most 20 MiB for the gateway.",),
    )


def measure(server: Server) -> Row:
    before_mib = resident_mib(server.process_id)
    with ExitStack() as open_clients:
        for number in range(CONNECTIONS):
            client: socket.socket = connect(server.port, f"idle-{number}")
            open_clients.enter_context(client)
        after_mib = resident_mib(server.process_id)
    return Row(
        subject=server.name,
        measures=(
            Measure(name="before", value=before_mib, unit="MiB"),
            Measure(name="with connections", value=after_mib, unit="MiB"),
            Measure(name="difference", value=after_mib - before_mib, unit="MiB"),
            Measure(name="each", value=(after_mib - before_mib) * 1_024 / CONNECTIONS, unit="KiB"),
        ),
    )


def allow_descriptors(wanted: int) -> None:
    """Raises this process's limit of open files, which the servers inherit. ValueError where the system forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
