"""A thousand messages at once through the gateway, by each client of others: none lost, doubled or out of order."""

import os
from collections.abc import Callable
from typing import Final

import pytest

from tests.conftest import PROOF_VARIABLE
from tests.end_to_end.clients.certificates import Certificates
from tests.end_to_end.clients.client import Way
from tests.end_to_end.clients.conftest import ALL_TRANSPORTS, KINDS, Connected, Kind
from tests.end_to_end.clients.streams import PROGRAMS, Seen, Sent, by_adapter, by_program

COUNT: Final = 1_000
IS_FULL: Final = os.environ.get(PROOF_VARIABLE) == "full"
MIXED: Final = (0, 1, 2)
#: In full each QoS alone as well.
LEVELS: Final = (MIXED, (0,), (1,), (2,)) if IS_FULL else (MIXED,)
PROGRAM_KINDS: Final = [
    Kind(name, version, transport)
    for name, program in PROGRAMS.items()
    for version in program.versions
    for transport in ALL_TRANSPORTS
]
#: In short: what shares the machine's minutes with the builds goes over TCP, and over all else at once.
SHORT_TRANSPORTS: Final = ("tcp", "secure-websocket")
STREAMED: Final = [kind for kind in (*KINDS, *PROGRAM_KINDS) if IS_FULL or kind.transport in SHORT_TRANSPORTS]

Stream = Callable[[Kind, Sent], Seen]


@pytest.fixture
def stream(connected: Connected, way: Way, certificates: Certificates) -> Stream:
    """Sends by a client of that kind, or skips the test where it is not here."""

    def run(kind: Kind, sent: Sent) -> Seen:
        if (program := PROGRAMS.get(kind.name)) is None:
            watcher = connected(kind, way, f"{sent.name}-watcher")
            return by_adapter(watcher, connected(kind, way, f"{sent.name}-publisher"), sent)
        if program.why_missing:
            pytest.skip(program.why_missing)
        authority = certificates.authority
        return by_program(
            program, sent, version=kind.version, transport=kind.transport, port=way.port, authority=authority
        )

    return run


@pytest.mark.proof
@pytest.mark.parametrize("levels", LEVELS, ids=lambda levels: "qos" + "".join(map(str, levels)))
@pytest.mark.parametrize("kind", STREAMED, ids=str)
def test_a_thousand_messages_come_once_and_in_order(stream: Stream, kind: Kind, levels: tuple[int, ...]) -> None:
    sent = Sent(f"{kind.prefix}-stream-{'-'.join(map(str, levels))}", COUNT, levels)
    assert stream(kind, sent).faults(sent) == []


def test_what_is_lost_doubled_or_out_of_order_is_told() -> None:
    sent = Sent("planted", 6, MIXED)
    whole = [(number, number % 3) for number in range(6)]
    later_qos_2 = [*whole[:2], *whole[3:5], whole[2], whole[5]]
    assert Seen(list(range(6)), whole).faults(sent) == []
    assert Seen(list(range(6)), later_qos_2).faults(sent) == []
    assert Seen([0, 1, 2, 4, 5, 5], whole).faults(sent) == ["3 was acknowledged 0 times", "5 was acknowledged 2 times"]
    assert Seen(list(range(6)), whole[:5]).faults(sent) == ["5 came 0 times"]
    assert Seen(list(range(6)), [*whole, whole[5]]).faults(sent) == ["5 came 2 times"]
    assert Seen(list(range(6)), [*whole, (18, 0)]).faults(sent) == ["18 came and was not sent"]
    assert Seen(list(range(6)), [*whole[:5], (5, 1)]).faults(sent) == ["5 came at QoS 1"]
    assert Seen(list(range(6)), [whole[3], *whole[1:3], whole[0], *whole[4:]]).faults(sent) == [
        "3 came before 0 at QoS 0"
    ]
