"""The fast path of a conversion gives the bytes, reports and errors of the general path, on any bytes."""

from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tests.headers
from mappings.commands.command import FORMAT_MQRFH, FORMAT_MQRFH2, Dialect
from mappings.conversion.convert import Conversion, Mode, convert, convert_chain
from mappings.errors import MappingError

CODED_CHAR_SET_IDS = st.sampled_from([1208, 819, 500, 1200, 932])
ENCODINGS = st.sampled_from([546, 273, 785, 0])
BODY_FORMATS = st.sampled_from([b"MQSTR   ", b"        ", b"MQHRF2  ", b"MQHCUST ", b"MQDEAD  "])
NAMES = [
    ("MQPSCommand", "Command"),
    ("MQPSTopic", "Topic"),
    ("MQPSPubOpts", "PubOpt"),
    ("MQPSRegOpts", "RegOpt"),
    ("MQPSDelOpts", "DelOpt"),
    ("MQPSQName", "QName"),
    ("MQPSPubTime", "PubTime"),
    ("MQPSStreamName", "SubPoint"),
    ("MQPSStringData", "Filter"),
    ("MQPSSubName", "SubName"),
    ("own", "other"),
]
VALUES = st.one_of(
    st.sampled_from(
        [
            "Publish",
            "RegSub",
            "DeletePub",
            "RetainPub",
            "Local",
            "CorrelAsId",
            "None",
            "3",
            "a/b",
            "a b",
            "a/#",
            "é",
            "",
        ]
    ),
    st.text(alphabet="ab/ %*?+#&<>\"'\t\n\x01\x7f\xa0é\u20ac\U0001f600", max_size=6),
)
FIELDS = st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=5)
VERBS = st.sampled_from(["Publish", "DeletePub", "RegSub", "ReqUpdate", "RegPub", "Nonsense"])
PLAIN_STRING = b'MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic "a b"   '
PLAIN_FOLDER = b"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a b</Topic></psc>"
mqrfh = partial(tests.headers.mqrfh, ccsid=819, padded=False)
mqrfh2 = partial(tests.headers.mqrfh2, encoding=273, ccsid=-2)


def order_of(encoding: int) -> str:
    return ">" if encoding & 0xF == 1 else "<"


def quoted(value: str) -> str:
    doubled = value.replace('"', '""')
    return f'"{doubled}"'


def ended(call: object, *arguments: object, **named: object) -> object:
    """What a call gives, or what it says is wrong, in a form that can be compared."""
    assert callable(call)
    try:
        return call(*arguments, **named)
    except MappingError as problem:
        return (
            type(problem),
            problem.reason_code,
            problem.hint,
            problem.offset,
            problem.parameter,
            problem.error_position,
        )


def assert_converted_alike(data: bytes, format: bytes, coded_char_set_id: int, encoding: int) -> None:
    for to in Dialect:
        for mode in Mode:
            arguments = {
                "format": format,
                "coded_char_set_id": coded_char_set_id,
                "encoding": encoding,
                "to": to,
                "mode": mode,
            }
            assert ended(convert, data, **arguments) == ended(convert_chain, data, **arguments)


@given(VERBS, FIELDS, st.booleans(), CODED_CHAR_SET_IDS, ENCODINGS, BODY_FORMATS, st.sampled_from([b"", b"body", b" "]))
@example("Publish", [(("MQPSTopic", "Topic"), "a b")], True, 1208, 546, b"MQSTR   ", b"")
@example("Publish", [(("MQPSTopic", "Topic"), "a"), (("MQPSTopic", "Topic"), "a")], False, 1208, 273, b"MQSTR   ", b"")
@example("RegSub", [(("MQPSTopic", "Topic"), "a"), (("MQPSTopic", "Topic"), "a")], False, 1208, 273, b"MQSTR   ", b"")
@example("Publish", [(("MQPSQName", "QName"), "Q"), (("MQPSQName", "QName"), "Q")], False, 819, 546, b"MQSTR   ", b"")
@example("Publish", [(("MQPSStreamName", "SubPoint"), "S")], False, 1208, 546, b"MQSTR   ", b"")
def test_any_fields_are_converted_alike(
    verb: str,
    fields: list[tuple[tuple[str, str], str]],
    quotes: bool,
    coded_char_set_id: int,
    encoding: int,
    format: bytes,
    body: bytes,
) -> None:
    named = [(("MQPSCommand", "Command"), verb), *fields]
    string = " ".join(f"{name[0]} {quoted(value) if quotes else value}" for name, value in named)
    folder = "".join(f"<{name[1]}>{value}</{name[1]}>" for name, value in named)
    order = order_of(encoding)
    assert_converted_alike(
        mqrfh(string.encode(), order=order, format=format) + body, FORMAT_MQRFH, coded_char_set_id, encoding
    )
    header = mqrfh2(f"<psc>{folder}</psc>".encode(), order=order, format=format)
    assert_converted_alike(header + body, FORMAT_MQRFH2, coded_char_set_id, encoding)


@given(st.data())
def test_a_plain_header_with_bytes_changed_is_converted_alike(data: st.DataObject) -> None:
    format, message = data.draw(
        st.sampled_from([(FORMAT_MQRFH, mqrfh(PLAIN_STRING)), (FORMAT_MQRFH2, mqrfh2(PLAIN_FOLDER))])
    )
    changed = bytearray(message + b"body")
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    assert_converted_alike(bytes(changed), format, 1208, 546)


@pytest.mark.parametrize("flags", [0, 1, 0x80000000])
@pytest.mark.parametrize(("format", "message"), [(FORMAT_MQRFH, mqrfh), (FORMAT_MQRFH2, mqrfh2)])
def test_flags_are_converted_alike(flags: int, format: bytes, message: object) -> None:
    assert callable(message)
    variable = PLAIN_STRING if format == FORMAT_MQRFH else PLAIN_FOLDER
    assert_converted_alike(message(variable, flags=flags), format, 1208, 546)


def test_a_conversion_of_a_plain_header_is_whole() -> None:
    data = mqrfh(PLAIN_STRING) + b"body"
    conversion = convert(data, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH2)
    assert isinstance(conversion, Conversion)
    assert conversion.header[40:].rstrip(b" ") == PLAIN_FOLDER
    assert conversion.header[12:28] == data[12:28]
