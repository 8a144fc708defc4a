"""Connecting to a queue manager: the operator's settings, and MQCONNX with them.

The adapter measures every field before it packs it, because both packages silently cut a long one. Automatic reconnect
is off, because it hides losses that an exactly-once channel must see. SHARECNV(1) gives each connection a socket of its
own.
"""

import ctypes
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from mq_adapters.ibm_mq.binding import Binding, Package
from mq_adapters.ibm_mq.constants import (
    MQCC_WARNING,
    MQCD_VERSION_11,
    MQCHT_CLNTCONN,
    MQCNO_CLIENT_BINDING,
    MQCNO_HANDLE_SHARE_BLOCK,
    MQCNO_LOCAL_BINDING,
    MQCNO_RECONNECT_DISABLED,
    MQCNO_VERSION_7,
    MQSCO_VERSION_5,
    MQXPT_TCP,
)
from mq_adapters.ibm_mq.hints import HINTS, NATIVE_HINTS
from mq_adapters.native.connecting import Destination
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: The longest message of IBM MQ, in bytes; MAXMSGL of the channel or the queue may be less.
LONGEST_MESSAGE_BYTES: Final = 100 * 1024 * 1024
#: Lengths of character fields, in bytes (cmqc.h, cmqxc.h).
_Q_MGR_NAME_BYTES: Final = 48
_CHANNEL_NAME_BYTES: Final = 20
_CONNECTION_NAME_BYTES: Final = 264
_CIPHER_SPEC_BYTES: Final = 32
_KEY_REPOSITORY_BYTES: Final = 256
_CERTIFICATE_LABEL_BYTES: Final = 64
_APPLICATION_NAME_BYTES: Final = 28
#: MQ_SSL_PEER_NAME_LENGTH, MQ_CSP_PASSWORD_LENGTH, MQ_CLIENT_USER_ID_LENGTH; a URL has no other limit.
_PEER_NAME_BYTES: Final = 1024
_PASSWORD_BYTES: Final = 256
_USER_BYTES: Final = 1024
_URL_BYTES: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How to reach a queue manager.

    `queue_manager` is its name, blank for any that answers, or "*GROUP" of a CCDT. `connections` are HOST(PORT), tried
    in order. With `ccdt_url` (ibmmq only) they and `channel` are not used. `password` is the password itself. `context`
    is the most that the operator grants on a put: "identity" needs authority setid, "all" needs setall. `heartbeat_s`
    and `keep_alive_s` are in seconds; -1 leaves keep-alive to the client.
    """

    queue_manager: str = ""
    mode: Literal["client", "bindings"] = "client"
    package: Package = "auto"
    connections: tuple[str, ...] = ("localhost(1414)",)
    channel: str = "RFHBRIDGE.SVRCONN"
    ccdt_url: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    cipher: str = ""
    key_repository: str = ""
    certificate_label: str = ""
    peer_name: str = ""
    application_name: str = "rfhbridge"
    heartbeat_s: int = 30
    keep_alive_s: int = -1
    context: Literal["default", "identity", "all"] = "all"
    maximum_message_bytes: int = LONGEST_MESSAGE_BYTES

    @property
    def address(self) -> str:
        """The queue manager as errors name it."""
        name = self.queue_manager or "a queue manager"
        if self.mode == "bindings":
            return f"{name} on this machine"
        return f"{name} at {self.ccdt_url or ','.join(self.connections)}"


def connect(binding: Binding, settings: ConnectionSettings) -> Any:
    """A connected QueueManager of the package. QueueManagerError says why the connection failed.

    It never disconnects by itself, because MQDISC in the garbage collector would commit an open unit of work.
    """
    library = binding.module
    name = _text("queue_manager", settings.queue_manager, _Q_MGR_NAME_BYTES)
    arguments, kept = _arguments(binding, settings)
    queue_manager = library.QueueManager(None, disconnect_on_exit=False)
    try:
        queue_manager.connect_with_options(name, **arguments)
    except library.MQMIError as error:
        # After a warning the connection stands; 2002 means that it belongs to other code.
        if error.comp != MQCC_WARNING or error.reason == ReasonCode.MQRC_ALREADY_CONNECTED:
            why = getattr(error, "why", "")  # IBM's library has a log of its own for that
            operation = f"connect to {settings.address}{why and f': {why}'}"
            hints = NATIVE_HINTS if binding.package == "native" else HINTS
            raise QueueManagerError(error.reason, operation, hints.get(error.reason, "")) from error
    del kept
    return queue_manager


def _arguments(binding: Binding, settings: ConnectionSettings) -> tuple[dict[str, Any], list[Any]]:
    """The keywords of connect_with_options, and the memory that they point to."""
    if binding.package == "native":
        return {"destination": _destination(settings)}, []
    is_client = settings.mode == "client"
    options = MQCNO_HANDLE_SHARE_BLOCK | MQCNO_RECONNECT_DISABLED
    options |= MQCNO_CLIENT_BINDING if is_client else MQCNO_LOCAL_BINDING
    arguments: dict[str, Any] = {}
    kept: list[Any] = []
    if binding.package == "ibmmq":
        arguments["cno"] = _connect_options(binding, settings, options)
    else:
        if settings.ccdt_url:
            raise _setting_error("ccdt_url", "pymqi cannot use one; name connections and channel, or take ibmmq")
        arguments["opts"] = options
    if is_client and not settings.ccdt_url:
        arguments["cd"] = _channel(binding, settings, kept)
    if settings.key_repository or settings.cipher:
        arguments["sco"] = _tls(binding, settings)
    if settings.user:
        arguments["user"] = _text("user", settings.user, _USER_BYTES)
        arguments["password"] = _text("password", settings.password, _PASSWORD_BYTES)
    return arguments, kept


def _destination(settings: ConnectionSettings) -> Destination:
    """The settings for a client without IBM's library."""
    if settings.ccdt_url:
        raise _setting_error("ccdt_url", "the native client cannot use one; name connections and channel")
    if settings.mode != "client":
        raise _setting_error("mode", "the native client has no bindings to a queue manager of this machine")
    _text("queue_manager", settings.queue_manager, _Q_MGR_NAME_BYTES)
    _text("channel", settings.channel, _CHANNEL_NAME_BYTES)
    _text("application_name", settings.application_name, _APPLICATION_NAME_BYTES)
    return Destination(
        addresses=settings.connections,
        channel=settings.channel,
        queue_manager=settings.queue_manager,
        user=settings.user,
        password=settings.password,
        cipher=settings.cipher,
        key_repository=settings.key_repository,
        peer_name=settings.peer_name,
        application_name=settings.application_name,
        heartbeat_s=settings.heartbeat_s,
        maximum_message_bytes=settings.maximum_message_bytes,
    )


def _connect_options(binding: Binding, settings: ConnectionSettings, options: int) -> Any:
    """MQCNO version 7: ibmmq alone."""
    application_name = _text("application_name", settings.application_name, _APPLICATION_NAME_BYTES)
    cno = binding.module.CNO(Version=MQCNO_VERSION_7, Options=options, ApplName=application_name)
    if settings.ccdt_url and settings.mode == "client":
        cno.set(CCDTUrl=_text("ccdt_url", settings.ccdt_url, _URL_BYTES))
    return cno


def _channel(binding: Binding, settings: ConnectionSettings, kept: list[Any]) -> Any:
    """MQCD: a client-connection channel."""
    cd = binding.module.CD(
        Version=MQCD_VERSION_11,
        ChannelType=MQCHT_CLNTCONN,
        TransportType=MQXPT_TCP,
        ChannelName=_text("channel", settings.channel, _CHANNEL_NAME_BYTES),
        ConnectionName=_text("connections", ",".join(settings.connections), _CONNECTION_NAME_BYTES),
        SSLCipherSpec=_text("cipher", settings.cipher, _CIPHER_SPEC_BYTES),
        CertificateLabel=_text("certificate_label", settings.certificate_label, _CERTIFICATE_LABEL_BYTES),
        SharingConversations=1,
        HeartbeatInterval=settings.heartbeat_s,
        KeepAliveInterval=settings.keep_alive_s,
        MaxMsgLength=settings.maximum_message_bytes,
    )
    peer_name = _text("peer_name", settings.peer_name, _PEER_NAME_BYTES)
    if peer_name and binding.package == "ibmmq":
        cd.set(SSLPeerNamePtr=peer_name)
    elif peer_name:
        memory = ctypes.create_string_buffer(peer_name)
        kept.append(memory)
        cd.set(SSLPeerNamePtr=ctypes.addressof(memory), SSLPeerNameLength=len(peer_name))
    return cd


def _tls(binding: Binding, settings: ConnectionSettings) -> Any:
    return binding.module.SCO(
        Version=MQSCO_VERSION_5,
        KeyRepository=_text("key_repository", settings.key_repository, _KEY_REPOSITORY_BYTES),
        CertificateLabel=_text("certificate_label", settings.certificate_label, _CERTIFICATE_LABEL_BYTES),
    )


def _text(setting: str, value: str, length_bytes: int) -> bytes:
    """A setting as a character field: ASCII, and short enough."""
    try:
        encoded = value.encode("ascii")
    except UnicodeEncodeError:
        raise _setting_error(setting, "only ASCII characters can be sent to IBM MQ's client") from None
    if len(encoded) > length_bytes or b"\0" in encoded:
        raise _setting_error(setting, f"has {len(encoded)} characters, and may have {length_bytes}, none of them NUL")
    return encoded


def _setting_error(setting: str, complaint: str) -> QueueManagerError:
    """An unusable setting raises 2277, as a channel definition does that the client refuses."""
    return QueueManagerError(ReasonCode.MQRC_CD_ERROR, f"setting {setting}", complaint)
