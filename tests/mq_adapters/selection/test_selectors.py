"""The language of message selectors: what is true of which message, what is malformed, what is of another language."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mappings.headers.charset import ENCODING_NORMAL
from mappings.headers.mqrfh2 import write_mqrfh2
from mq_adapters.message import MQCI_NONE, Message, MessageDescriptor
from mq_adapters.mqmd import ATTRIBUTES
from mq_adapters.selection.conditions import ContentError, FilterError, UnavailableFilterError, accepts
from mq_adapters.selection.message_content import HEADERS, MessageContent
from mq_adapters.selection.selectors import parse_selector

IDENTIFIER = bytes(range(24))
USR = (
    "<usr><colour>blue</colour><weight dt='r8'>2.5</weight><count dt='i4'>7</count><big dt='i8'>4611686018427387904"
    "</big><whole dt='boolean'>1</whole><half dt='boolean'>0</half><none xsi:nil='true'/><price>5</price>"
    "<raw dt='bin.hex'>41ff</raw><plant><site>north</site></plant><name_>a_b%c</name_></usr>"
)
JMS = "<jms><Dst>topic://plant/pump</Dst><Tms>1700000000000</Tms><Cid>order-7</Cid><Dlv>2</Dlv></jms>"
MCD = "<mcd><Msd>jms_text</Msd><Type>reading</Type></mcd>"


def message(*folders: str, **fields: object) -> Message:
    """A message of JMS with these folders."""
    header = write_mqrfh2(
        tuple(folder.encode() for folder in folders),
        format=b"MQSTR   ",
        next_coded_char_set_id=1208,
        next_encoding=ENCODING_NORMAL,
        coded_char_set_id=1208,
        encoding=ENCODING_NORMAL,
    )
    descriptor = MessageDescriptor(
        format=b"MQHRF2  ", encoding=ENCODING_NORMAL, priority=4, persistence=1, msg_id=IDENTIFIER
    )
    return Message(descriptor.replace(**fields), header + b"text")


def selects(selector: str, of: Message | None = None) -> bool:
    return accepts(parse_selector(selector), MessageContent(message(USR, JMS, MCD) if of is None else of))


TRUE = [
    *(
        "colour = 'blue'",
        "colour <> 'red'",
        "'blue' = colour",
        "whole",
        "NOT half",
        "whole = TRUE",
        "half <> true",
        "TRUE",
    ),
    *(
        "weight > 2",
        "weight <= 2.5",
        "2 < weight",
        "count = 7L",
        "count = 0x7",
        "count = 07",
        "count = 7.0",
        "count=.7E1",
    ),
    *("count BETWEEN 7 AND 8", "count NOT BETWEEN 8 AND 9", "weight * 2 = 5", "count + 1 - 2 * 3 = 2", "-count = -7"),
    *("count / 2 = 3", "weight / 2 = 1.25D", "(count + 1) * 2 = 16", "- (-count) = +7", "-7 / 2 = -3", "count = 7F"),
    *(
        "colour IN ('red', 'blue')",
        "colour NOT IN ('red')",
        "count IN (6, -7, 7)",
        "colour LIKE 'b%'",
        "colour LIKE '_l_e'",
    ),
    *("colour NOT LIKE 'r%'", "name_ LIKE 'a!_b!%c' ESCAPE '!'", "name_ LIKE '%!%%' ESCAPE '!'", "colour LIKE 'blue'"),
    *(
        "missing IS NULL",
        "none IS NULL",
        "colour IS NOT NULL",
        "missing = 1 OR colour = 'blue'",
        "NOT (missing = 1 AND half)",
    ),
    *('raw = "0x41FF"', "big + big > 0", "big * big > 0", "plant.site = 'north'", "mcd.Msd = 'jms_text'"),
    *(
        "JMSPriority = 4",
        "JMSDeliveryMode = 'PERSISTENT'",
        "JMSDeliveryMode = 2",
        "JMSDeliveryMode <> 1",
        "JMSType = 'reading'",
    ),
    *("JMSTimestamp = 1700000000000", "JMSCorrelationID = 'order-7'", "JMSDestination = 'topic://plant/pump'"),
    *(f"JMSMessageID = 'ID:{IDENTIFIER.hex().upper()}'", f'JMSMessageID = "0x{IDENTIFIER.hex()}"'),
    *(f"JMSMessageID IN ('ID:00', 'ID:{IDENTIFIER.hex()}')", f'Root.MQMD.MsgId = "0x{IDENTIFIER.hex()}"'),
    *("Root.MQMD.Priority = 4", "JMS_IBM_MQMD_Priority = 4", "JMS_IBM_Format = 'MQSTR'", "JMSXDeliveryCount = 1"),
    *(
        "JMSMessageID LIKE 'ID:0001%'",
        "NOT JMSRedelivered",
        "colour='blue'AND(weight>1)",
        "not not whole",
        "JMSExpiration=0",
    ),
]
#: Neither these nor their NOT are true.
NEITHER = [
    *("missing = 1", "missing <> 1", "missing > 1", "none = 'x'", "missing LIKE '%'", "missing IN ('a')", "missing"),
    *(
        "missing BETWEEN 1 AND 2",
        "count / 0 = 1",
        "colour + 1 = 2",
        "missing = 1 AND whole",
        "count LIKE '7'",
        "colour",
    ),
    *("JMSReplyTo = 'queue://QM/Q'", "missing + 1 > 0", "missing = 1 OR half", "whole + 1 = 2"),
]
#: These are false, because the types are unlike: their NOT is true.
UNLIKE = [
    "colour = 5",
    "price = 5",
    "price > 4",
    "whole = 'true'",
    "whole > half",
    "colour > price",
    "whole = 1",
    "raw='A'",
]


@pytest.mark.parametrize("selector", TRUE)
def test_a_true_selector_takes_a_message_and_its_negation_leaves_it(selector: str) -> None:
    assert selects(selector)
    assert not selects(f"NOT ({selector})")


@pytest.mark.parametrize("selector", NEITHER)
def test_what_is_missing_makes_a_condition_neither_true_nor_false(selector: str) -> None:
    assert not selects(selector)
    assert not selects(f"NOT ({selector})")


@pytest.mark.parametrize("selector", UNLIKE)
def test_values_of_unlike_types_are_compared_falsely(selector: str) -> None:
    assert not selects(selector)
    assert selects(f"NOT ({selector})")


@pytest.mark.parametrize(
    "selector",
    [
        *("", "colour =", "= 1", "(a = 1", "a = 1)", "a = = 1", "a LIKE 'x' ESCAPE 'xx'", "a BETWEEN 1", "a IN ()"),
        *(
            "a IN ('x'",
            "a IS",
            "NOT",
            "a AND",
            "a NOT 1",
            "'open",
            "a = 'x",
            "5",
            "'text'",
            "a b",
            "a LIKE '!x' ESCAPE '!'",
        ),
        *("a = ?", "a & b", "a = 1 OR", "a IN 'x'", "a IS 5", "LIKE 'x'", "a..b = 1"),
    ],
)
def test_a_malformed_selector_is_told_apart(selector: str) -> None:
    with pytest.raises(FilterError):
        parse_selector(selector)


@pytest.mark.parametrize(
    "selector",
    [
        *(
            "upper(a) = 'A'",
            "a != 1",
            "Root.XMLNSC.a = 1",
            "Body.a || 'x' = 'y'",
            "a = X'41'",
            "a LIKE b",
            "a > 'text'",
        ),
        *(
            "Root.MQMD.Nothing = 1",
            "JMSNothing = 1",
            "JMS_IBM_MQMD_Nothing = 1",
            "a = 9223372036854775809",
            "5 IS NULL",
        ),
        *("a = NULL", "'a' + 1 = 2", "(" * 51 + "a = 1" + ")" * 51, "1 IN (1)", "a + (b = 1) = 2", "InputRoot.x = 1"),
        *('"0x4" = a', "a = 08", "1 + 2"),
    ],
)
def test_a_selector_of_the_larger_language_is_not_ignored(selector: str) -> None:
    with pytest.raises(UnavailableFilterError):
        parse_selector(selector)


def test_messages_without_properties_have_fields_alone() -> None:
    plain = Message(MessageDescriptor(priority=9, correl_id=b"\x01" * 24, persistence=0, format=b"MQSTR   "), b"text")
    assert selects(
        "JMSPriority > 4 AND colour IS NULL AND JMSType IS NULL AND JMSDeliveryMode = 'NON_PERSISTENT'", plain
    )
    assert selects(f"JMSCorrelationID = 'ID:{'01' * 24}' AND JMS_IBM_Format = 'MQSTR'", plain)
    plain.descriptor = plain.descriptor.replace(correl_id=MQCI_NONE)
    assert selects("JMSCorrelationID IS NULL", plain)


def test_a_publication_has_its_topic_as_destination() -> None:
    assert selects("JMSDestination = 'topic://a/b'", message("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"))


@pytest.mark.parametrize(
    "body",
    [b"RFH ", b"", message("<usr><a>1</usr>").body, message("<usr><a>" + "x" * 40_000 + "</a></usr>").body],
)
def test_properties_that_cannot_be_read_or_are_too_long_are_an_error(body: bytes) -> None:
    damaged = message(USR)
    damaged.body = body
    with pytest.raises(ContentError):
        selects("a = 'x'", damaged)
    assert selects("JMSPriority = 4", damaged)


#: One for each way to a value, so that each is asked of hostile messages.
ASKING = (
    "a.b * 3 / raw > 1 OR NOT whole OR colour LIKE '%e'",
    *(
        f"{name} IS NULL OR {name} IN (1, 'x', TRUE)"
        for name in (*HEADERS, *(f"JMS_IBM_MQMD_{each}" for each in ATTRIBUTES))
    ),
    *(f"Root.MQMD.{each} > 0" for each in ATTRIBUTES),
)


@given(st.data())
def test_no_message_raises_another_error(data: st.DataObject) -> None:
    hostile = message(USR, JMS, MCD)
    body = bytearray(hostile.body)
    for at in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=4)):
        body[at] = data.draw(st.integers(0, 255))
    hostile.body = bytes(body[: data.draw(st.integers(0, len(body)))]) if data.draw(st.booleans()) else bytes(body)
    hostile.descriptor = hostile.descriptor.replace(
        encoding=data.draw(st.sampled_from((0, 1, 2, 3, 273, 546, -1, 1 << 31))),
        coded_char_set_id=data.draw(st.sampled_from((0, -1, -2, 37, 500, 819, 1200, 1208, 99_999))),
        persistence=data.draw(st.sampled_from((0, 1))),
        expiry=data.draw(st.sampled_from((-1, 1))),
        put_appl_type=-(1 << 31),
    )
    for selector in ASKING:
        try:
            assert selects(selector, hostile) in (True, False)
        except ContentError:
            continue


def test_a_header_in_no_byte_order_is_an_error_of_content() -> None:
    damaged = message(USR, encoding=0)
    with pytest.raises(ContentError, match="names no integer byte order"):
        selects("colour = 'blue'", damaged)
    assert selects("JMSPriority = 4", damaged)


def test_a_refusal_keeps_nothing_of_an_earlier_one() -> None:
    refusals = []
    for _ in range(2):
        with pytest.raises(UnavailableFilterError) as refused:
            parse_selector("a != 1")
        refusals.append(refused.value)
    assert refusals[0] is not refusals[1]


@given(st.text(st.sampled_from("ab'\"0x1.()=<>!%_ANDORNTLIKEIS,+-*/$é \t"), max_size=60))
@example("a\x00b")
def test_every_text_ends_as_a_condition_or_in_one_of_two_errors(text: str) -> None:
    try:
        condition = parse_selector(text)
    except (FilterError, UnavailableFilterError):
        return
    assert condition.truth(MessageContent(message(USR))) in (True, False, None)


@pytest.mark.parametrize(
    "selector",
    [
        *("a LIKE '" + "%a" * 490 + "'", "a LIKE '%" + "a_" * 490 + "b'", "a LIKE '" + "a" * 990 + "'"),
        " OR ".join(f"a LIKE '%a%_%{number}'" for number in range(80)),
        *("a*" * 490 + "b > 1", "a IN (" + ",".join(["'x'"] * 490) + ")", " OR ".join(["a=1"] * 240)),
        *("NOT " * 990 + "a", "-" * 990 + "b = 1"),
    ],
)
def test_the_work_for_one_message_is_bounded(selector: str) -> None:
    hostile = message("<usr><a>" + "a" * 8_000 + "</a><b dt='i8'>4611686018427387904</b></usr>")
    content = MessageContent(hostile)
    begun = time.process_time()
    condition = parse_selector(selector)
    read = time.process_time()
    try:
        condition.truth(content)
    except ContentError:
        assert "LIKE" in selector  # the text is too long for its patterns
    assert read - begun < 0.1
    assert time.process_time() - read < 0.1


@pytest.mark.parametrize(
    "selector",
    [
        "a LIKE '" + "%a" * 501 + "'",
        " OR ".join(["a=1"] * 251),
        "(a" + "+1" * 5_000 + ") = 1",
        "a != 1 " + "x " * 2_000,
    ],
)
def test_a_longer_selector_is_refused_at_once(selector: str) -> None:
    begun = time.process_time()
    with pytest.raises((UnavailableFilterError, FilterError)):
        parse_selector(selector)
    assert time.process_time() - begun < 0.1
