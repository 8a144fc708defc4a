"""Message context: who may say whom a message is from."""

from collections.abc import Callable
from typing import Final

import pytest

from mq_adapters.embedded.mqi.open_object import ObjectName
from mq_adapters.embedded.mqi.options import ObjectKind, OpenOption, PutOption
from mq_adapters.embedded.rights import ContextRight
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import ReasonCode
from tests.mq_adapters.embedded.mqi.program import Program, refused

Connect = Callable[..., Program]
IDENTITY, ALL, NONE = ContextRight.IDENTITY, ContextRight.ALL, ContextRight.NONE
OPEN: Final = {IDENTITY: OpenOption.SET_IDENTITY_CONTEXT, ALL: OpenOption.SET_ALL_CONTEXT, NONE: OpenOption(0)}
PUT: Final = {IDENTITY: PutOption.SET_IDENTITY_CONTEXT, ALL: PutOption.SET_ALL_CONTEXT, NONE: PutOption(0)}
CLAIMED: Final = {
    "user_identifier": "pump-7",
    "accounting_token": b"A" * 32,
    "appl_identity_data": "boiler",
    "put_appl_type": 28,
    "put_appl_name": "panel",
    "appl_origin_data": "orig",
}
_OF_IDENTITY: Final = ("user_identifier", "accounting_token", "appl_identity_data")


def connected(connect: Connect, right: ContextRight) -> Program:
    return connect(put=("ORDERS",), get=("ORDERS",), context=right)


def put_and_got(program: Program, used: ContextRight) -> dict[str, object]:
    """The context of a message that a program put, as it sets it."""
    queue = program.open("ORDERS", OpenOption.OUTPUT | OpenOption.INPUT_SHARED | OPEN[used])
    program.put(queue, b"", PutOption.NO_SYNCPOINT | PUT[used], **CLAIMED)
    descriptor = program.get(queue).message.descriptor
    return {name: getattr(descriptor, name) for name in CLAIMED}


@pytest.mark.parametrize("right", [ALL, IDENTITY])
def test_with_a_right_the_context_that_is_set_stays(connect: Connect, right: ContextRight) -> None:
    kept = CLAIMED if right is ALL else {name: CLAIMED[name] for name in _OF_IDENTITY}
    own = {"put_appl_type": 6, "put_appl_name": "program", "appl_origin_data": ""}
    assert put_and_got(connected(connect, right), right) == {**own, **kept}


def test_with_every_right_a_put_that_sets_nothing_is_from_its_program(connect: Connect) -> None:
    got = put_and_got(connected(connect, ALL), NONE)
    assert (got["user_identifier"], got["put_appl_name"], got["accounting_token"]) == ("billing", "program", b"")


@pytest.mark.parametrize(("right", "used"), [(NONE, IDENTITY), (NONE, ALL), (IDENTITY, ALL)])
def test_without_the_right_an_open_for_it_is_2035(connect: Connect, right: ContextRight, used: ContextRight) -> None:
    program = connected(connect, right)
    assert refused(lambda: program.open("ORDERS", OpenOption.OUTPUT | OPEN[used])) == ReasonCode.MQRC_NOT_AUTHORIZED
    wanted = ObjectName(kind=ObjectKind.Q, name="ORDERS")
    message = Message(MessageDescriptor(), b"")
    call = lambda: program.connection.put_one(wanted, message, PUT[used], lambda: None)  # noqa: E731
    assert refused(call) == ReasonCode.MQRC_NOT_AUTHORIZED


@pytest.mark.parametrize(
    ("used", "reason_code"),
    [(IDENTITY, ReasonCode.MQRC_NOT_OPEN_FOR_SET_IDENT), (ALL, ReasonCode.MQRC_NOT_OPEN_FOR_SET_ALL)],
)
def test_a_put_sets_only_what_its_queue_was_opened_for(
    connect: Connect, used: ContextRight, reason_code: ReasonCode
) -> None:
    program = connected(connect, ALL)
    queue = program.open("ORDERS", OpenOption.OUTPUT)
    assert refused(lambda: program.put(queue, b"", PUT[used], **CLAIMED)) == reason_code


def test_put1_opens_its_queue_for_the_context_that_it_sets(connect: Connect) -> None:
    program = connected(connect, ALL)
    message = Message(MessageDescriptor().replace(**CLAIMED), b"")
    options = PutOption.NO_SYNCPOINT | PutOption.SET_ALL_CONTEXT
    program.connection.put_one(ObjectName(kind=ObjectKind.Q, name="ORDERS"), message, options, lambda: None)
    queue = program.open("ORDERS", OpenOption.INPUT_SHARED)
    assert program.get(queue).message.descriptor.user_identifier == "pump-7"


def test_two_kinds_of_context_exclude_each_other(connect: Connect) -> None:
    program = connected(connect, ALL)
    queue = program.open("ORDERS", OpenOption.OUTPUT | OpenOption.SET_ALL_CONTEXT)
    options = PutOption.SET_ALL_CONTEXT | PutOption.DEFAULT_CONTEXT
    assert refused(lambda: program.put(queue, b"", options)) == ReasonCode.MQRC_OPTIONS_ERROR


def test_no_right_sets_the_context_of_a_publication(connect: Connect) -> None:
    program = connected(connect, ALL)
    options = OpenOption.OUTPUT | OpenOption.SET_ALL_CONTEXT
    call = lambda: program.open("", options, kind=ObjectKind.TOPIC)  # noqa: E731
    assert refused(call) == ReasonCode.MQRC_NOT_AUTHORIZED
