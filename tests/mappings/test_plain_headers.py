"""The common case in one step gives what the general case gives: values, bytes, reports and errors, on any bytes."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mappings.commands.command import FORMAT_MQRFH, FORMAT_MQRFH2, Dialect, Publish, write_command
from mappings.commands.options import PublicationOption
from mappings.conversion.convert import Conversion, Mode, convert, convert_chain
from mappings.conversion.publication_template import PublicationTemplate
from mappings.errors import MappingError
from mappings.headers.mqrfh import read_mqrfh
from mappings.headers.mqrfh2 import read_mqrfh2
from mappings.headers.name_value import parse_name_value_string, unambiguous_items
from mappings.headers.plain import read_plain_mqrfh, read_plain_mqrfh2

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


def mqrfh(string: bytes, order: str = "<", format: bytes = b"MQSTR   ", flags: int = 0) -> bytes:
    return struct.pack(f"{order}4siiii8si", b"RFH ", 1, 32 + len(string), 546, 819, format, flags) + string


def mqrfh2(folder: bytes, order: str = "<", format: bytes = b"MQSTR   ", flags: int = 0) -> bytes:
    padded = folder + b" " * (-len(folder) % 4)
    fixed = struct.pack(f"{order}4siiii8siii", b"RFH ", 2, 40 + len(padded), 273, -2, format, flags, 1208, len(padded))
    return fixed + padded


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
    assert_converted_alike(mqrfh(string.encode(), order, format) + body, FORMAT_MQRFH, coded_char_set_id, encoding)
    header = mqrfh2(f"<psc>{folder}</psc>".encode(), order, format)
    assert_converted_alike(header + body, FORMAT_MQRFH2, coded_char_set_id, encoding)


PLAIN_STRING = b'MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic "a b"   '
PLAIN_FOLDER = b"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a b</Topic></psc>"


@given(st.data())
def test_a_plain_header_with_bytes_changed_is_converted_alike(data: st.DataObject) -> None:
    format, message = data.draw(
        st.sampled_from([(FORMAT_MQRFH, mqrfh(PLAIN_STRING)), (FORMAT_MQRFH2, mqrfh2(PLAIN_FOLDER))])
    )
    changed = bytearray(message + b"body")
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    assert_converted_alike(bytes(changed), format, 1208, 546)


@pytest.mark.parametrize("flags", [0, 1, -0x80000000])
@pytest.mark.parametrize(("format", "message"), [(FORMAT_MQRFH, mqrfh), (FORMAT_MQRFH2, mqrfh2)])
def test_flags_are_converted_alike(flags: int, format: bytes, message: object) -> None:
    assert callable(message)
    variable = PLAIN_STRING if format == FORMAT_MQRFH else PLAIN_FOLDER
    assert_converted_alike(message(variable, "<", b"MQSTR   ", flags), format, 1208, 546)


@given(st.text(alphabet='ab "\0\t', max_size=16))
@example('a "b c" d "e"')
@example('a ""')
@example('a """"')
@example('"a" "b"')
@example('"a""b" c')
def test_items_found_by_cutting_are_those_of_the_grammar(text: str) -> None:
    items = unambiguous_items(text)
    if items is not None and len(items) % 2 == 0:
        assert parse_name_value_string(text) == tuple(zip(items[::2], items[1::2], strict=True))
        relaxed = text.replace(" ", "  ")
        expected = [item.replace(" ", "  ") for item in items]
        assert unambiguous_items(relaxed) == expected


@given(st.binary(max_size=60), CODED_CHAR_SET_IDS, ENCODINGS)
def test_plain_values_are_those_of_the_full_readers(variable: bytes, coded_char_set_id: int, encoding: int) -> None:
    order = order_of(encoding)
    string, folder = mqrfh(variable, order), mqrfh2(b"<psc><Topic>" + variable + b"</Topic></psc>", order)
    plain = read_plain_mqrfh(string, coded_char_set_id, encoding)
    if plain is not None:
        header = read_mqrfh(string, coded_char_set_id=coded_char_set_id, encoding=encoding)
        assert plain == (header.pairs, header.format, header.coded_char_set_id, header.encoding, header.struc_length)
    plain = read_plain_mqrfh2(folder, coded_char_set_id, encoding)
    if plain is not None:
        full = read_mqrfh2(folder, coded_char_set_id=coded_char_set_id, encoding=encoding)
        pairs = tuple((element.name, element.text) for element in full.folders[0].elements)
        assert plain == (pairs, full.format, full.coded_char_set_id, full.encoding, full.struc_length)


def test_the_common_publication_is_plain() -> None:
    plain = read_plain_mqrfh(mqrfh(PLAIN_STRING), 1208, 546)
    assert plain is not None
    assert plain.pairs == (("MQPSCommand", "Publish"), ("MQPSPubOpts", "RetainPub"), ("MQPSTopic", "a b"))
    assert (plain.format, plain.coded_char_set_id, plain.encoding, plain.struc_length) == (b"MQSTR   ", 819, 546, 92)
    plain = read_plain_mqrfh2(mqrfh2(PLAIN_FOLDER), 1208, 546)
    assert plain is not None
    assert plain.pairs == (("Command", "Publish"), ("PubOpt", "RetainPub"), ("Topic", "a b"))


TOPICS = st.one_of(
    st.sampled_from(["a", "a b", "a&b", "<", "100%", "*", 'say "x"', "é", "\U0001f600", "\ud800", "", "x" * 1_500]),
    st.text(max_size=40),
)


PAIRS = st.lists(
    st.tuples(st.sampled_from(["rfhbUserProps", "name with blanks", 'say "it"']), st.text(max_size=20)), max_size=2
)


@given(
    st.lists(TOPICS, max_size=6),
    st.sampled_from(list(Dialect)),
    st.sampled_from(["", "<usr><a>1</a></usr>", "<usr><a>\u20ac12</a></usr>"]),
    PAIRS,
    st.sampled_from([PublicationOption(0), PublicationOption.RETAIN_PUBLICATION]),
)
def test_a_template_writes_what_write_command_writes(
    topics: list[str], dialect: Dialect, folder: str, pairs: list[tuple[str, str]], options: PublicationOption
) -> None:
    publish = Publish(topics=("t",), publication_options=options, sequence_number="7")
    template = PublicationTemplate(publish, dialect)
    for topic in topics:
        expected = ended(
            write_command,
            Publish(topics=(topic,), publication_options=options, sequence_number="7", data=tuple(pairs)),
            dialect,
            extra_folders=(folder,) if folder else (),
        )
        assert ended(template.header, topic, folder=folder, data=tuple(pairs)) == expected


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_template_puts_a_header_together_without_write_command(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = PublicationTemplate(Publish(topics=("t",)), dialect)
    expected = write_command(Publish(topics=("plant/a",)), dialect)
    monkeypatch.delattr("mappings.conversion.publication_template.write_command")
    assert template.header("plant/a") == expected


def test_a_template_of_a_wrong_command_is_refused_at_once() -> None:
    with pytest.raises(MappingError):
        PublicationTemplate(Publish(topics=("",)), Dialect.MQRFH2)


def test_a_conversion_of_a_plain_header_is_whole() -> None:
    data = mqrfh(PLAIN_STRING) + b"body"
    conversion = convert(data, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH2)
    assert isinstance(conversion, Conversion)
    assert conversion.header[40:].rstrip(b" ") == PLAIN_FOLDER
    assert conversion.header[12:28] == data[12:28]
