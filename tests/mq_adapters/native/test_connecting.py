"""Connecting: addresses, refusals, passwords, and queue managers that do not answer as they should."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.client_channel.segments import ByteOrder, SegmentType
from mq_adapters.client_channel.status import StatusData
from mq_adapters.ibm_mq import ConnectionSettings, IbmMq
from mq_adapters.native import connecting
from mq_adapters.native.connecting import Destination, connected, host_and_port
from mq_adapters.native.refusal import Refusal
from mq_adapters.reasons import QueueManagerError
from tests.every_case import for_every
from tests.mq_adapters.client_channel.test_client import answered
from tests.mq_adapters.client_channel.test_server import tshm
from tests.mq_adapters.native.conftest import Connect
from tests.mq_adapters.native.gateway import NativeGateway


@for_every(
    {
        "a name": ("mq1.example.com(1415)", ("mq1.example.com", 1415)),
        "without a port": ("mq1", ("mq1", 1414)),
        "an address": ("10.1.2.3(1414)", ("10.1.2.3", 1414)),
        "of IPv6": ("::1(1414)", ("::1", 1414)),
        "with blanks": (" mq1 ( 1414 ) ", ("mq1", 1414)),
    }
)
def test_a_connection_name_is_a_host_and_a_port(case: tuple[str, tuple[str, int]]) -> None:
    assert host_and_port(case[0]) == case[1]


@for_every(["", "(1414)", "mq1(0)", "mq1(65536)", "mq1(x)", "mq1(1414", "mq1,mq2", "mq 1"])
def test_another_text_is_2538(text: str) -> None:
    with pytest.raises(Refusal) as error:
        host_and_port(text)
    assert error.value.reason_code == 2538


@for_every({"channel": ({"channel": "NOBODY"}, 2540), "queue manager": ({"queue_manager": "OTHER"}, 2058)})
def test_an_unknown_name_has_its_own_reason(case: tuple[dict[str, str], int], connect: Connect) -> None:
    with pytest.raises(QueueManagerError) as error:
        connect(**case[0])
    assert error.value.reason_code == case[1]


def test_a_wrong_password_is_2035(connect: Connect) -> None:
    with pytest.raises(QueueManagerError, match="2035"):
        connect(user="tester", password="rfhbridge_wrong")


def test_a_password_never_goes_to_another_machine_in_clear(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "_is_this_machine", lambda _socket: False)
    with pytest.raises(QueueManagerError, match=r"in clear: set cipher.*2594"):
        connect(user="tester", password="rfhbridge_wrong")


def test_the_next_address_is_tried_where_nobody_listens(connect: Connect, gateway: NativeGateway) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        taken = nobody.getsockname()[1]
        names = (f"127.0.0.1({taken})", f"127.0.0.1({gateway.mq_port})")
        assert connect(connections=names).name == gateway.engine.name
        with pytest.raises(QueueManagerError, match="2538"):
            connect(connections=names[:1])


def test_no_ccdt_and_no_bindings_on_this_machine() -> None:
    for changes in ({"ccdt_url": "file:///a"}, {"mode": "bindings"}):
        with pytest.raises(QueueManagerError, match="2277"):
            IbmMq(ConnectionSettings(package="native", **changes))


# -- servers that are no queue managers --------------------------------------------------------------------------------

Serve = Callable[[Callable[[socket.socket], None]], Destination]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that does one thing with its one connection; gives the way to it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threads: list[threading.Thread] = []

        def started(behave: Callable[[socket.socket], None]) -> Destination:
            def run() -> None:
                with suppress(OSError):
                    accepted, _ = listening.accept()
                    with accepted:
                        behave(accepted)

            threads.append(threading.Thread(target=run, daemon=True))
            threads[-1].start()
            return Destination(addresses=(f"127.0.0.1({listening.getsockname()[1]})",), channel="ANY", user="u")

        yield started
        for each in threads:
            each.join(60)


def refusal(destination: Destination) -> int:
    with pytest.raises(Refusal) as error:
        connected(destination)
    return error.value.reason_code


def test_a_server_of_another_protocol_is_2059(serve: Serve) -> None:
    assert refusal(serve(lambda peer: peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))) == 2059


def test_a_server_that_closes_at_once_is_2059(serve: Serve) -> None:
    assert refusal(serve(lambda peer: peer.recv(1_000) and None)) == 2059


def test_a_server_that_says_nothing_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "_STEP_S", 0.2)

    def behave(peer: socket.socket) -> None:
        while peer.recv(1_000):
            pass

    assert refusal(serve(behave)) == 2059


@pytest.mark.parametrize(("code", "reason"), [(StatusCode.QM_TERMINATING, 2059), (StatusCode.NO_CHANNEL, 2540)])
def test_an_end_right_behind_an_answer_has_its_own_reason(serve: Serve, code: StatusCode, reason: int) -> None:
    """Both come in one piece, so the client learns of the end before it asks again."""

    def behave(peer: socket.socket) -> None:
        peer.recv(1_000)
        status = StatusData(code).write(ByteOrder.BIG_ENDIAN)
        peer.sendall(answered(level=12) + tshm(SegmentType.STATUS_DATA, flags=0x0A, body=status))
        while peer.recv(1_000):
            pass

    assert refusal(serve(behave)) == reason


@pytest.mark.parametrize("host", ["mq..example.com", "a" * 64 + ".example.com"])
def test_a_name_that_no_host_can_have_is_refused_and_the_next_one_tried(
    connect: Connect, gateway: NativeGateway, host: str
) -> None:
    with pytest.raises(QueueManagerError, match="2538"):
        connect(connections=(f"{host}(1414)",))
    assert connect(connections=(f"{host}(1414)", f"127.0.0.1({gateway.mq_port})")).name == gateway.engine.name


def test_a_password_that_would_have_to_be_protected_is_not_sent(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytes] = []

    def behave(peer: socket.socket) -> None:
        peer.recv(1_000)
        peer.sendall(answered(password_protection=bytes((0, 1)).ljust(20, b"\xff")))
        while data := peer.recv(1_000):
            taken.append(data)

    monkeypatch.setattr(connecting, "CLEAR_PASSWORD_LEVEL", 13 - 1)
    monkeypatch.setattr(connecting, "_offer", lambda *_, **__: _offer_of_13())
    assert refusal(serve(behave)) == 2539
    assert all(data[17] == SegmentType.USERID_DATA for data in taken)


def _offer_of_13() -> object:
    from tests.mq_adapters.client_channel.test_client import OFFER

    return OFFER
