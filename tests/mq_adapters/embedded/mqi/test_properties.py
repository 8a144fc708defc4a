"""Properties of messages, as PROPCTL of the queue and options of the get have them."""

from collections.abc import Callable
from functools import partial

import pytest

from mappings.headers.mqrfh2 import read_mqrfh2, write_mqrfh2
from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi.open_object import ObjectName, Opened
from mq_adapters.embedded.mqi.options import GetOption, ObjectKind, OpenOption
from mq_adapters.embedded.mqi.properties import delivery_time_ms, without_properties
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import ReasonCode
from tests.mq_adapters.embedded.mqi.program import Program, refused

Connect = Callable[..., Program]
JMS = (b"<mcd><Msd>jms_text</Msd></mcd>", b"<jms><Dlv>2</Dlv></jms>", b"<usr><a>1</a></usr>")
OTHER = b"<other><x>1</x></other>"
OWN = b"<mine content='properties'><x>1</x></mine>"


def rfh2(*folders: bytes, page: int = 819) -> bytes:
    return write_mqrfh2(
        folders,
        format=b"MQSTR   ",
        next_coded_char_set_id=page,
        next_encoding=273,
        coded_char_set_id=1208,
        encoding=546,
        flags=3,
    )


def message(body: bytes) -> Message:
    return Message(MessageDescriptor(format=b"MQHRF2  ", encoding=546, correl_id=b"C" * 24), body)


def test_a_header_of_properties_alone_is_left_out() -> None:
    made = without_properties(message(rfh2(*JMS, OWN) + b"text"))
    descriptor = made.descriptor
    assert made.body == b"text"
    assert (descriptor.format, descriptor.coded_char_set_id, descriptor.encoding) == (b"MQSTR   ", 819, 273)
    assert descriptor.correl_id == b"C" * 24


def test_a_page_that_was_inherited_is_named() -> None:
    assert without_properties(message(rfh2(*JMS, page=-2) + b"x")).descriptor.coded_char_set_id == 1208


def test_other_folders_stay() -> None:
    made = without_properties(message(rfh2(*JMS, OTHER, OWN) + b"text"))
    header = read_mqrfh2(made.body, coded_char_set_id=1208, encoding=546)
    assert [folder.name for folder in header.folders] == ["other"]
    assert (header.format, header.coded_char_set_id, header.flags) == (b"MQSTR   ", 819, 3)
    assert made.body[header.struc_length :] == b"text"


@pytest.mark.parametrize("body", [b"", b"RFH ", rfh2(OTHER) + b"x", rfh2(b"<usr>", b"<mcd/>")[:50]])
def test_what_has_no_properties_or_cannot_be_read_stays_as_it_is(body: bytes) -> None:
    given = message(body)
    assert without_properties(given) is given
    plain = Message(MessageDescriptor(format=b"MQSTR   "), rfh2(*JMS))
    assert without_properties(plain) is plain


@pytest.mark.parametrize(
    ("control", "number", "options", "is_whole"),
    [
        ("COMPAT", 0, 0, True),
        ("COMPAT", 0, GetOption.NO_PROPERTIES, False),
        ("NONE", 1, 0, False),
        ("NONE", 1, GetOption.PROPERTIES_FORCE_MQRFH2, True),
        ("NONE", 1, GetOption.PROPERTIES_COMPATIBILITY, True),
        ("ALL", 2, 0, True),
        ("FORCE", 3, 0, True),
        ("FORCE", 3, GetOption.NO_PROPERTIES, False),
        ("V6COMPAT", 4, 0, True),
    ],
)
def test_the_queue_and_the_get_say_whether_properties_come(
    connect: Connect, engine: Engine, control: str, number: int, options: int, is_whole: bool
) -> None:
    engine.objects.define(Definition(object_type=ObjectType.QLOCAL, name="SOME", said={"PROPCTL": control}))
    program, told = connect(), list[Opened]()
    wanted = ObjectName(kind=ObjectKind.Q, name="SOME")
    everything = OpenOption.INPUT_SHARED | OpenOption.BROWSE | OpenOption.OUTPUT | OpenOption.INQUIRE
    program.connection.open(wanted, everything, told.append)
    handle = told[0].handle
    assert told[0].property_control == number
    assert program.connection.inquire(handle, [190]).integers == (number,)
    body = rfh2(*JMS) + b"text"
    program.put(handle, body, format=b"MQHRF2  ", encoding=546)
    expected = body if is_whole else b"text"
    assert program.get(handle, options | GetOption.BROWSE_FIRST).data == expected
    got = program.get(handle, options)
    assert (got.data, got.message.descriptor.format) == (expected, b"MQHRF2  " if is_whole else b"MQSTR   ")


def test_an_alias_has_a_control_of_its_own(connect: Connect, engine: Engine) -> None:
    alias = {"TARGET": "ORDERS", "PROPCTL": "NONE"}
    engine.objects.define(Definition(object_type=ObjectType.QALIAS, name="BARE", said=alias))
    program = connect()
    both = [program.open(name, OpenOption.INPUT_SHARED | OpenOption.OUTPUT) for name in ("ORDERS", "BARE")]
    for handle, expected in zip(both, (rfh2(*JMS) + b"x", b"x"), strict=True):
        program.put(handle, rfh2(*JMS) + b"x", format=b"MQHRF2  ", encoding=546)
        assert program.get(handle).data == expected


def test_one_option_says_what_becomes_of_properties(connect: Connect) -> None:
    program = connect()
    queue = program.open("ORDERS", OpenOption.INPUT_SHARED)
    both = GetOption.NO_PROPERTIES | GetOption.PROPERTIES_FORCE_MQRFH2
    assert refused(lambda: program.get(queue, both)) == ReasonCode.MQRC_OPTIONS_ERROR


@pytest.mark.parametrize(
    ("folder", "time_ms"),
    [
        (b"<mqext><Dtm>1795949937973</Dtm></mqext>", 1_795_949_937_973),
        (b"<mqext><Dtm>soon</Dtm></mqext>", 0),
        (b"<mqext><Dtm>" + b"9" * 30 + b"</Dtm></mqext>", 0),
        (b"<mqext><Other>5</Other></mqext>", 0),
        (b"<mqext><Dtm>5</mqext>", 0),
        (b"<usr><Dtm>5</Dtm></usr>", 0),
    ],
)
def test_a_delivery_time_is_read_where_it_is_one(folder: bytes, time_ms: int) -> None:
    assert delivery_time_ms(message(rfh2(*JMS, folder) + b"<mqext>")) == time_ms
    assert delivery_time_ms(Message(MessageDescriptor(), rfh2(folder))) == 0
    assert delivery_time_ms(message(b"RFH <mqext")) == 0


def test_a_message_for_later_is_refused_and_one_whose_time_has_come_is_not(connect: Connect, engine: Engine) -> None:
    program = connect()
    queue = program.open("ORDERS", OpenOption.OUTPUT)
    now_ms = engine.now_us() // 1_000
    for time_ms, is_refused in ((now_ms + 60_000, True), (now_ms - 1, False)):
        body = rfh2(*JMS, b"<mqext><Dtm>%d</Dtm></mqext>" % time_ms)
        put = partial(program.put, queue, body, format=b"MQHRF2  ", encoding=546)
        if is_refused:
            assert refused(put) == ReasonCode.MQRC_FUNCTION_NOT_SUPPORTED
        else:
            put()
    assert engine.queue("ORDERS").depth == 1
