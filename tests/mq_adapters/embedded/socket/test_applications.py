"""Applications at the socket: by the user that they run as, or by a token, with the rights of their role."""

import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mq_adapters import connect
from mq_adapters.embedded.rights import Rights
from mq_adapters.embedded.socket import connection as connection_module
from mq_adapters.embedded.socket.applications import ApplicationRole, Applications
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.embedded.socket.server import ApplicationSocket
from mq_adapters.embedded.socket.socket_file import SOCKET_NAME
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError
from tests.mq_adapters.gateway_thread import STEP_S, GatewayThread

BILLING, STRANGER = 65_533, 65_534
TOKEN = "rfhbridge_token-of-shipping"
MESSAGE = Message(MessageDescriptor(format=b"MQSTR   ", user_identifier="somebody"), b"words")
ROLES = (
    ApplicationRole(
        name="billing", user_ids=frozenset((BILLING,)), rights=Rights(put=("ORDERS",), get=("INVOICES.*",))
    ),
    ApplicationRole(name="shipping", rights=Rights(get=("ORDERS",), browse=("ORDERS",))),
)


class House:
    """A gateway with a folder that every user reaches, whose tokens can change."""

    def __init__(self, data: Path, folder: Path) -> None:
        self.folder = folder
        self.digests = {"shipping": hashlib.sha256(TOKEN.encode()).digest()}
        self.gateway = GatewayThread(
            data,
            applications=Applications(ROLES, lambda: self.digests),
            second=ApplicationSocket(folder=folder, maximum_connections_per_user=2),
        )
        with SocketClient(data) as owner:
            for name in ("ORDERS", "INVOICES.NEW", "SECRETS"):
                owner.define(name)
                owner.put(name, MESSAGE)


@pytest.fixture
def house(data_folder: Path) -> Iterator[House]:
    folder = Path(tempfile.mkdtemp(prefix="rfhbridge-test-"))
    folder.chmod(0o755)
    house = House(data_folder, folder)
    yield house
    house.gateway.stop()
    assert not (folder / SOCKET_NAME).exists()
    shutil.rmtree(folder)


def as_user(user_id: int, call: Callable[[], int]) -> int:
    """What a call returns in a process of another user: an MQ reason code, modulo 256, or 0."""
    if os.geteuid() != 0:
        pytest.skip("only root has processes of other users")
    child = os.fork()
    if child == 0:
        os.setuid(user_id)
        try:
            os._exit(call())
        except QueueManagerError as error:
            os._exit(error.reason_code % 256)
        except BaseException:
            os._exit(255)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def done(folder: Path, *calls: Callable[[SocketClient], object], **options: str) -> Callable[[], int]:
    def call() -> int:
        with SocketClient(folder, **options) as client:
            for each in calls:
                each(client)
        return 0

    return call


REFUSED = ReasonCode.MQRC_NOT_AUTHORIZED % 256


def test_an_application_is_known_by_its_user_and_does_what_its_table_says(house: House) -> None:
    put = done(house.folder, lambda client: client.put("ORDERS", MESSAGE))
    assert as_user(BILLING, put) == 0
    assert as_user(BILLING, done(house.folder, lambda client: client.get("INVOICES.NEW"))) == 0
    assert as_user(BILLING, done(house.folder, lambda client: client.get("ORDERS"))) == REFUSED
    assert as_user(BILLING, done(house.folder, lambda client: client.put("SECRETS", MESSAGE))) == REFUSED
    assert as_user(BILLING, done(house.folder, lambda client: client.compaction())) == REFUSED
    with SocketClient(house.folder) as owner:  # who may do everything here too
        *_, last = owner.browse("ORDERS")
    assert last.descriptor.user_identifier == str(BILLING), "no application says who it is"


def test_a_stranger_is_refused_and_counted_and_does_not_reach_the_data_folder(house: House, data_folder: Path) -> None:
    assert as_user(STRANGER, done(house.folder)) == REFUSED
    assert house.gateway.server.refusals == {ReasonCode.MQRC_NOT_AUTHORIZED: 1}
    assert (data_folder / SOCKET_NAME).stat().st_mode & 0o777 == 0o600
    assert (house.folder / SOCKET_NAME).stat().st_mode & 0o777 == 0o666


def test_a_token_gives_the_rights_of_its_application_and_no_others_whoever_shows_it(house: House) -> None:
    with connect(house.folder, token=TOKEN) as shipping:
        assert shipping.get("ORDERS").body == b"words"
        with pytest.raises(QueueManagerError, match="2035"):
            shipping.get("SECRETS")
        with pytest.raises(QueueManagerError, match="2035"):
            shipping.operate("queue get")
        assert not shipping.mqsc("DISPLAY QLOCAL(*)").succeeded
    assert as_user(STRANGER, done(house.folder, lambda client: next(client.browse("ORDERS"), None), token=TOKEN)) == 0


@pytest.mark.parametrize("token", ["rfhbridge_another", "x" * 3000])
def test_a_wrong_token_is_refused_also_for_the_gateways_own_user(house: House, token: str) -> None:
    with pytest.raises(QueueManagerError, match="2035") as refused:
        connect(house.folder, token=token)
    assert token not in str(refused.value)


def test_a_token_that_has_changed_ends_its_connections_and_no_others(house: House) -> None:
    with SocketClient(house.folder, token=TOKEN) as shipping, SocketClient(house.folder) as owner:
        house.digests = {}
        house.gateway.call(lambda: house.gateway.server.token_changed(frozenset(("shipping",))))
        with pytest.raises(QueueManagerError, match="2009"):
            shipping.depth("ORDERS")
        assert owner.depth("ORDERS") == 1
    with pytest.raises(QueueManagerError, match="2035"):
        SocketClient(house.folder, token=TOKEN)


def test_another_user_has_so_many_connections_and_one_more_is_refused(house: House) -> None:
    def three() -> int:
        held = [SocketClient(house.folder) for _ in range(2)]
        try:
            SocketClient(house.folder)
        except QueueManagerError as error:
            held[0].put("ORDERS", MESSAGE)
            return error.reason_code % 256
        return 0

    assert as_user(BILLING, three) == ReasonCode.MQRC_MAX_CONNS_LIMIT_REACHED % 256
    assert as_user(BILLING, done(house.folder)) == 0


def test_reports_go_to_no_queue_that_the_application_may_not_use(house: House) -> None:
    def ask(queue: str) -> Callable[[SocketClient], object]:
        confirm_on_arrival = 0x100
        descriptor = MessageDescriptor(format=b"MQSTR   ", report=confirm_on_arrival, reply_to_q=queue)
        return lambda client: client.put("ORDERS", Message(descriptor, b"words"))

    assert as_user(BILLING, done(house.folder, ask("SECRETS"))) == REFUSED
    assert as_user(BILLING, done(house.folder, ask("INVOICES.NEW"))) == 0


def test_a_connection_that_does_not_say_hello_is_closed(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "HELLO_WAIT_S", 0.01)
    silent = socket.socket(socket.AF_UNIX)
    silent.settimeout(STEP_S)
    silent.connect(str(house.folder / SOCKET_NAME))
    assert silent.recv(1) == b""
    silent.close()
    with SocketClient(house.folder) as spoken:
        assert spoken.depth("ORDERS") == 1


def test_a_folder_in_which_another_gateway_listens_is_left_to_it(house: House, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="another gateway listens there"):
        GatewayThread(tmp_path / "other", second=ApplicationSocket(folder=house.folder))
    with SocketClient(house.folder) as owner:
        assert owner.depth("ORDERS") == 1
