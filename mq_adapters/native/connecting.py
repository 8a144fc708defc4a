"""Connecting to a queue manager: addresses in their order, TLS, INITIAL_DATA, users and passwords, MQCONN."""

import contextlib
import getpass
import ipaddress
import logging
import os
import re
import socket
from dataclasses import dataclass, field
from typing import Final, TypeVar

from mq_adapters.client_channel.client import ClientConnection
from mq_adapters.client_channel.client_events import ClientEvent, InitialDataAnswered, Replied
from mq_adapters.client_channel.errors import UsageError
from mq_adapters.client_channel.identification import ConAuthInfo, UserIdData
from mq_adapters.client_channel.initial_data import (
    CLEAR_PASSWORD_LEVEL,
    CLEAR_PASSWORDS,
    HIGHEST_LEVEL,
    Capability2,
    InitialData,
)
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.client_channel.verbs import MQCC_FAILED, Mqconn
from mq_adapters.message import MQAT_UNIX, UTF_8
from mq_adapters.native.line import Line
from mq_adapters.native.refusal import Refusal
from mq_adapters.native.tls import Tls
from mq_adapters.reasons import ReasonCode

DEFAULT_PORT: Final = 1414
#: The most seconds of each step of the set-up.
_STEP_S: Final = 10.0
_CONNECTION_NAME: Final = re.compile(r"\s*\[?([A-Za-z0-9._:\-]+?)\]?\s*(?:\(\s*([0-9]{1,5})\s*\))?\s*")
_PRODUCT: Final = "MQRF00010000"
#: MQCNO version 2 as IBM's client sends it from level 9 on: FCNO, version, capability, connection tag, product
#: identifier and queue manager identifier.
_FCNO: Final = b"FCNO" + (2).to_bytes(4, "big") + bytes(4 + 128 + 24 + 48)
_MQCNO_OPTIONS: Final = 7
_LONG_USER_BYTES: Final = 64
_USER_BYTES: Final = 12
#: Reasons after which the next address is tried.
_TRY_ANOTHER: Final = frozenset(
    {
        ReasonCode.MQRC_CONNECTION_BROKEN,
        ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE,
        ReasonCode.MQRC_Q_MGR_QUIESCING,
        ReasonCode.MQRC_Q_MGR_STOPPING,
        ReasonCode.MQRC_CHANNEL_NOT_AVAILABLE,
        ReasonCode.MQRC_HOST_NOT_AVAILABLE,
    }
)

Expected = TypeVar("Expected")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A queue manager, and the way to it. `addresses` are HOST(PORT), tried in order; without a `cipher` no TLS."""

    addresses: tuple[str, ...]
    channel: str
    queue_manager: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    cipher: str = ""
    key_repository: str = ""
    peer_name: str = ""
    application_name: str = "rfhbridge"
    heartbeat_s: int = 30
    maximum_message_bytes: int = 104_857_600


def connected(destination: Destination) -> Line:
    """A connection on which MQCONN was answered well. Raises Refusal with the reason of the last address."""
    tls = None
    if destination.cipher:
        tls = Tls(destination.cipher, destination.key_repository, destination.peer_name)
    refusal = Refusal(ReasonCode.MQRC_HOST_NOT_AVAILABLE, "there is no address")
    for address in destination.addresses:
        try:
            return _connected(destination, address, tls)
        except Refusal as error:
            _log.warning("connection refused address=%s reason=%d %s", address, error.reason_code, str(error))
            refusal = error
            if error.reason_code not in _TRY_ANOTHER:
                break
    raise refusal


def host_and_port(connection_name: str) -> tuple[str, int]:
    """A connection name HOST(PORT), in parts. Raises Refusal 2538 for another text."""
    found = _CONNECTION_NAME.fullmatch(connection_name)
    port = DEFAULT_PORT if found is None or found[2] is None else int(found[2])
    if found is None or not 0 < port < 65_536:  # the ports of TCP
        raise Refusal(ReasonCode.MQRC_HOST_NOT_AVAILABLE, f"{connection_name!r} is no connection name HOST(PORT)")
    return found[1], port


def _connected(destination: Destination, address: str, tls: Tls | None) -> Line:
    host, port = host_and_port(address)
    made = _socket(host, port, tls)
    if destination.user and tls is None and not _is_this_machine(made):
        made.close()
        why = f"a password would go to {address} in clear: set cipher, so that the connection has TLS"
        raise Refusal(ReasonCode.MQRC_PASSWORD_PROTECTION_ERROR, why)
    line = Line(made, ClientConnection(_offer(destination, has_tls=tls is not None)))
    try:
        try:
            _begin(line, destination)
        except UsageError:
            line.take_what_came()  # the end came right behind an answer
            raise
    except BaseException as error:
        line.close()
        if isinstance(error, Refusal) and error.reason_code == ReasonCode.MQRC_CONNECTION_BROKEN:
            raise Refusal(ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE, str(error)) from error
        raise
    return line


def _socket(host: str, port: int, tls: Tls | None) -> socket.socket:
    try:
        made = socket.create_connection((host, port), timeout=_STEP_S)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return made if tls is None else tls.wrap(made, host)
        except BaseException:
            made.close()
            raise
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that no host can have
        raise Refusal(ReasonCode.MQRC_HOST_NOT_AVAILABLE, str(error)) from error


def _offer(destination: Destination, *, has_tls: bool) -> InitialData:
    return InitialData(
        level=HIGHEST_LEVEL if has_tls else CLEAR_PASSWORD_LEVEL,
        maximum_message_length=destination.maximum_message_bytes,
        channel_name=destination.channel,
        capabilities_2=Capability2(0),
        queue_manager_name=destination.queue_manager,
        heartbeat_interval_s=destination.heartbeat_s,
        conversations_per_socket=1,
        process_identifier=os.getpid(),
        product_identifier=_PRODUCT,
        password_protection=CLEAR_PASSWORDS,
        random_bytes=os.urandom(12),
    )


def _begin(line: Line, destination: Destination) -> None:
    protocol = line.protocol
    _expect(InitialDataAnswered, line.ask(protocol.begin(), limit_s=_STEP_S))
    line.tell(protocol.assert_user(_asserted()))
    if destination.user:
        _show(line, destination)
    asked = Mqconn(
        q_mgr_name=destination.queue_manager,
        appl_name=destination.application_name,
        appl_type=MQAT_UNIX,
        options=_MQCNO_OPTIONS,
        tail=_FCNO,
    )
    event = line.ask(protocol.call(SegmentType.MQCONN, asked), limit_s=_STEP_S)
    reply = _expect(Replied, event)
    if reply.header.completion_code == MQCC_FAILED:
        raise Refusal(reply.header.reason_code, "MQCONN was refused")
    line.begin_heartbeats(_agreed(destination.heartbeat_s, protocol.answer.heartbeat_interval_s))


def _show(line: Line, destination: Destination) -> None:
    """Sends user and password. 2539 where the queue manager wants them in a way that is not published."""
    answer = line.protocol.answer
    if answer.level > CLEAR_PASSWORD_LEVEL and answer.password_protection != CLEAR_PASSWORDS:
        why = "the queue manager wants the password protected by an algorithm that is not published"
        raise Refusal(ReasonCode.MQRC_CHANNEL_CONFIG_ERROR, why)
    shown = ConAuthInfo(user=destination.user.encode(), password=destination.password.encode())
    line.ask(line.protocol.authenticate(shown, UTF_8), limit_s=_STEP_S)


def _asserted() -> UserIdData:
    """The user that this process runs as. It proves nothing."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    user = user.encode("ascii", "replace").decode()
    return UserIdData(user=user.upper()[:_USER_BYTES], long_user=user[:_LONG_USER_BYTES])


def _agreed(*heartbeats_s: int) -> int:
    """The shorter of two intervals; 0 stands for none."""
    return min((each for each in heartbeats_s if each > 0), default=0)


def _is_this_machine(made: socket.socket) -> bool:
    """Whether nobody else can read what goes through this socket."""
    with contextlib.suppress(OSError, ValueError):
        return ipaddress.ip_address(made.getpeername()[0]).is_loopback
    return False


def _expect(kind: type[Expected], event: ClientEvent) -> Expected:
    assert isinstance(event, kind), f"the protocol gives only {kind.__name__} here, not {event}"
    return event
