"""The MQI calls of one connection, carried out on the embedded engine.

What a program puts and gets under syncpoint belongs to the connection's unit of work, everything else to itself; so
there are two applications of the engine for each connection. Source of the rules: the pages of each call in the IBM MQ
documentation, and `mq_adapters/embedded/application.py` for what the engine does.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Final

from mq_adapters.embedded.application import Application
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import Message
from mq_adapters.mqmd import write_mqmd
from mq_adapters.reasons import QueueManagerError, ReasonCode
from tests.ibm_mq_stand_in.attributes import inquire, set_attributes
from tests.ibm_mq_stand_in.messages import (
    GetRequest,
    get_request,
    message_to_put,
    passed_context,
    put_options,
)
from tests.ibm_mq_stand_in.open_object import CONTEXTS, INPUT, OpenObject, open_object
from tests.ibm_mq_stand_in.options import MQCO, MQGMO, MQOO, MQPMO, Reason
from tests.ibm_mq_stand_in.state import State
from tests.ibm_mq_stand_in.wire import (
    MQCC_WARNING,
    MQMD_BYTES,
    Answer,
    ConnectRequest,
    GetOptions,
    ObjectDescriptor,
    PutOptions,
    Reader,
    Verb,
    name_field,
    number_field,
    read_connect,
)

_CORREL_ID: Final = slice(72, 96)
_IDENTIFIER_BYTES: Final = 24
_KNOWN_OPEN: Final = int(~MQOO(0))


class Calls:
    """One connection's objects and its unit of work. Each call takes the fields of its request."""

    def __init__(self, state: State, program: ConnectRequest) -> None:
        self.program = program
        #: What was put in the open unit of work, for faults that look into messages.
        self.uncommitted: list[bytes] = []
        #: The name of the object of the last call, for the trace.
        self.object_name = ""
        self._state = state
        self._inside = Application(state.engine, program.application)
        self._has_unit = False
        self._outside = Application(state.engine, program.application)
        self._objects: dict[int, OpenObject] = {}
        self._last_hobj = 0
        self._woken: asyncio.Event | None = None
        self._carried_out: dict[Verb, Callable[[Reader], Awaitable[Answer]]] = {
            Verb.MQOPEN: self._open,
            Verb.MQCLOSE: self._close,
            Verb.MQPUT: self._put,
            Verb.MQPUT1: self._put1,
            Verb.MQGET: self._get,
            Verb.MQBEGIN: self._begin,
            Verb.MQCMIT: self._commit,
            Verb.MQBACK: self._back_out,
            Verb.MQINQ: self._inquire,
            Verb.MQSET: self._set,
            Verb.MQDISC: self._commit,
        }

    async def carry_out(self, verb: Verb, fields: bytes) -> Answer:
        """Carries out one call; QueueManagerError for MQCC_FAILED."""
        self.object_name = ""
        return await self._carried_out[verb](Reader(fields))

    def wake(self) -> None:
        """A waiting get looks again."""
        if self._woken is not None:
            self._woken.set()

    def end(self) -> None:
        """The program has gone: what is open is backed out and closed."""
        self.back_out()
        for hobj in tuple(self._objects):
            self._close_object(self._objects.pop(hobj))
        self._inside.close()
        self._outside.close()

    def back_out(self) -> None:
        """Backs out the open unit of work."""
        self.uncommitted.clear()
        self._has_unit = False
        self._inside.back_out()

    # -- objects -----------------------------------------------------------------------------------------------------

    async def _open(self, reader: Reader) -> Answer:
        number, descriptor = reader.number(), ObjectDescriptor(reader.take(424))
        self.object_name = descriptor.object_name
        opened = self._opened(descriptor, number)
        self._last_hobj += 1
        self._objects[self._last_hobj] = opened
        return Answer(fields=number_field(self._last_hobj) + bytes(descriptor.bytes))

    def _opened(self, descriptor: ObjectDescriptor, number: int) -> OpenObject:
        if number & ~_KNOWN_OPEN:
            raise QueueManagerError(Reason.MQRC_OPTIONS_ERROR, f"open with options {number:#x}")
        opened, queue_name = open_object(self._state, self._outside, descriptor, MQOO(number))
        descriptor.resolve("" if opened.is_queue_manager else opened.name, queue_name, self._state.engine.name)
        return opened

    def _object(self, hobj: int) -> OpenObject:
        opened = self._objects.get(hobj)
        if opened is None:
            raise QueueManagerError(ReasonCode.MQRC_HOBJ_ERROR, f"handle {hobj}")
        self.object_name = opened.name
        return opened

    async def _close(self, reader: Reader) -> Answer:
        hobj, number = reader.number(), reader.number()
        opened = self._object(hobj)
        options = MQCO(number & int(~MQCO(0)))
        if options and not opened.is_own_dynamic_queue:
            raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, f"close and delete {opened.name}")
        self._close_object(self._objects.pop(hobj))
        return Answer()

    def _close_object(self, opened: OpenObject) -> None:
        opened.close()
        if opened.is_own_dynamic_queue and not opened.get_queue().is_deleted and self._state.engine.failed is None:
            self._state.engine.objects.delete_queue(opened.get_queue())

    # -- puts --------------------------------------------------------------------------------------------------------

    async def _put(self, reader: Reader) -> Answer:
        opened = self._object(reader.number())
        opened.require(MQOO.OUTPUT, Reason.MQRC_NOT_OPEN_FOR_OUTPUT)
        mqmd, pmo = reader.take(MQMD_BYTES), PutOptions(reader.take(184))
        for context, needed, reason, _authority in CONTEXTS:
            if pmo.options & context:
                opened.require(needed, reason)
        return Answer(fields=await self._put_message(opened.name, mqmd, pmo, reader.rest()))

    async def _put1(self, reader: Reader) -> Answer:
        descriptor = ObjectDescriptor(reader.take(424))
        mqmd, pmo = reader.take(MQMD_BYTES), PutOptions(reader.take(184))
        self.object_name = descriptor.object_name
        needed = MQOO.OUTPUT
        for context, also_needed, _reason, _authority in CONTEXTS:
            needed |= also_needed if pmo.options & context else MQOO(0)
        opened = self._opened(descriptor, int(needed))
        try:
            put = await self._put_message(opened.name, mqmd, pmo, reader.rest())
        finally:
            self._close_object(opened)
        return Answer(fields=bytes(descriptor.bytes) + put)

    async def _put_message(self, name: str, mqmd: bytes, pmo: PutOptions, body: bytes) -> bytes:
        options = put_options(pmo.options)
        self._state.check_quiescing(options & MQPMO.FAIL_IF_QUIESCING)
        if len(body) > self._longest_on_channel():
            raise QueueManagerError(Reason.MQRC_MSG_TOO_BIG_FOR_CHANNEL, f"put on {name}")
        if options & MQPMO.NEW_CORREL_ID:
            mqmd = mqmd[: _CORREL_ID.start] + os.urandom(_IDENTIFIER_BYTES) + mqmd[_CORREL_ID.stop :]
        passed = passed_context(self._objects.get(pmo.context), options)
        message = message_to_put(mqmd, body, options, self.program, passed)
        await self._put_completed(name, message, under_syncpoint=bool(options & MQPMO.SYNCPOINT))
        pmo.resolve(name, self._state.engine.name)
        return write_mqmd(message) + bytes(pmo.bytes)

    async def _put_completed(self, name: str, message: Message, *, under_syncpoint: bool) -> None:
        if not under_syncpoint:
            await self._until(lambda done: self._outside.put(name, message, done))
            return
        self._begin_unit()
        await self._until(lambda done: self._inside.put(name, message, done))
        if self._state.faults.look_into_messages:
            self.uncommitted.append(message.body)

    def _longest_on_channel(self) -> int:
        limit = self._state.switches.channel_bytes
        own = self.program.max_msg_length
        return min(limit, own) if self.program.channel and own > 0 else limit

    # -- gets --------------------------------------------------------------------------------------------------------

    async def _get(self, reader: Reader) -> Answer:
        opened = self._object(reader.number())
        mqmd, gmo = reader.take(MQMD_BYTES), GetOptions(reader.take(112))
        request = get_request(gmo, mqmd, reader.number())
        if request.browses:
            opened.require(MQOO.BROWSE, Reason.MQRC_NOT_OPEN_FOR_BROWSE)
        else:
            opened.require(INPUT, Reason.MQRC_NOT_OPEN_FOR_INPUT)
        if request.options & MQGMO.BROWSE_FIRST:
            opened.browse_first()
        message = await self._found(opened, request)
        is_whole = len(message.body) <= request.buffer_bytes
        fits = is_whole or bool(request.options & MQGMO.ACCEPT_TRUNCATED_MSG)
        delivered = self._descriptor(opened, request, message)
        await self._settle(opened, request, message, is_accepted=fits)
        reason = (
            0 if is_whole else int(Reason.MQRC_TRUNCATED_MSG_ACCEPTED if fits else Reason.MQRC_TRUNCATED_MSG_FAILED)
        )
        body = message.body[: request.buffer_bytes]
        gmo.resolve(opened.get_queue().name, len(body))
        fields = delivered + bytes(gmo.bytes) + number_field(len(message.body)) + body
        return Answer(fields=fields, comp_code=MQCC_WARNING if reason else 0, reason=reason)

    def _descriptor(self, opened: OpenObject, request: GetRequest, message: Message) -> bytes:
        """The MQMD of what was found; where it has none that can be given, the message goes back."""
        try:
            return write_mqmd(message, now_us=self._state.engine.now_us())
        except QueueManagerError:
            if not request.browses:
                self._state.engine.give_back([(opened.get_queue(), message)])
            raise

    async def _found(self, opened: OpenObject, request: GetRequest) -> Message:
        """The message, taken or browsed, when it comes; 2033 when the wait is over."""
        message = self._look(opened, request)
        if message is None and request.wait_s != 0:
            message = await self._wait_for(opened, request)
        if message is None:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_AVAILABLE, f"get from {opened.name}")
        return message

    def _look(self, opened: OpenObject, request: GetRequest) -> Message | None:
        self._state.check_quiescing(request.options & MQGMO.FAIL_IF_QUIESCING)
        queue = self._state.engine.objects.getting(opened.name)
        if request.options & MQGMO.MSG_UNDER_CURSOR:
            return self._outside.take_number(queue, self._under_cursor(opened).sequence)
        if request.options & MQGMO.BROWSE_MSG_UNDER_CURSOR:
            return self._under_cursor(opened)
        if request.browses:
            return opened.next_browsed(self._outside, (request.correl_id, request.msg_id))
        application = self._inside if request.options & MQGMO.SYNCPOINT else self._outside
        return application.take(queue, request.correl_id, request.msg_id)

    def _under_cursor(self, opened: OpenObject) -> Message:
        if opened.browsed is None:
            raise QueueManagerError(ReasonCode.MQRC_NO_MSG_UNDER_CURSOR, f"get from {opened.name}")
        return opened.browsed

    async def _wait_for(self, opened: OpenObject, request: GetRequest) -> Message | None:
        woken = self._woken = asyncio.Event()
        queue = opened.get_queue()
        queue.listen(request.correl_id, woken.set)
        try:
            async with asyncio.timeout(request.wait_s):
                while (message := self._look(opened, request)) is None:
                    await woken.wait()
                    woken.clear()
                return message
        except TimeoutError:
            return None
        finally:
            queue.unlisten(request.correl_id, woken.set)
            self._woken = None

    async def _settle(self, opened: OpenObject, request: GetRequest, message: Message, *, is_accepted: bool) -> None:
        """Removes what was got, or moves the cursor; a message that does not fit stays as it was."""
        queue = opened.get_queue()
        if request.browses:
            if is_accepted:
                opened.browsed = message
            else:
                opened.stay()
            return
        if not is_accepted:
            self._state.engine.give_back([(queue, message)], wake=False)
            return
        await self._remove(queue, message, under_syncpoint=request.wants_syncpoint(message))
        if opened.options & MQOO.SAVE_ALL_CONTEXT:
            opened.saved_context = message.descriptor

    async def _remove(self, queue: Queue, message: Message, *, under_syncpoint: bool) -> None:
        application = self._inside if under_syncpoint else self._outside
        if under_syncpoint:
            self._begin_unit()
        await self._until(lambda done: application.remove(queue, message, done))

    # -- units of work -----------------------------------------------------------------------------------------------

    def _begin_unit(self) -> None:
        """A call under syncpoint: the first one opens the unit of work."""
        if not self._has_unit:
            self._inside.begin()
            self._has_unit = True

    async def _begin(self, _reader: Reader) -> Answer:
        """MQBEGIN is for global units of work, which there are none of."""
        raise QueueManagerError(Reason.MQRC_ENVIRONMENT_ERROR, "begin a global unit of work")

    async def _commit(self, _reader: Reader) -> Answer:
        self.uncommitted.clear()
        self._has_unit = False
        await self._until(self._inside.commit)
        return Answer()

    async def _back_out(self, _reader: Reader) -> Answer:
        self.back_out()
        return Answer()

    async def _until(self, call: Callable[[Callable[[], None]], None]) -> None:
        """Makes a call of the engine, and waits until its effect is committed."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        call(lambda: None if done.done() else done.set_result(None))
        await done

    # -- attributes --------------------------------------------------------------------------------------------------

    async def _inquire(self, reader: Reader) -> Answer:
        opened = self._object(reader.number())
        selector_count, most_numbers, most_characters = reader.numbers(3)
        return inquire(self._state, opened, reader.numbers(selector_count), most_numbers, most_characters)

    async def _set(self, reader: Reader) -> Answer:
        opened = self._object(reader.number())
        selector_count, number_count, _characters = reader.numbers(3)
        set_attributes(self._state, opened, reader.numbers(selector_count), reader.numbers(number_count))
        return Answer()


def connect(state: State, fields: bytes) -> tuple[Calls, Answer]:
    """MQCONN and MQCONNX: the switched refusal, 2161, 2058 for another name, 2035 without the password."""
    program = read_connect(fields)
    switches = state.switches
    if switches.connect_refusal:
        raise QueueManagerError(switches.connect_refusal, "connect")
    state.check_quiescing(1)
    if program.queue_manager_name.removeprefix("*") not in ("", state.engine.name):
        raise QueueManagerError(Reason.MQRC_Q_MGR_NAME_ERROR, f"connect to {program.queue_manager_name}")
    if switches.passwords and (not program.user or switches.passwords.get(program.user) != program.password):
        raise QueueManagerError(ReasonCode.MQRC_NOT_AUTHORIZED, "connect")
    return Calls(state, program), Answer(fields=name_field(state.engine.name))
