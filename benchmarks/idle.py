"""What ten thousand connections cost in memory when they say nothing, and what five hundred others feel of them."""

import resource
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from benchmarks.bare_tls import BareTls
from benchmarks.figures import Measure, Report, Row, latency_measures
from benchmarks.load.task import Task, generate
from benchmarks.load.transports import over_secure_websocket, over_tcp, over_tls, over_websocket
from benchmarks.servers import IN_MEMORY, Gateway, Mosquitto, Server, peers, resident_mib

NAME: Final = "idle"
CONNECTIONS: Final = 10_000
ACTIVE: Final = 500
#: Ten messages a second of each.
_ACTIVE_RATE: Final = 5_000
_WINDOW: Final = 50
#: Descriptors beside those of the connections: files, pipes, the interpreter's own.
_OTHER_DESCRIPTORS: Final = 1_000
_CONFIGURATION: Final = """
[mqtt]
maximum_connections = 20_000
connection_rate = 0
connection_rate_per_address = 0

[[listener]]
name = "tls"
listen = "127.0.0.1:0"
tls = {{ certificate = "{folder}/certificate.pem", key = "{folder}/key.pem" }}

[[listener]]
name = "websocket"
listen = "127.0.0.1:0"
transport = "websocket"

[[listener]]
name = "secure-websocket"
listen = "127.0.0.1:0"
transport = "websocket"
tls = {{ certificate = "{folder}/certificate.pem", key = "{folder}/key.pem" }}
"""

Open = Callable[[int, str], socket.socket]
#: By listener, "" is plain TCP; and as the report names them.
_TRANSPORTS: Final[dict[str, Open]] = {
    "": over_tcp,
    "tls": over_tls,
    "websocket": over_websocket,
    "secure-websocket": over_secure_websocket,
}
_CASES: Final = {"": "TCP", "tls": "TLS", "websocket": "WebSocket", "secure-websocket": "secure WebSocket"}


def run(seconds: float) -> Report:
    """Measures the resident memory of the gateway's own process over each transport, and of mosquitto over TCP."""
    rows = [measure_gateway(listener, CONNECTIONS, ACTIVE, seconds) for listener in _TRANSPORTS]
    rows.append(measure_openssl(CONNECTIONS))
    for persistence in peers(IN_MEMORY):
        allow_descriptors(CONNECTIONS + ACTIVE + _OTHER_DESCRIPTORS)
        with Mosquitto(persistence) as mosquitto:
            rows.insert(1, measure(mosquitto, mosquitto.port, over_tcp, CONNECTIONS, ACTIVE, seconds, "TCP"))
    return Report(
        name=NAME,
        title=f"memory of {CONNECTIONS:,} idle connections, and {ACTIVE} active ones beside them",
        rows=tuple(rows),
        notes=(
            "The aim is at most 12 KB (11.7 KiB) for each idle connection.",
            f"The active ones publish {_ACTIVE_RATE:,} messages a second over TCP, QoS 1, 64 B, without a subscriber.",
        ),
    )


def measure_gateway(listener: str, connections: int, active: int, seconds: float) -> Row:
    """A gateway of its own for each transport, whose memory nobody else has used."""
    allow_descriptors(connections + active + _OTHER_DESCRIPTORS)
    with Gateway(_CONFIGURATION) as gateway:
        port = gateway.port_of(listener) if listener else gateway.port
        return measure(gateway, port, _TRANSPORTS[listener], connections, active, seconds, _CASES[listener])


def measure_openssl(connections: int) -> Row:
    """What a process pays that does nothing but hold TLS connections: no gateway can have them for less."""
    allow_descriptors(connections + _OTHER_DESCRIPTORS)
    with BareTls() as server, ExitStack() as open_clients:
        open_clients.enter_context(over_tls(server.port, "first"))  # it has started
        before_mib = resident_mib(server.process_id)
        for number in range(connections):
            open_clients.enter_context(over_tls(server.port, f"idle-{number}"))
        memory = _memory(before_mib, resident_mib(server.process_id), connections)
    return Row(subject="OpenSSL alone", case="TLS", measures=memory)


def _memory(before_mib: float, after_mib: float, connections: int) -> tuple[Measure, ...]:
    return (
        Measure(name="before", value=before_mib, unit="MiB"),
        Measure(name="with connections", value=after_mib, unit="MiB"),
        Measure(name="each", value=(after_mib - before_mib) * 1_024 / connections, unit="KiB"),
    )


def measure(
    server: Server, port: int, open_connection: Open, connections: int, active: int, seconds: float, case: str
) -> Row:
    before_mib = resident_mib(server.process_id)
    with ExitStack() as open_clients:
        for number in range(connections):
            open_clients.enter_context(open_connection(port, f"idle-{number}"))
        after_mib = resident_mib(server.process_id)
        outcome = generate(
            Task(port=server.port, seconds=seconds, connections=active, window=_WINDOW, rate=_ACTIVE_RATE)
        )
    return Row(
        subject=server.name,
        case=case,
        measures=(
            *_memory(before_mib, after_mib, connections),
            *latency_measures("PUBACK", outcome.acknowledgement),
            Measure(name="rate", value=outcome.rate, unit="messages/s"),
        ),
    )


def allow_descriptors(wanted: int) -> None:
    """Raises this process's limit of open files, which the servers inherit. ValueError where the system forbids it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
