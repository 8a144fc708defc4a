"""Object handles: what MQOPEN makes of a name and options, and what each call may then do with it."""

from collections.abc import Callable, Iterator
from typing import Final

from mq_adapters.attributes import ObjectType as Kind
from mq_adapters.embedded.application import Application
from mq_adapters.embedded.queue import Queue
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError, ReasonCode
from tests.ibm_mq_stand_in.options import MQOO, MQPMO, ObjectType, Reason
from tests.ibm_mq_stand_in.state import State
from tests.ibm_mq_stand_in.wire import ObjectDescriptor

INPUT: Final = MQOO.INPUT_AS_Q_DEF | MQOO.INPUT_SHARED | MQOO.INPUT_EXCLUSIVE
_CONTEXTS: Final = MQOO.PASS_IDENTITY_CONTEXT | MQOO.PASS_ALL_CONTEXT | MQOO.SET_IDENTITY_CONTEXT | MQOO.SET_ALL_CONTEXT
_KNOWN: Final = int(~MQOO(0))
#: What each option needs: the word is that of `Switches.denied`.
_AUTHORITIES: Final = {
    INPUT: "get",
    MQOO.BROWSE: "browse",
    MQOO.OUTPUT: "put",
    MQOO.INQUIRE: "inquire",
    MQOO.SET: "set",
    MQOO.SET_IDENTITY_CONTEXT: "setid",
    MQOO.SET_ALL_CONTEXT: "setall",
    MQOO.PASS_IDENTITY_CONTEXT: "passid",
    MQOO.PASS_ALL_CONTEXT: "passall",
}
#: Each context of a put, the option of MQOPEN that it needs, and the reason without it.
CONTEXTS: Final = (
    (MQPMO.SET_ALL_CONTEXT, MQOO.SET_ALL_CONTEXT, Reason.MQRC_NOT_OPEN_FOR_SET_ALL, "setall"),
    (MQPMO.SET_IDENTITY_CONTEXT, MQOO.SET_IDENTITY_CONTEXT, Reason.MQRC_NOT_OPEN_FOR_SET_IDENT, "setid"),
    (MQPMO.PASS_ALL_CONTEXT, MQOO.PASS_ALL_CONTEXT, Reason.MQRC_NOT_OPEN_FOR_PASS_ALL, "passall"),
    (MQPMO.PASS_IDENTITY_CONTEXT, MQOO.PASS_IDENTITY_CONTEXT, Reason.MQRC_NOT_OPEN_FOR_PASS_IDENT, "passid"),
)


class OpenObject:
    """A queue, or the queue manager itself, as one connection has opened it."""

    def __init__(self, name: str, options: MQOO, queue: Queue | None, close: Callable[[], None]) -> None:
        self.name = name
        self.options = options
        #: The local queue, where there is one: that to get from, or that a put leads to.
        self.queue = queue
        self.close = close
        #: Whether it is the queue manager.
        self.is_queue_manager = False
        #: The temporary dynamic queue that this open has made.
        self.is_own_dynamic_queue = False
        #: The context of the last message that was got, with MQOO_SAVE_ALL_CONTEXT.
        self.saved_context: MessageDescriptor | None = None
        self.browsed: Message | None = None
        self._page: Iterator[Message] = iter(())
        self._page_wanted: tuple[bytes | None, bytes | None] | None = None

    def require(self, option: MQOO, reason: Reason) -> None:
        """The reason where the object was opened without any of these options."""
        if not self.options & option:
            raise QueueManagerError(reason, f"use {self.name}")

    def get_queue(self) -> Queue:
        if self.queue is None:
            raise QueueManagerError(ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE, f"use {self.name}")
        return self.queue

    def browse_first(self) -> None:
        """Puts the cursor in front of the first message."""
        self.browsed = None
        self._page_wanted = None

    def next_browsed(self, application: Application, wanted: tuple[bytes | None, bytes | None]) -> Message | None:
        """The first message behind the cursor that matches (CorrelId, MsgId); the caller moves the cursor to it."""
        if wanted == self._page_wanted and (message := next(self._page, None)) is not None:
            return message
        self._page_wanted = wanted
        self._page = (each for each in application.browse(self.name, *wanted) if self._is_ahead(each))
        return next(self._page, None)

    def stay(self) -> None:
        """The cursor is not moved to what was found: it is the next one once more."""
        self._page_wanted = None

    def _is_ahead(self, message: Message) -> bool:
        return self.browsed is None or self._place(message) > self._place(self.browsed)

    def _place(self, message: Message) -> int:
        return self.get_queue().place(message.sequence, message.descriptor.priority)


def open_object(
    state: State, application: Application, descriptor: ObjectDescriptor, options: MQOO
) -> tuple[OpenObject, str]:
    """Opens what the descriptor names; returns the handle's object and the name of the queue behind it."""
    name = descriptor.object_name
    _check_options(state, name, options)
    if descriptor.object_type == ObjectType.MQOT_Q_MGR:
        opened = OpenObject(name or state.engine.name, options, None, lambda: None)
        opened.is_queue_manager = True
        return opened, ""
    if descriptor.object_type != ObjectType.MQOT_Q:
        raise QueueManagerError(Reason.MQRC_OBJECT_TYPE_ERROR, f"open {name}")
    if descriptor.object_q_mgr_name not in ("", state.engine.name):
        raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_REMOTE_Q_MGR, f"open {name}")
    definition = state.engine.objects.find_queue(name)
    is_model = definition is not None and definition.object_type == Kind.QMODEL
    if is_model:
        name = application.create_dynamic(name, descriptor.dynamic_q_name or "AMQ.*")
    queue = _queue_behind(state, name, options)
    close = (lambda: None) if queue is None else state.open_queues.open(queue, options)
    opened = OpenObject(name, options, queue, close)
    opened.is_own_dynamic_queue = is_model
    return opened, queue.name if queue is not None else name


def _check_options(state: State, name: str, options: MQOO) -> None:
    inputs = options & INPUT
    is_doubled = bool(inputs & (inputs - 1))
    no_output = bool(options & _CONTEXTS) and not options & MQOO.OUTPUT
    no_input = bool(options & MQOO.SAVE_ALL_CONTEXT) and not inputs
    if int(options) & ~_KNOWN or is_doubled or no_output or no_input or not int(options):
        raise QueueManagerError(Reason.MQRC_OPTIONS_ERROR, f"open {name} with options {int(options):#x}")
    state.check_quiescing(options & MQOO.FAIL_IF_QUIESCING)
    for needed, authority in _AUTHORITIES.items():
        if options & needed:
            state.switches.check_authority(name, authority)


def _queue_behind(state: State, name: str, options: MQOO) -> Queue | None:
    """The local queue; None for a queue that is put on alone and lies elsewhere, or is only inquired."""
    objects = state.engine.objects
    if options & (INPUT | MQOO.BROWSE):
        return objects.base_queue(name)
    if objects.find_queue(name) is None:
        raise QueueManagerError(ReasonCode.MQRC_UNKNOWN_OBJECT_NAME, f"open {name}")
    if options & MQOO.OUTPUT:
        return _put_queue(state, name)
    return objects.queues.get(name)


def _put_queue(state: State, name: str) -> Queue | None:
    """Where a put leads to; a put that is inhibited now may be allowed when it comes, so that opens all the same."""
    try:
        target = state.engine.objects.putting(name)
    except QueueManagerError as error:
        if error.reason_code != ReasonCode.MQRC_PUT_INHIBITED:
            raise
        return None
    return None if target.remote_queue else target.queue
