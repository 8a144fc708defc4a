"""One MQ application's connection to the gateway: its requests, carried out in order, and their answers.

It lives in the daemon's event loop, on its engine. A connection has at most one open unit of work. The gateway backs it
out the moment the application goes away. COMMIT is answered after the commit, and so is a PUT or GET outside a unit of
work. Layout of the frames: mq_adapters/embedded/socket/frames.py; what a call does:
mq_adapters/embedded/application.py.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final, cast

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.publications import delivered
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.queue import Queue
from mq_adapters.embedded.rights import EVERY_TOPIC, EVERYTHING
from mq_adapters.embedded.socket import frames
from mq_adapters.embedded.socket.applications import AdmittedApplication
from mq_adapters.embedded.socket.frames import FrameBuffer, FrameError, FrameFields, Verb, answer_frame, u32, u64
from mq_adapters.embedded.socket.open_browse import OpenBrowses
from mq_adapters.embedded.socket.pace import Charge, Pace, free_of_charge
from mq_adapters.embedded.socket.peer import peer_uid
from mq_adapters.embedded.socket.subscriptions import SocketSubscriptions
from mq_adapters.embedded.socket.waiting_get import WaitingGet
from mq_adapters.message import Message
from mq_adapters.mqmd import write_mqmd
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

#: The most unanswered requests of one connection. With so many, the gateway reads no more from it.
MAXIMUM_UNANSWERED: Final = 256
#: The most output bytes that wait for an application. With so many, the gateway reads no more requests from it.
MAXIMUM_OUTPUT_BYTES: Final = 4 * 1024 * 1024
#: The most bytes of bodies in one answer to TAKE_BATCH. A larger message comes alone.
MAXIMUM_BATCH_BYTES: Final = 16 * 1024 * 1024

#: A connection without HELLO is closed after so many seconds.
HELLO_WAIT_S: Final = 10.0

#: Gives an application its rights by its socket and its token, or raises QueueManagerError 2035 or 2025.
Admit = Callable[[socket.socket, str], AdmittedApplication]

_log = logging.getLogger(__name__)


class SocketConnection(asyncio.Protocol):
    """One application's connection: reads its requests, carries them out in order, writes the answers."""

    def __init__(
        self, engine: Engine, connections: "set[SocketConnection]", *, admit: Admit, charge: Charge = free_of_charge
    ) -> None:
        self._engine = engine
        self._admit = admit
        self._pace = Pace(charge, self._go_on)
        #: The number of the application's user.
        self.user_id = -1
        #: The role of the token that the application has shown.
        self.token_role = ""
        self._hello_timer: asyncio.TimerHandle
        self._connections = connections
        self._application: Application | None = None
        self._subscriptions: SocketSubscriptions | None = None
        self._transport: asyncio.Transport
        self._input = FrameBuffer()
        self._waiting: WaitingGet | None = None
        self._browses = OpenBrowses(engine)
        self._unanswered = 0
        self._output_is_full = False
        self._is_closed = False

    # -- what asyncio calls --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=MAXIMUM_OUTPUT_BYTES)
        self.user_id = peer_uid(transport.get_extra_info("socket"))
        self._hello_timer = asyncio.get_running_loop().call_later(HELLO_WAIT_S, self.close)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._input.feed(data)
        self._carry_out_requests()

    def pause_writing(self) -> None:
        self._output_is_full = True
        self._pause_reading()

    def resume_writing(self) -> None:
        self._output_is_full = False
        self._go_on()

    def connection_lost(self, _error: Exception | None) -> None:
        self._is_closed = True
        self._hello_timer.cancel()
        self._connections.discard(self)
        self._browses.clear()
        self._leave_wait()
        self._pace.end()
        self._end_application()

    # -- what the server calls -----------------------------------------------------------------------------------------

    def stop_waiting(self) -> None:
        """Reads no more requests and answers a waiting GET, because the queue manager stops."""
        self._is_closed = True
        self._pause_reading()
        if self._waiting is not None:
            self._end_wait(ReasonCode.MQRC_Q_MGR_STOPPING)

    def close(self) -> None:
        """Sends the answers that are ready, backs out the open unit of work, and closes."""
        self._is_closed = True
        self._end_application()
        self._transport.close()

    def _end_application(self) -> None:
        if self._subscriptions is not None:
            self._subscriptions.end()
        if self._application is not None:
            self._application.close()

    # -- requests and answers ------------------------------------------------------------------------------------------

    @property
    def _is_held(self) -> bool:
        return self._output_is_full or self._unanswered >= MAXIMUM_UNANSWERED or self._pace.is_resting

    def _carry_out_requests(self) -> None:
        try:
            while not self._is_held and not self._is_closed and (frame := self._input.next_frame()) is not None:
                self._carry_out(frame)
        except FrameError as error:
            self._unanswered += 1
            self._refuse_frame(0, 0, error)
        if self._is_held:
            self._pause_reading()

    def _pause_reading(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def _go_on(self) -> None:
        """Carries out the requests that came meanwhile, and reads again."""
        if self._is_closed or self._is_held or self._transport.is_closing():
            return
        self._transport.resume_reading()
        if len(self._input):
            asyncio.get_running_loop().call_soon(self._carry_out_requests)

    def _carry_out(self, frame: bytes) -> None:
        fields = FrameFields(frame)
        verb, number = fields.u8(), fields.u32()
        self._unanswered += 1
        try:
            self._check_order(verb)
            _REQUESTS[Verb(verb)](self, number, fields)
        except QueueManagerError as error:
            self._refuse(verb, number, error.reason_code, error.operation)
        except FrameError as error:
            self._refuse_frame(verb, number, error)
        except StoreError as error:
            self._refuse(verb, number, ReasonCode.MQRC_Q_MGR_STOPPING, str(error))
            self.close()

    def _check_order(self, verb: int) -> None:
        if verb not in _REQUESTS:
            raise FrameError(f"verb {verb} is unknown")
        if (verb == Verb.HELLO) is not (self._application is None):
            raise FrameError("HELLO comes first, and once")
        if self._waiting is not None:
            raise QueueManagerError(ReasonCode.MQRC_CALL_IN_PROGRESS, f"{Verb(verb).name} while a GET waits")

    def _answer(self, verb: int, number: int, *fields: bytes, reason_code: int = 0) -> None:
        self._unanswered -= 1
        if self._transport.is_closing():
            return
        was_held = self._unanswered + 1 >= MAXIMUM_UNANSWERED
        self._transport.write(answer_frame(verb, number, *fields, reason_code=reason_code))
        if was_held:
            self._go_on()

    def _refuse(self, verb: int, number: int, reason_code: int, operation: str) -> None:
        self._answer(verb, number, frames.text_field(operation), reason_code=reason_code)

    def _refuse_frame(self, verb: int, number: int, error: FrameError) -> None:
        """Tells the peer that it broke the layout, and closes."""
        _log.warning("socket frame refused reason=%r", str(error))
        self._answer(verb, number, frames.text_field(str(error)), reason_code=ReasonCode.MQRC_UNEXPECTED_ERROR)
        self.close()

    def _call(self) -> Application:
        assert self._application is not None, "HELLO comes first"
        return self._application

    def _message_field(self, message: Message) -> bytes:
        message = delivered(message)
        mqmd = write_mqmd(message, now_us=self._engine.now_us())
        return u32(len(mqmd) + len(message.body)) + mqmd + message.body

    # -- the verbs -----------------------------------------------------------------------------------------------------

    def _hello(self, number: int, fields: FrameFields) -> None:
        version, name = fields.u32(), fields.text()
        if version not in (frames.PROTOCOL_VERSION, frames.TOKEN_VERSION):
            raise FrameError(f"protocol version {version}; this gateway speaks {frames.TOKEN_VERSION} and below")
        token = fields.text() if version == frames.TOKEN_VERSION else ""
        fields.end()
        self._hello_timer.cancel()
        admitted = self._admit(self._transport.get_extra_info("socket"), token)
        self.token_role = admitted.role if token else ""
        self._application = Application(
            self._engine, name, user=admitted.user, operator=admitted.operator, rights=admitted.rights
        )
        topics = EVERY_TOPIC if admitted.rights is EVERYTHING else admitted.topics
        self._subscriptions = SocketSubscriptions(self._engine, self._application, topics)
        self._application.on_submitted = lambda unit: self._pace.charge(admitted.account, unit)
        self._input.maximum_bytes = frames.MAXIMUM_FRAME_BYTES
        self._answer(Verb.HELLO, number, frames.name_field(self._engine.name), self._engine.incarnation)

    def _put(self, number: int, fields: FrameFields) -> None:
        queue_name, message = fields.name(), fields.message()
        fields.end()
        self._call().put(queue_name, message, lambda: self._answer(Verb.PUT, number, message.msg_id))

    def _get(self, number: int, fields: FrameFields) -> None:
        queue_name = fields.name()
        msg_id, correl_id = fields.match()
        wait_ms = fields.u32()
        fields.end()
        queue = self._call().getting(queue_name)
        if self._get_now(number, queue, correl_id, msg_id):
            return
        if not wait_ms:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_AVAILABLE, f"get from {queue_name}")
        self._waiting = WaitingGet(number, queue, correl_id, msg_id, self._wake)
        self._call().awaited_queue = queue
        if wait_ms != frames.WAIT_FOR_EVER_MS:
            self._waiting.timer = asyncio.get_running_loop().call_later(
                wait_ms / 1000, self._end_wait, ReasonCode.MQRC_NO_MSG_AVAILABLE
            )

    def _get_now(self, number: int, queue: Queue, correl_id: bytes | None, msg_id: bytes | None) -> bool:
        message = self._call().take(queue, correl_id, msg_id)
        if message is None:
            return False
        self._deliver(Verb.GET, number, queue, message)
        return True

    def _deliver(self, verb: Verb, number: int, queue: Queue, message: Message) -> None:
        """Answers with a message and removes it from its queue. If the answer fails, the message goes back."""
        try:
            field = self._message_field(message)
        except QueueManagerError:
            self._engine.give_back([(queue, message)])
            raise
        self._call().remove(queue, message, lambda: self._answer(verb, number, field))

    def _wake(self) -> None:
        """Messages arrived on the queue of a waiting GET. Another application may have taken them.

        Never raises into the engine.
        """
        waiting = self._waiting
        if waiting is None or self._transport.is_closing():
            return
        try:
            if not self._get_now(waiting.number, waiting.queue, waiting.correl_id, waiting.msg_id):
                return
        except QueueManagerError as error:
            self._end_wait(error.reason_code)
        except StoreError:
            self._end_wait(ReasonCode.MQRC_Q_MGR_STOPPING)
        else:
            self._leave_wait()

    def _leave_wait(self) -> WaitingGet | None:
        """Ends the wait of the GET, and returns that GET."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.end()
            self._call().awaited_queue = None
        return waiting

    def _end_wait(self, reason_code: int) -> None:
        waiting = self._leave_wait()
        if waiting is not None:
            self._refuse(Verb.GET, waiting.number, reason_code, f"get from {waiting.queue.name}")

    def _browse_open(self, number: int, fields: FrameFields) -> None:
        queue_name = fields.name()
        msg_id, correl_id = fields.match()
        fields.end()
        browse = self._browses.open(self._call(), queue_name, correl_id, msg_id)
        self._answer(Verb.BROWSE_OPEN, number, u32(browse))

    def _browse_next(self, number: int, fields: FrameFields) -> None:
        browse = fields.u32()
        fields.end()
        page = self._browses.next_page(self._call(), browse)
        self._answer(Verb.BROWSE_NEXT, number, u32(len(page)), *map(self._message_field, page))

    def _take_browsed(self, number: int, fields: FrameFields) -> None:
        browse, place = fields.u32(), fields.u32()
        fields.end()
        opened = self._browses.found(browse)
        if place >= len(opened.last_page):
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_UNDER_CURSOR, f"get from {opened.queue.name}")
        self._call().getting(opened.name)
        message = self._call().take_number(opened.queue, opened.last_page[place])
        self._deliver(Verb.TAKE_BROWSED, number, opened.queue, message)

    def _browse_close(self, number: int, fields: FrameFields) -> None:
        browse = fields.u32()
        fields.end()
        self._browses.end(self._call(), browse)
        self._answer(Verb.BROWSE_CLOSE, number)

    def _ask_subscriptions(self, verb: Verb, number: int, fields: FrameFields) -> None:
        assert self._subscriptions is not None, "HELLO comes first"

        def refused(error: QueueManagerError) -> None:
            self._refuse(verb, number, error.reason_code, error.operation)

        self._subscriptions.carry_out(verb, fields, lambda *answer: self._answer(verb, number, *answer), refused)

    def _subscribe(self, number: int, fields: FrameFields) -> None:
        self._ask_subscriptions(Verb.SUBSCRIBE, number, fields)

    def _unsubscribe(self, number: int, fields: FrameFields) -> None:
        self._ask_subscriptions(Verb.UNSUBSCRIBE, number, fields)

    def _request_publications(self, number: int, fields: FrameFields) -> None:
        self._ask_subscriptions(Verb.REQUEST_PUBLICATIONS, number, fields)

    def _begin(self, number: int, fields: FrameFields) -> None:
        fields.end()
        self._call().begin()
        self._answer(Verb.BEGIN, number)

    def _operate(self, number: int, fields: FrameFields) -> None:
        command, reason = fields.text(), fields.text()
        fields.end()
        self._call().operate(command, reason)
        self._answer(Verb.OPERATE, number)

    def _keep_trail_head(self, number: int, fields: FrameFields) -> None:
        head = fields.text()
        fields.end()
        self._call().keep_trail_head(head)
        self._answer(Verb.KEEP_TRAIL_HEAD, number)

    def _trail_head(self, number: int, fields: FrameFields) -> None:
        fields.end()
        self._call().trail_head(lambda head: self._answer(Verb.TRAIL_HEAD, number, frames.text_field(head)))

    def _commit(self, number: int, fields: FrameFields) -> None:
        fields.end()
        self._call().commit(lambda: self._answer(Verb.COMMIT, number))

    def _back_out(self, number: int, fields: FrameFields) -> None:
        fields.end()
        self._call().back_out()
        # Answered behind the commit of the back-out counts, so that they survive a restart.
        self._engine.submit(self._engine.begin(), lambda _unit: self._answer(Verb.BACK_OUT, number))

    def _define(self, number: int, fields: FrameFields) -> None:
        queue_name, description = fields.name(), fields.text()
        fields.end()
        self._call().define(queue_name, description)
        self._answer(Verb.DEFINE, number)

    def _clear(self, number: int, fields: FrameFields) -> None:
        queue_name = fields.name()
        fields.end()
        left = self._engine.queue(queue_name).depth
        removed = 0

        def cleared(count: int) -> None:
            nonlocal removed
            removed += count
            if not count or removed >= left or self._is_closed:
                self._answer(Verb.CLEAR, number, u64(removed))
                return
            try:
                self._call().clear_some(queue_name, cleared)
            except QueueManagerError as error:  # the name leads nowhere any more
                self._refuse(Verb.CLEAR, number, error.reason_code, error.operation)
            except StoreError:
                self.close()

        self._call().clear_some(queue_name, cleared)

    def _compact(self, number: int, fields: FrameFields) -> None:
        call = self._call().compact_some if fields.u8() else self._engine.maintenance.compaction
        fields.end()
        self._call().check_everything("compact the store")

        def compact() -> None:
            try:
                step = call()
            except QueueManagerError as error:
                self._refuse(Verb.COMPACT, number, error.reason_code, error.operation)
            except StoreError:
                self.close()
            else:
                said = bytes((step.is_done,)), u64(step.size_bytes), u64(step.free_bytes)
                self._answer(Verb.COMPACT, number, *said)

        self._engine.submit(self._engine.begin(), lambda _unit: compact())  # after a commit that is under way

    def _depth(self, number: int, fields: FrameFields) -> None:
        queue_name = fields.name()
        fields.end()
        self._answer(Verb.DEPTH, number, u64(self._call().depth(queue_name)))

    def _queues(self, number: int, fields: FrameFields) -> None:
        fields.end()
        statuses = self._call().queues()
        rows = (
            frames.name_field(status.name)
            + u64(status.depth)
            + u64(status.oldest_put_us)
            + frames.text_field(status.description)
            for status in statuses
        )
        self._answer(Verb.QUEUES, number, u32(len(statuses)), *rows)

    def _take_batch(self, number: int, fields: FrameFields) -> None:
        queue_name, most_messages, most_bytes = fields.name(), fields.u32(), fields.u32()
        fields.end()
        most_bytes = min(most_bytes, MAXIMUM_BATCH_BYTES)
        batch = self._call().take_batch(queue_name, most_messages=most_messages, most_bytes=most_bytes)
        self._answer(Verb.TAKE_BATCH, number, u32(len(batch)), *map(self._message_field, batch))

    def _hold(self, number: int, fields: FrameFields) -> None:
        queue_name = fields.name()
        fields.end()
        self._call().hold(queue_name, lambda name: self._answer(Verb.HOLD, number, frames.name_field(name)))

    def _release(self, number: int, fields: FrameFields) -> None:
        queue_name = fields.name()
        fields.end()
        self._call().release(queue_name)
        self._answer(Verb.RELEASE, number)

    def _create(self, number: int, fields: FrameFields) -> None:
        model_name, name = fields.name(), fields.name()
        fields.end()
        self._answer(Verb.CREATE, number, frames.name_field(self._call().create_dynamic(model_name, name)))

    def _inquire(self, number: int, fields: FrameFields) -> None:
        name = fields.name()
        fields.end()
        self._answer(Verb.INQUIRE, number, frames.definition_field(self._call().inquire(name)))

    def _mqsc(self, number: int, fields: FrameFields) -> None:
        command = fields.text()
        fields.end()
        here = self._call()
        answer = CommandServer(self._engine, here.user, here.operator, here.rights).execute(command)
        fields_of_answer = bytes((answer.succeeded,)), u32(len(answer.lines)), *map(frames.text_field, answer.lines)
        # Behind the units of work that the command itself submitted.
        self._engine.submit(self._engine.begin(), lambda _unit: self._answer(Verb.MQSC, number, *fields_of_answer))


_REQUESTS: Final[dict[int, Callable[[SocketConnection, int, FrameFields], None]]] = {
    Verb.HELLO: SocketConnection._hello,
    Verb.PUT: SocketConnection._put,
    Verb.GET: SocketConnection._get,
    Verb.BROWSE_OPEN: SocketConnection._browse_open,
    Verb.BROWSE_NEXT: SocketConnection._browse_next,
    Verb.BROWSE_CLOSE: SocketConnection._browse_close,
    Verb.BEGIN: SocketConnection._begin,
    Verb.COMMIT: SocketConnection._commit,
    Verb.BACK_OUT: SocketConnection._back_out,
    Verb.DEFINE: SocketConnection._define,
    Verb.CLEAR: SocketConnection._clear,
    Verb.DEPTH: SocketConnection._depth,
    Verb.QUEUES: SocketConnection._queues,
    Verb.TAKE_BATCH: SocketConnection._take_batch,
    Verb.TAKE_BROWSED: SocketConnection._take_browsed,
    Verb.CREATE: SocketConnection._create,
    Verb.INQUIRE: SocketConnection._inquire,
    Verb.MQSC: SocketConnection._mqsc,
    Verb.HOLD: SocketConnection._hold,
    Verb.RELEASE: SocketConnection._release,
    Verb.COMPACT: SocketConnection._compact,
    Verb.OPERATE: SocketConnection._operate,
    Verb.KEEP_TRAIL_HEAD: SocketConnection._keep_trail_head,
    Verb.TRAIL_HEAD: SocketConnection._trail_head,
    Verb.SUBSCRIBE: SocketConnection._subscribe,
    Verb.UNSUBSCRIBE: SocketConnection._unsubscribe,
    Verb.REQUEST_PUBLICATIONS: SocketConnection._request_publications,
}
