"""The calls of one conversation: each is carried out on the program's connection, and gives one answer.

What a call does stands in mq_adapters/embedded/mqi. Here its parameters become values, and results become parameters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from gateway.listener.mq.subscription_descriptors import described, subscription_request
from mq_adapters.client_channel.attributes import MqinqRequest
from mq_adapters.client_channel.errors import ChannelProtocolError
from mq_adapters.client_channel.message_descriptors import Mqmd
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.client_channel.spi import (
    SpiActivate,
    SpiActivateMode,
    SpiOpen,
    SpiPut,
    SpiPutDescriptor,
    SpiPutOptions,
    SpiQueryReply,
    SpiRequest,
    SpiSubscribe,
    SpiVerb,
)
from mq_adapters.client_channel.structures import (
    LSDO_SHARED,
    MQPRT_SYNC_RESPONSE,
    MQSR_ACTION_PUBLICATION,
    MQSRO_FAIL_IF_QUIESCING,
    Mqod,
    Mqpmo,
)
from mq_adapters.client_channel.verbs import (
    MQCC_FAILED,
    MQCC_OK,
    MQCC_WARNING,
    MQHO_UNUSABLE_HOBJ,
    Mqclose,
    MqgetReply,
    MqgetRequest,
    Mqopen,
    Mqput1Reply,
    Mqput1Request,
    MqputReply,
    MqputRequest,
    Mqsub,
    Mqsubrq,
    refusal,
)
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.connection import Connection, OpenedSubscription
from mq_adapters.embedded.mqi.data_conversion import wanted_format
from mq_adapters.embedded.mqi.getting import GetRequest, Got
from mq_adapters.embedded.mqi.open_object import ObjectName, Opened
from mq_adapters.message import Message
from mq_adapters.reasons import QueueManagerError, ReasonCode

#: The structure of MQOD from which on it has resolved names.
_WITH_RESOLVED_NAMES: Final = 3
_SYNCPOINT: Final = 2
#: MQREADA_DISABLED: a client does not read ahead even if its program asks for it.
_NO_READ_AHEAD: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a call: completion code, reason code, handle and parameters."""

    parameters: Any
    completion_code: int = MQCC_OK
    reason_code: int = ReasonCode.MQRC_NONE
    handle: int = MQHO_UNUSABLE_HOBJ


Answered = Callable[[Answer], None]
Refuse = Callable[[QueueManagerError], None]


class Calls:
    """The calls of one connection."""

    def __init__(self, engine: Engine, connection: Connection, on_refused: Refuse) -> None:
        """`on_refused` is called before the answer to a call that is refused."""
        self._engine = engine
        self._on_refused = on_refused
        self._connection = connection

    def carry_out(self, call_type: int, handle: int, request: Any, answered: Answered) -> None:
        """Calls `answered` once, now or later. A refusal has the parameters of the call, as they came."""

        def refuse(error: QueueManagerError) -> None:
            self._on_refused(error)
            answered(refused(request, error.reason_code, handle))

        carry_out = CALLS.get(call_type)
        if carry_out is None:
            answered(refused(request, ReasonCode.MQRC_FUNCTION_NOT_SUPPORTED, handle))
            return
        try:
            carry_out(self, handle, request, answered, refuse)
        except QueueManagerError as error:
            refuse(error)
        except ChannelProtocolError as error:  # a string in a code page that is not known, or bytes that are not in it
            refuse(QueueManagerError(ReasonCode.MQRC_SOURCE_CCSID_ERROR, str(error)))

    # -- handles -------------------------------------------------------------------------------------------------------

    def _open(self, _handle: int, request: Mqopen, answered: Answered, _refuse: Refuse) -> None:
        def opened(found: Opened) -> None:
            descriptor = self._resolved(request.object_descriptor, found)
            fopa = replace(request.fopa, **_defaults_of(found))
            parameters = replace(request, object_descriptor=descriptor, fopa=fopa)
            answered(Answer(parameters=parameters, handle=found.handle))

        self._connection.open(_object_name(request.object_descriptor), request.options, opened)

    def _resolved(self, descriptor: Mqod, found: Opened) -> Mqod:
        changes: dict[str, Any] = {"object_name": found.name}
        if descriptor.version >= _WITH_RESOLVED_NAMES:
            changes |= {"resolved_q_name": found.name, "resolved_q_mgr_name": self._engine.name}
        return replace(descriptor, **changes)

    def _close(self, handle: int, request: Mqclose, answered: Answered, _refuse: Refuse) -> None:
        self._connection.close(handle, request.options)
        answered(Answer(parameters=request, handle=0))

    # -- messages ------------------------------------------------------------------------------------------------------

    def _put(self, handle: int, request: MqputRequest, answered: Answered, _refuse: Refuse) -> None:
        message = request.message_descriptor.message(request.data)

        def done() -> None:
            descriptor, options = self._put_result(request, message)
            reply = MqputReply(message_descriptor=descriptor, put_message_options=options)
            answered(Answer(parameters=reply, handle=handle))

        self._connection.put(handle, message, request.put_message_options.options, done)

    def _put_one(self, handle: int, request: Mqput1Request, answered: Answered, _refuse: Refuse) -> None:
        message = request.message_descriptor.message(request.data)
        wanted = _object_name(request.object_descriptor)

        def done() -> None:
            descriptor, options = self._put_result(request, message)
            reply = Mqput1Reply(
                object_descriptor=request.object_descriptor, message_descriptor=descriptor, put_message_options=options
            )
            answered(Answer(parameters=reply, handle=handle))

        self._connection.put_one(wanted, message, request.put_message_options.options, done)

    def _put_result(
        self, request: MqputRequest | Mqput1Request | SpiPutDescriptor, message: Message
    ) -> tuple[Mqmd, Mqpmo]:
        """The descriptor with what the queue manager filled in, and the options."""
        version = request.message_descriptor.version
        filled = Mqmd.of(message, version, now_us=self._engine.now_us()).changed(MsgId=message.msg_id)
        return filled, replace(request.put_message_options, resolved_q_mgr_name=self._engine.name)

    def _get(self, handle: int, request: MqgetRequest, answered: Answered, refuse: Refuse) -> None:
        def ended(result: Got | QueueManagerError) -> None:
            if isinstance(result, QueueManagerError):
                refuse(result)
            else:
                answered(self._got(handle, request, result))

        self._connection.get(handle, _get_request(request), ended)

    def _got(self, handle: int, request: MqgetRequest, got: Got) -> Answer:
        descriptor = Mqmd.of(got.message, request.message_descriptor.version, now_us=self._engine.now_us())
        if got.data_format is not None:
            descriptor = descriptor.changed(
                CodedCharSetId=got.data_format.coded_char_set_id, Encoding=got.data_format.encoding
            )
        options = replace(
            request.get_message_options,
            resolved_q_name=got.queue_name,
            msg_token=got.token,
            returned_length=len(got.data),
        )
        whole = len(got.data) if got.data_format is not None else len(got.message.body)
        reply = MqgetReply(message_descriptor=descriptor, get_message_options=options, data_length=whole, data=got.data)
        completion_code = MQCC_WARNING if got.reason_code else MQCC_OK
        return Answer(parameters=reply, completion_code=completion_code, reason_code=got.reason_code, handle=handle)

    # -- the rest ------------------------------------------------------------------------------------------------------

    def _inquire(self, handle: int, request: MqinqRequest, answered: Answered, _refuse: Refuse) -> None:
        found = self._connection.inquire(handle, request.selectors)
        reason_code = ReasonCode.MQRC_SELECTOR_NOT_FOR_TYPE if found.is_partial else ReasonCode.MQRC_NONE
        answered(
            Answer(
                parameters=request.reply(found.integers, found.characters),
                completion_code=MQCC_WARNING if found.is_partial else MQCC_OK,
                reason_code=reason_code,
                handle=handle,
            )
        )

    def _commit(self, handle: int, request: Any, answered: Answered, _refuse: Refuse) -> None:
        self._connection.commit(lambda: answered(Answer(parameters=request, handle=handle)))

    def _back_out(self, handle: int, request: Any, answered: Answered, _refuse: Refuse) -> None:
        self._connection.back_out()
        answered(Answer(parameters=request, handle=handle))

    def _disconnect(self, handle: int, request: Any, answered: Answered, _refuse: Refuse) -> None:
        self._connection.disconnect(lambda: answered(Answer(parameters=request, handle=handle)))

    def _subscribe(self, handle: int, request: Mqsub, answered: Answered, refuse: Refuse) -> None:
        def subscribed(opened: OpenedSubscription) -> None:
            descriptor = described(request.subscription_descriptor, opened.subscription)
            parameters = replace(request, subscription_handle=opened.number, subscription_descriptor=descriptor)
            answered(Answer(parameters=parameters, handle=opened.handle))

        asked = subscription_request(request.subscription_descriptor, destination=handle)
        self._connection.subscribe(asked, subscribed, refuse)

    def _request_publications(self, handle: int, request: Mqsubrq, answered: Answered, refuse: Refuse) -> None:
        """MQSUBRQ."""
        if request.action != MQSR_ACTION_PUBLICATION:
            raise QueueManagerError(ReasonCode.MQRC_ACTION_ERROR, f"request publications: action {request.action}")
        if request.options.options & ~MQSRO_FAIL_IF_QUIESCING:
            raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, "request publications")

        def requested(number: int) -> None:
            options = replace(request.options, num_pubs=number)
            answered(Answer(parameters=replace(request, options=options), handle=handle))

        self._connection.request_publications(handle, requested, refuse)

    def _status(self, handle: int, request: Any, answered: Answered, _refuse: Refuse) -> None:
        """MQSTAT: no put is answered before it is done, so that there is nothing to tell."""
        answered(Answer(parameters=request, handle=handle))

    # -- SPI -----------------------------------------------------------------------------------------------------------

    def _spi(self, handle: int, request: SpiRequest, answered: Answered, refuse: Refuse) -> None:
        carry_out = SPI_CALLS.get(request.verb)
        if carry_out is None:
            raise QueueManagerError(ReasonCode.MQRC_FUNCTION_NOT_SUPPORTED, f"SPI verb {request.verb}")
        carry_out(self, handle, request, answered, refuse)

    def _spi_query(self, handle: int, request: SpiRequest, answered: Answered, _refuse: Refuse) -> None:
        answered(Answer(parameters=request.reply(SpiQueryReply()), handle=handle))

    def _spi_open(self, _handle: int, request: SpiRequest, answered: Answered, _refuse: Refuse) -> None:
        asked = request.content
        assert isinstance(asked, SpiOpen)

        def opened(found: Opened) -> None:
            descriptor = self._resolved(asked.object_descriptor, found)
            content = replace(asked, object_descriptor=descriptor, lpoo=replace(asked.lpoo, **_defaults_of(found)))
            answered(Answer(parameters=request.reply(content), handle=found.handle))

        self._connection.open(_object_name(asked.object_descriptor), asked.lpoo.options, opened)

    def _spi_subscribe(self, handle: int, request: SpiRequest, answered: Answered, refuse: Refuse) -> None:
        asked = request.content
        assert isinstance(asked, SpiSubscribe)

        def subscribed(opened: OpenedSubscription) -> None:
            descriptor = described(asked.subscription_descriptor, opened.subscription)
            content = replace(asked, subscription_handle=opened.number, subscription_descriptor=descriptor)
            answered(Answer(parameters=request.reply(content), handle=opened.handle))

        is_shared = asked.lsd.options & LSDO_SHARED == LSDO_SHARED
        wanted = subscription_request(asked.subscription_descriptor, destination=handle, is_shared=is_shared)
        self._connection.subscribe(wanted, subscribed, refuse)

    def _spi_put(self, handle: int, request: SpiRequest, answered: Answered, _refuse: Refuse) -> None:
        """SPI PUT."""
        asked, put = request.in_out, request.content
        assert isinstance(asked, SpiPutDescriptor)
        assert isinstance(put, SpiPut)
        message = asked.message_descriptor.message(put.data)

        def done() -> None:
            descriptor, options = self._put_result(asked, message)
            filled = replace(asked, message_descriptor=descriptor, put_message_options=options)
            answered(Answer(parameters=request.reply(in_out=filled), handle=handle))

        options = asked.put_message_options.options | (_SYNCPOINT if put.options & SpiPutOptions.SYNCPOINT else 0)
        if put.options & SpiPutOptions.DEFERRED:
            self._connection.put_deferred(handle, message, options, done)
        else:
            self._connection.put(handle, message, options, done)

    def _spi_activate(self, handle: int, request: SpiRequest, answered: Answered, _refuse: Refuse) -> None:
        """SPI ACTIVATE of a deferred message."""
        asked = request.content
        assert isinstance(asked, SpiActivate)
        if asked.mode not in (SpiActivateMode.MAKE_VISIBLE, SpiActivateMode.THROW_AWAY):
            raise QueueManagerError(ReasonCode.MQRC_OPTIONS_ERROR, f"activate: mode {asked.mode}")
        is_wanted = asked.mode == SpiActivateMode.MAKE_VISIBLE
        done = Answer(parameters=request.reply(), handle=handle)
        self._connection.activate(asked.msg_id, lambda: answered(done), is_wanted=is_wanted)


_CarryOut = Callable[[Calls, int, Any, Answered, Refuse], None]
#: What carries out each call of the MQI.
CALLS: Final[Mapping[int, _CarryOut]] = {
    SegmentType.MQDISC: Calls._disconnect,
    SegmentType.MQOPEN: Calls._open,
    SegmentType.MQCLOSE: Calls._close,
    SegmentType.MQGET: Calls._get,
    SegmentType.MQPUT: Calls._put,
    SegmentType.MQPUT1: Calls._put_one,
    SegmentType.MQINQ: Calls._inquire,
    SegmentType.MQCMIT: Calls._commit,
    SegmentType.MQBACK: Calls._back_out,
    SegmentType.MQSTAT: Calls._status,
    SegmentType.MQSUB: Calls._subscribe,
    SegmentType.MQSUBRQ: Calls._request_publications,
    SegmentType.SPI: Calls._spi,
}
#: The same for SPI, by its verbs.
SPI_CALLS: Final[Mapping[int, _CarryOut]] = {
    SpiVerb.QUERY: Calls._spi_query,
    SpiVerb.OPEN: Calls._spi_open,
    SpiVerb.PUT: Calls._spi_put,
    SpiVerb.ACTIVATE: Calls._spi_activate,
    SpiVerb.SUBSCRIBE: Calls._spi_subscribe,
}


def refused(request: Any, reason_code: int, handle: int = MQHO_UNUSABLE_HOBJ) -> Answer:
    """The answer that refuses a call."""
    return Answer(parameters=refusal(request), completion_code=MQCC_FAILED, reason_code=reason_code, handle=handle)


def _defaults_of(found: Opened) -> dict[str, Any]:
    """The defaults of an open queue: each put is answered when it is done, and nothing is read ahead."""
    return {
        "def_persistence": found.default_persistence,
        "def_put_response": MQPRT_SYNC_RESPONSE,
        "def_read_ahead": _NO_READ_AHEAD,
        "property_control": found.property_control,
    }


def _object_name(descriptor: Mqod) -> ObjectName:
    return ObjectName(
        kind=descriptor.object_type,
        name=descriptor.object_name,
        queue_manager=descriptor.object_q_mgr_name,
        dynamic_name=descriptor.dynamic_q_name,
        selector=descriptor.selection_string.text,
        topic=descriptor.object_string.text,
    )


def _get_request(request: MqgetRequest) -> GetRequest:
    descriptor, options = request.message_descriptor, request.get_message_options
    return GetRequest(
        options=options.options,
        match_options=options.match_options,
        msg_id=descriptor.value("MsgId"),
        correl_id=descriptor.value("CorrelId"),
        buffer_bytes=request.buffer_length,
        wait_ms=options.wait_interval,
        token=options.msg_token,
        data_format=wanted_format(descriptor.value("CodedCharSetId"), descriptor.value("Encoding")),
    )
