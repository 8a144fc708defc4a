"""The port over the gateway's socket: an MQ application, or a `queue` command, beside a running gateway.

Blocking calls for one thread. The frames are those of mq_adapters/embedded/socket/frames.py.
"""

import math
import socket
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Final, Self

from mq_adapters.attributes import (
    DEFAULT_MAXIMUM_MESSAGE_BYTES,
    Definition,
    longest_message_bytes,
    queue_manager_identifier,
)
from mq_adapters.cursor import Cursor
from mq_adapters.embedded.socket import frames
from mq_adapters.embedded.socket.frames import FrameError, FrameFields, Verb, name_field, request_frame, u32
from mq_adapters.embedded.socket.socket_file import connected_socket
from mq_adapters.exclusive_queue import ExclusiveQueue, when_not_in_use
from mq_adapters.message import IDENTIFIER_BYTES, Message
from mq_adapters.mqmd import write_mqmd
from mq_adapters.mqsc import MqscAnswer
from mq_adapters.queue_manager import Compaction, QueueStatus
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.subscribed_queue import SubscribedQueue

_LENGTH_BYTES: Final = 4
#: Length of verb, request number, completion code and reason code in an answer.
_ANSWER_BYTES: Final = 13
_INCARNATION_BYTES: Final = 12
#: After these the gateway closes the connection.
_CLOSING_REASONS: Final = (ReasonCode.MQRC_UNEXPECTED_ERROR, ReasonCode.MQRC_Q_MGR_STOPPING)


class SocketClient:
    """A connection to the gateway of a data folder, for one thread: mq_adapters.queue_manager.QueueAdministration.

    When the gateway goes away, every call is refused with 2009. The gateway has then backed out an open unit of work.
    The client cannot know whether a commit that was under way took place.
    """

    def __init__(self, where: Path | socket.socket, *, application_name: str = "", token: str = "") -> None:
        """Connects to the gateway of a data folder, or takes a socket that is connected to one, and closes it.

        `token` is that of an application. Raises QueueManagerError 2059 if no gateway listens, 2035 if this user or
        token may not connect, and 2025 if the user has too many connections.
        """
        self._socket: socket.socket | None = connected_socket(where) if isinstance(where, Path) else where
        self._stream: BufferedReader = self._socket.makefile("rb")
        self._number = 0
        self._is_broken = False
        self._abandoned_browses: list[int] = []
        try:
            version = frames.TOKEN_VERSION if token else frames.PROTOCOL_VERSION
            shown = (frames.text_field(token),) if token else ()
            hello = self._call(Verb.HELLO, u32(version), frames.text_field(application_name), *shown)
        except QueueManagerError as error:
            self.close()
            if error.reason_code != ReasonCode.MQRC_CONNECTION_BROKEN:
                raise
            raise QueueManagerError(ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE, f"connect to {_told(where)}") from error
        self.name = hello.name()
        self.incarnation = hello.take(_INCARNATION_BYTES)
        self.identifier = queue_manager_identifier(self.incarnation)

    # -- messages ----------------------------------------------------------------------------------------------------

    def put(self, queue_name: str, message: Message) -> bytes:
        if len(message.body) > DEFAULT_MAXIMUM_MESSAGE_BYTES:
            raise QueueManagerError(ReasonCode.MQRC_MSG_TOO_BIG_FOR_Q, f"put on {queue_name}")
        mqmd = write_mqmd(message)
        length = u32(len(mqmd) + len(message.body))
        return self._call(Verb.PUT, name_field(queue_name), length, mqmd, message.body).identifier()

    def get(
        self, queue_name: str, *, wait_s: float = 0.0, msg_id: bytes | None = None, correl_id: bytes | None = None
    ) -> Message:
        match = frames.match_field(msg_id, correl_id)
        return self._call(Verb.GET, name_field(queue_name), match, u32(_wait_ms(wait_s))).message()

    def browse(
        self, queue_name: str, *, msg_id: bytes | None = None, correl_id: bytes | None = None
    ) -> Cursor[tuple[int, int]]:
        match = frames.match_field(msg_id, correl_id)

        def start() -> Iterator[tuple[tuple[int, int], Message]]:
            while self._abandoned_browses:
                self._call(Verb.BROWSE_CLOSE, u32(self._abandoned_browses.pop()))
            return self._pages(self._call(Verb.BROWSE_OPEN, name_field(queue_name), match).u32())

        return Cursor(queue_name, start, self._take_browsed)

    def take_batch(self, queue_name: str, *, most_messages: int, most_bytes: int) -> tuple[Message, ...]:
        """Takes the oldest messages into the open unit of work, at least one if there is one; 2255 without a unit."""
        return self._call(Verb.TAKE_BATCH, name_field(queue_name), u32(most_messages), u32(most_bytes)).messages()

    def open_exclusively(self, queue_name: str, *, wait_s: float = 0.0) -> ExclusiveQueue:
        name = when_not_in_use(lambda: self._call(Verb.HOLD, name_field(queue_name)).name(), wait_s=wait_s)
        return ExclusiveQueue(self, name, self._release)

    def subscribe(
        self, topic: str, *, options: int, name: str = "", user_data: str = "", queue_name: str = "", expiry: int = 0
    ) -> SubscribedQueue:
        texts = (frames.text_field(each) for each in (topic, name, user_data))
        own = (bytes(IDENTIFIER_BYTES), u32(expiry), name_field(queue_name))
        answer = self._call(Verb.SUBSCRIBE, u32(options), *texts, *own)
        number, managed, correl_id = answer.u32(), answer.name(), answer.identifier()

        def end(close_options: int) -> None:
            if self._socket is not None and not self._is_broken:
                self._call(Verb.UNSUBSCRIBE, u32(number), u32(close_options))

        def request() -> int:
            return self._call(Verb.REQUEST_PUBLICATIONS, u32(number)).u32()

        return SubscribedQueue(self, managed, correl_id, end=end, request=request)

    # -- units of work -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._call(Verb.BEGIN)

    def operate(self, command: str, reason: str = "") -> None:
        self._call(Verb.OPERATE, frames.text_field(command), frames.text_field(reason))

    def keep_trail_head(self, head: str) -> None:
        """Keeps how far the trail reaches, with the open unit of work; 2035 for others than the trail's writer."""
        self._call(Verb.KEEP_TRAIL_HEAD, frames.text_field(head))

    def trail_head(self) -> str:
        """How far the trail reaches, as last committed; "" where nothing was kept."""
        return self._call(Verb.TRAIL_HEAD).text()

    def commit(self) -> None:
        self._call(Verb.COMMIT)

    def back_out(self) -> None:
        self._call(Verb.BACK_OUT)

    # -- queues ------------------------------------------------------------------------------------------------------

    def define(self, queue_name: str, *, description: str = "") -> None:
        name = name_field(queue_name, otherwise=ReasonCode.MQRC_OBJECT_NAME_ERROR)
        self._call(Verb.DEFINE, name, frames.text_field(description))

    def clear(self, queue_name: str) -> int:
        return self._call(Verb.CLEAR, name_field(queue_name)).u64()

    def compaction(self) -> Compaction:
        return self._compact(makes_step=False)

    def compact_some(self) -> Compaction:
        return self._compact(makes_step=True)

    def _compact(self, *, makes_step: bool) -> Compaction:
        fields = self._call(Verb.COMPACT, bytes((makes_step,)))
        is_done, size_bytes = bool(fields.u8()), fields.u64()
        return Compaction(size_bytes=size_bytes, free_bytes=fields.u64(), is_done=is_done)

    def depth(self, queue_name: str) -> int:
        return self._call(Verb.DEPTH, name_field(queue_name)).u64()

    def queues(self) -> tuple[QueueStatus, ...]:
        fields = self._call(Verb.QUEUES)
        return tuple(
            QueueStatus(name=fields.name(), depth=fields.u64(), oldest_put_us=fields.u64(), description=fields.text())
            for _ in range(fields.u32())
        )

    def create_dynamic(self, model_name: str, name: str = "AMQ.*") -> str:
        bad_name = ReasonCode.MQRC_DYNAMIC_Q_NAME_ERROR
        return self._call(Verb.CREATE, name_field(model_name), name_field(name, otherwise=bad_name)).name()

    def inquire(self, name: str) -> Definition:
        return self._call(Verb.INQUIRE, name_field(name)).definition()

    def maximum_message_bytes(self, queue_name: str) -> int:
        return longest_message_bytes(self.inquire(queue_name), self.inquire(""))

    def mqsc(self, command: str) -> MqscAnswer:
        fields = self._call(Verb.MQSC, frames.text_field(command))
        succeeded = bool(fields.u8())
        return MqscAnswer(lines=tuple(fields.text() for _ in range(fields.u32())), succeeded=succeeded)

    # -- the connection ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Disconnects. The gateway backs out an open unit of work."""
        if self._socket is not None:
            self._stream.close()
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _release(self, name: str) -> None:
        """Gives the queue free. Without a connection the gateway has done so already."""
        if self._socket is not None and not self._is_broken:
            self._call(Verb.RELEASE, name_field(name))

    def _take_browsed(self, place: tuple[int, int]) -> Message:
        return self._call(Verb.TAKE_BROWSED, u32(place[0]), u32(place[1])).message()

    def _pages(self, browse: int) -> Iterator[tuple[tuple[int, int], Message]]:
        """The messages of a browse, each with the browse's number and its place in the page.

        A browse that is left early is closed before the next one opens, because this code may run at any moment.
        """
        is_read = False
        try:
            while page := self._call(Verb.BROWSE_NEXT, u32(browse)).messages():
                for place, message in enumerate(page):
                    yield (browse, place), message
            is_read = True
        finally:
            if not is_read:
                self._abandoned_browses.append(browse)

    def _call(self, verb: Verb, *fields: bytes) -> FrameFields:
        """One request and its answer.

        An interruption breaks the connection, because the next call would read this answer.
        """
        if self._socket is None or self._is_broken:
            broken = ReasonCode.MQRC_CONNECTION_BROKEN if self._is_broken else ReasonCode.MQRC_HCONN_ERROR
            raise QueueManagerError(broken, verb.name)
        self._number = self._number % 0xFFFF_FFFF + 1
        frame = request_frame(verb, self._number, *fields)
        self._is_broken = True
        try:
            self._socket.sendall(frame)
            answer = self._answer(verb)
        except (OSError, FrameError) as error:
            raise QueueManagerError(ReasonCode.MQRC_CONNECTION_BROKEN, f"{verb.name}: {error}") from error
        self._is_broken = False
        return answer

    def _answer(self, verb: Verb) -> FrameFields:
        length = int.from_bytes(self._read(_LENGTH_BYTES), "little")
        if not _ANSWER_BYTES <= length <= 2 * frames.MAXIMUM_FRAME_BYTES:
            raise FrameError(f"an answer of {length} bytes")
        fields = FrameFields(self._read(length))
        answered_verb, number, _completion, reason_code = fields.u8(), fields.u32(), fields.u32(), fields.u32()
        if reason_code:
            self._is_broken = reason_code in _CLOSING_REASONS
            raise QueueManagerError(reason_code, fields.text())
        if (answered_verb, number) != (verb, self._number):
            raise FrameError(f"an answer to request {number}, not to {self._number}")
        return fields

    def _read(self, length: int) -> bytes:
        data = self._stream.read(length)
        if len(data) < length:
            raise ConnectionError("the gateway closed the connection")
        return data


def _told(where: Path | socket.socket) -> str:
    return "the gateway that started this process" if isinstance(where, socket.socket) else str(where)


def _wait_ms(wait_s: float) -> int:
    if math.isinf(wait_s) and wait_s > 0:
        return frames.WAIT_FOR_EVER_MS
    return min(max(0, math.ceil(wait_s * 1000)), frames.WAIT_FOR_EVER_MS - 1)
