"""One program's connection to the stand-in's queue manager: its requests, the faults that strike them, the answers.

A program that goes away, however it does, is backed out at once.
"""

import asyncio
import contextlib
import logging
from typing import cast

from mq_adapters.reasons import QueueManagerError, StoreError
from tests.ibm_mq_stand_in.calls import Calls, connect
from tests.ibm_mq_stand_in.faults import MQRC_BACKED_OUT, MQRC_CONNECTION_BROKEN, Call, Fault
from tests.ibm_mq_stand_in.state import State
from tests.ibm_mq_stand_in.wire import MQCC_FAILED, MQCC_WARNING, Answer, MalformedRequest, Verb, next_frame

_log = logging.getLogger(__name__)


class Link(asyncio.Protocol):
    """The socket of one Hconn."""

    def __init__(self, state: State) -> None:
        self.number = state.next_connection()
        self.calls: Calls | None = None
        self._state = state
        self._input = bytearray()
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._lingers = False
        self._later: asyncio.Task[None] | None = None

    # -- what asyncio calls ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._state.links.add(self)

    def data_received(self, data: bytes) -> None:
        self._input += data
        if self._task is not None:  # a program sends nothing before it has its answer
            self._transport.abort()
            return
        try:
            frame = next_frame(self._input)
        except MalformedRequest as error:
            self._refuse_malformed(error)
            return
        if frame is not None:
            self._task = asyncio.get_running_loop().create_task(self._serve(*frame))

    def connection_lost(self, _error: Exception | None) -> None:
        if not self._lingers:
            self._end()

    @property
    def is_in_call(self) -> bool:
        """Whether a request has come and is not answered."""
        return self._task is not None

    # -- what others call --------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """A waiting get looks again."""
        if self.calls is not None:
            self.calls.wake()

    def drop(self, linger_s: float) -> None:
        """The network fails: the program sees it now, the queue manager `linger_s` later."""
        self._lingers = True
        self._transport.abort()
        if linger_s:
            asyncio.get_running_loop().call_later(linger_s, self._end)
        else:
            self._end()

    # -- requests and answers ----------------------------------------------------------------------------------------

    def _end(self) -> None:
        self._state.links.discard(self)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        calls, self.calls = self.calls, None
        if calls is not None:
            with contextlib.suppress(StoreError):
                calls.end()

    def _refuse_malformed(self, error: MalformedRequest) -> None:
        _log.warning("malformed request connection=%d reason=%r", self.number, str(error))
        self._transport.abort()

    async def _serve(self, verb: Verb, fields: bytes) -> None:
        try:
            answer = await self._answered(verb, fields)
        except MalformedRequest as error:
            self._refuse_malformed(error)
            return
        except StoreError as error:
            _log.error("store failed reason=%r", str(error))
            self._transport.abort()
            return
        self._task = None
        if verb == Verb.MQDISC and not self._lingers:
            self._end()  # before the answer: who connects next finds nothing open
        if not self._transport.is_closing():
            self._transport.write(answer.frame())
            if answer.reason == MQRC_CONNECTION_BROKEN or self.calls is None:
                self._transport.close()

    async def _answered(self, verb: Verb, fields: bytes) -> Answer:
        messages = self._messages(verb, fields)
        fault = self._state.faults.striking(verb.name, messages)
        if fault is not None and fault.delay_s:
            await self._state.pass_time(fault.delay_s)
        if fault is not None and fault.reason:
            answer = await self._struck(fault, verb, fields)
        else:
            answer = await self._worked(verb, fields)
        self._note(verb, answer)
        return answer

    def _messages(self, verb: Verb, fields: bytes) -> list[bytes]:
        """What a fault may look into."""
        if not self._state.faults.look_into_messages:
            return []
        if verb == Verb.MQCMIT and self.calls is not None:
            return self.calls.uncommitted
        return [fields] if verb in (Verb.MQPUT, Verb.MQPUT1) else []

    async def _worked(self, verb: Verb, fields: bytes) -> Answer:
        """Carries the call out."""
        try:
            if verb == Verb.MQCONNX:
                if self.calls is not None:
                    raise MalformedRequest("a second connect on one connection")
                self.calls, answer = connect(self._state, fields)
                return answer
            if self.calls is None:
                raise MalformedRequest(f"{verb.name} before the connect")
            return await self.calls.carry_out(verb, fields)
        except QueueManagerError as error:
            return Answer(comp_code=MQCC_FAILED, reason=error.reason_code)

    async def _struck(self, fault: Fault, verb: Verb, fields: bytes) -> Answer:
        """What a fault makes of the call."""
        moment = fault.chosen_moment()
        if moment == "after":
            await self._worked(verb, fields)
        elif moment in ("late", "lost"):
            self._lingers = True
            later = self._work_late(fault.late_s, verb, fields) if moment == "late" else self._lose_late(fault.late_s)
            self._later = asyncio.get_running_loop().create_task(later)
        if fault.reason == MQRC_BACKED_OUT and verb == Verb.MQCMIT and self.calls is not None:
            self.calls.back_out()
            return Answer(comp_code=MQCC_WARNING, reason=fault.reason)
        if fault.reason == MQRC_CONNECTION_BROKEN and not self._lingers:
            self._end()
        return Answer(comp_code=MQCC_FAILED, reason=fault.reason)

    async def _work_late(self, late_s: float, verb: Verb, fields: bytes) -> None:
        """Does the work of a call whose program has long been told that its connection is lost."""
        await self._state.pass_time(late_s)
        await self._worked(verb, fields)
        self._end()

    async def _lose_late(self, late_s: float) -> None:
        """Notices only now that the program's connection is lost."""
        await self._state.pass_time(late_s)
        self._end()

    def _note(self, verb: Verb, answer: Answer) -> None:
        self._state.faults.note(
            Call(
                at_s=asyncio.get_running_loop().time(),
                connection=self.number,
                verb=verb.name,
                object_name=self.calls.object_name if self.calls is not None else "",
                comp_code=answer.comp_code,
                reason=answer.reason,
            )
        )
