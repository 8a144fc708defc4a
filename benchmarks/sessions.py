"""Sessions that stay, made one after another: CONNECT, CONNACK, DISCONNECT, and the end of the connection."""

import time
from typing import Final

from benchmarks.figures import Measure, Report, Row
from benchmarks.load.wire import connect, disconnect
from benchmarks.servers import Server, cpu_s, each_server, resident_mib

NAME: Final = "sessions"
MOST_SESSIONS: Final = 10_000
#: So many sessions for each second of the measurement, up to the most.
_SESSIONS_A_SECOND: Final = 1_000
#: Before anything is counted.
FIRST: Final = 20


def run(seconds: float) -> Report:
    """Measures the gateway and mosquitto, with fewer sessions in less than ten seconds."""
    sessions = min(MOST_SESSIONS, max(FIRST, int(seconds * _SESSIONS_A_SECOND)))
    return Report(
        name=NAME,
        title=f"{sessions:,} sessions that stay, made one after another",
        rows=tuple(measure(server, sessions) for server in each_server()),
        notes=("The client is a program in Python, whose own 0.1 ms are in the time of each.",),
    )


def measure(server: Server, sessions: int) -> Row:
    make(server.port, "first", FIRST)
    before_s, before_mib, began_s = cpu_s(server.process_id), resident_mib(server.process_id), time.monotonic()
    make(server.port, "session", sessions)
    elapsed_s, used_s = time.monotonic() - began_s, cpu_s(server.process_id) - before_s
    return Row(
        subject=server.name,
        durable=server.durable or "the session, synced before CONNACK, and its end of connection",
        measures=(
            Measure(name="time", value=elapsed_s / sessions * 1e3, unit="ms/session"),
            Measure(name="CPU", value=used_s / sessions * 1e6, unit="us/session"),
            Measure(
                name="memory",
                value=(resident_mib(server.process_id) - before_mib) * 1_024 / sessions,
                unit="KiB/session",
            ),
        ),
    )


def make(port: int, name: str, sessions: int) -> None:
    """Sessions without a connection, `name`-0 and so on."""
    for number in range(sessions):
        disconnect(connect(port, f"{name}-{number}", clean_session=False))
