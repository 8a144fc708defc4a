"""The audit's own readers and writers against the specification's worked bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_audit.reperform.code_page import UnknownCodePage
from spark_audit.reperform.comparison import UnreadableBytes
from spark_audit.reperform.folder import read_elements, read_folder
from spark_audit.reperform.header import Surroundings, read_chain, read_pairs, write_mqrfh, write_mqrfh2, written_pairs
from spark_audit.reperform.meaning import meaning_of
from spark_audit.reperform.mqtt import read_filter, read_publish, read_will, write_publish
from spark_audit.reperform.table import NINE, option_tokens
from spark_audit.reperform.topics import character_patterns, covers, escaped, unescaped

#: Worked bytes of the MQRFH page: big-endian, topic "a b"; little-endian, topic a/b.
MQRFH_BIG = bytes.fromhex(
    "52464820 00000001 0000005c 00000111 000004b8 4d51535452202020 00000000"
    "4d515053436f6d6d616e64205075626c697368204d5150535075624f70747320"
    "52657461696e507562204d515053546f7069632022612062222020 20"
)
MQRFH_LITTLE = bytes.fromhex(
    "52464820 01000000 58000000 22020000 b8040000 4d51535452202020 00000000"
    "4d515053436f6d6d616e64205075626c697368204d5150535075624f70747320"
    "52657461696e507562204d515053546f70696320612f6220"
)
#: Worked bytes of the MQRFH2 page: one psc folder, little-endian; folders mcd and psc, big-endian.
MQRFH2_LITTLE = bytes.fromhex(
    "52464820 02000000 7c000000 22020000 b8040000 4d51535452202020 00000000 b8040000 54000000"
    "3c7073633e3c436f6d6d616e643e5075626c6973683c2f436f6d6d616e643e3c5075624f70743e52657461696e507562"
    "3c2f5075624f70743e3c546f7069633e612f623c2f546f7069633e3c2f7073633e202020"
)
MQRFH2_BIG = bytes.fromhex(
    "52464820 00000002 000000a0 00000111 000004b8 2020202020202020 00000000 000004b8 00000020"
    "3c6d63643e3c4d73643e6a6d735f62797465733c2f4d73643e3c2f6d63643e20 00000054"
    "3c7073633e3c436f6d6d616e643e5265675375623c2f436f6d6d616e643e3c5265674f70743e436f7272656c41734964"
    "3c2f5265674f70743e3c546f7069633e612f233c2f546f7069633e3c2f7073633e202020"
)
LITTLE, BIG = 546, 273


def _described(format: str, encoding: int, ccsid: int = 1208) -> Surroundings:
    return Surroundings(format=format, coded_char_set_id=ccsid, encoding=encoding)


@pytest.mark.parametrize(
    ("data", "encoding", "topic"), [(MQRFH_BIG, BIG, "a b"), (MQRFH_LITTLE, LITTLE, "a/b")], ids=["big", "little"]
)
def test_the_worked_mqrfh_reads_and_writes(data: bytes, encoding: int, topic: str) -> None:
    described, body = _described("MQHRF", encoding), _described("MQSTR", encoding)
    pairs = (("MQPSCommand", "Publish"), ("MQPSPubOpts", "RetainPub"), ("MQPSTopic", topic))
    (header,), behind = read_chain(data, described)
    assert (header.version, header.pairs, behind) == (1, pairs, body)
    assert write_mqrfh(pairs, described, body) == data


def test_the_worked_mqrfh2_reads_and_writes() -> None:
    described, body = _described("MQHRF2", LITTLE), _described("MQSTR", LITTLE)
    fields = (("Command", "Publish"), ("PubOpt", "RetainPub"), ("Topic", "a/b"))
    (header,), behind = read_chain(MQRFH2_LITTLE, described)
    assert (read_elements(header.folders[0]), behind) == (fields, body)
    assert write_mqrfh2((("psc", fields),), described, body) == MQRFH2_LITTLE


def test_the_worked_mqrfh2_with_two_folders_is_a_registration() -> None:
    meaning = meaning_of(*read_chain(MQRFH2_BIG, _described("MQHRF2", BIG)))
    assert meaning.fields == (("Command", "RegSub"), ("RegOpt", "CorrelAsId"), ("Topic", "a/#"))
    assert [folder.name for folder in meaning.folders] == ["mcd"]
    assert meaning.body.format == ""


def test_an_ebcdic_header_reads_by_the_code_page_in_front() -> None:
    string = "MQPSCommand Publish MQPSTopic a/b ".encode("cp500")
    fixed = "RFH ".encode("cp500") + (1).to_bytes(4, "big") + (32 + len(string)).to_bytes(4, "big")
    data = fixed + bytes.fromhex("00000311 000001f4") + " ".encode("cp500") * 8 + bytes(4) + string
    meaning = meaning_of(*read_chain(data, _described("MQHRF", 785, 500)))
    assert meaning.values("Topic") == ("a/b",)
    assert meaning.body == _described("", 785, 500)


def test_an_unknown_code_page_is_said_to_be_unknown() -> None:
    with pytest.raises(UnknownCodePage, match="4711"):
        read_chain(MQRFH_BIG, _described("MQHRF", BIG, 4711))


@pytest.mark.parametrize("data", [MQRFH_BIG, MQRFH2_BIG], ids=["MQRFH", "MQRFH2"])
def test_a_header_cut_anywhere_is_unreadable(data: bytes) -> None:
    format = "MQHRF" if data is MQRFH_BIG else "MQHRF2"
    for length in range(len(data)):
        with pytest.raises(UnreadableBytes):
            meaning_of(*read_chain(data[:length], _described(format, BIG)))


@given(st.binary(max_size=120), st.sampled_from(["MQHRF", "MQHRF2"]), st.sampled_from([LITTLE, BIG, 0]))
def test_random_bytes_end_in_a_meaning_or_an_error_of_ours(data: bytes, format: str, encoding: int) -> None:
    try:
        meaning_of(*read_chain(b"RFH " + data, _described(format, encoding)))
    except (UnreadableBytes, UnknownCodePage):
        return


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (" A  b ", (("A", "b"),)),
        ('A "b c" D ""', (("A", "b c"), ("D", ""))),
        ('A "say ""x"""', (("A", 'say "x"'),)),
        ("A b\0 C", (("A", "b"),)),
        ("A b\tc", (("A", "b\tc"),)),
        ("", ()),
    ],
)
def test_a_name_value_string_reads_by_its_grammar(text: str, pairs: tuple[tuple[str, str], ...]) -> None:
    assert read_pairs(text) == pairs


@pytest.mark.parametrize("text", ["A", 'A b"c', 'A "b"c', 'A "b', "A b C"])
def test_a_broken_name_value_string_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableBytes):
        read_pairs(text)


def test_items_are_quoted_only_where_they_must_be() -> None:
    assert written_pairs((("A", "b c"), ("D", ""), ("E", 'x"y'), ("F", "g"))) == 'A "b c" D "" E "x""y" F g'


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("<psc><Topic> a </Topic></psc>", (("Topic", " a "),)),
        ("<psc> <Topic dt='string'>a&amp;b&lt;&#65;&#x42;</Topic>\n</psc>", (("Topic", "a&b<AB"),)),
        ("<psc><Topic/></psc>  \0", (("Topic", ""),)),
        ("<psc/>", ()),
    ],
)
def test_a_folder_reads_by_its_grammar(text: str, elements: tuple[tuple[str, str], ...]) -> None:
    assert read_elements(read_folder(text)) == elements


@pytest.mark.parametrize(
    "text",
    [
        "psc",
        "<psc><Topic>a</psc>",
        "<psc><Topic>a<b>c</b></Topic></psc>",
        "<psc>a</psc>",
        "<psc></pscr>",
        "<psc><Topic>&nbsp;</Topic></psc>",
        "<psc><Topic>&#0;</Topic></psc>",
        "<psc><Topic>a</Topic></psc><usr/>",
    ],
)
def test_a_broken_folder_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableBytes):
        read_elements(read_folder(text))


def test_options_are_tokens_or_their_decimal_sum() -> None:
    assert option_tokens("RegOpt", "257") == ("CorrelAsId", "InformIfRet")
    assert option_tokens("PubOpt", "RetainPub") == ("RetainPub",)
    assert option_tokens("PubOpt", "4") == ("OtherSubsOnly",)
    assert option_tokens("DelOpt", "4") == ("Local",)
    assert option_tokens("RegOpt", "None") == option_tokens("RegOpt", "0") == ()
    assert option_tokens("PubOpt", "34") == ("RetainPub", "32")


def test_the_table_has_the_nine_rows_of_the_seed() -> None:
    assert [f"{name} {element}" for name, element in NINE] == [
        "MQPSCommand Command",
        "MQPSDelOpts DelOpt",
        "MQPSPubOpts PubOpt",
        "MQPSPubTime PubTime",
        "MQPSQMgrName QMgrName",
        "MQPSQName QName",
        "MQPSRegOpts RegOpt",
        "MQPSSeqNum SeqNum",
        "MQPSTopic Topic",
    ]


def test_topics_are_escaped_and_unescaped() -> None:
    assert escaped("50% of *?") == "50%% of %*%?"
    assert unescaped("50%% of %*%?") == "50% of *?"


@pytest.mark.parametrize("text", ["a*", "a?", "%", "a%b"])
def test_a_wildcard_or_a_lone_percent_sign_is_no_topic_name(text: str) -> None:
    with pytest.raises(UnreadableBytes):
        unescaped(text)


@pytest.mark.parametrize(
    ("topic_filter", "patterns"),
    [
        ("a/b", ("a/b",)),
        ("a%b", ("a%%b",)),
        ("#", ("*",)),
        ("a/#", ("a", "a/*")),
        ("+", ("*",)),
        ("a/+", ("a/*",)),
        ("a/+/#", ("a/*",)),
        ("a/+/c", ("a/*/c",)),
        ("+/b", ("*/b",)),
        ("+/b/#", ("*/b", "*/b/*")),
    ],
)
def test_filters_have_the_patterns_of_the_table(topic_filter: str, patterns: tuple[str, ...]) -> None:
    assert character_patterns(topic_filter) == patterns
    assert covers(patterns, topic_filter)


def test_patterns_that_miss_a_topic_do_not_cover() -> None:
    assert not covers(("a/*",), "a/#")
    assert not covers(("*/b",), "+/b/#")
    assert not covers(("a/?",), "a/+")


@pytest.mark.parametrize(
    ("length", "digits"),
    [(0, "00"), (127, "7f"), (128, "8001"), (321, "c102"), (16_383, "ff7f"), (268_435_455, "ffffff7f")],
)
def test_a_remaining_length_is_written_as_the_specification_says(length: int, digits: str) -> None:
    # a topic of no characters takes two bytes of the remaining length
    if length >= 2:
        header = write_publish(
            qos=0, retain=False, duplicate=False, topic="", packet_identifier=0, payload_bytes=length - 2
        )
        assert header == bytes.fromhex(f"30{digits}0000")
        assert read_publish(header).remaining_length == length


def test_a_publish_header_reads_and_writes() -> None:
    data = bytes.fromhex("3d 09 0003 612f62 000a")
    header = read_publish(data)
    assert (header.qos, header.retain, header.duplicate, header.topic, header.packet_identifier) == (
        2,
        True,
        True,
        "a/b",
        10,
    )
    assert write_publish(qos=2, retain=True, duplicate=True, topic="a/b", packet_identifier=10, payload_bytes=2) == data


def test_a_publish_header_of_level_5_reads_and_writes_with_its_properties() -> None:
    data = bytes.fromhex("33 0c 0003 612f62 000a 02 0b07")
    header = read_publish(data, 5)
    assert (header.packet_identifier, header.properties) == (10, bytes.fromhex("02 0b07"))
    assert (
        write_publish(
            qos=1,
            retain=True,
            duplicate=False,
            topic="a/b",
            packet_identifier=10,
            payload_bytes=2,
            properties=header.properties,
        )
        == data
    )


@pytest.mark.parametrize(
    "data",
    ["", "40020001", "36070003612f620001", "320700", "32070003612f62", "32090003612f620000", "3007 0003 612f62 05"],
)
def test_a_broken_publish_header_is_unreadable(data: str) -> None:
    for level in (-1, 4, 5):
        with pytest.raises(UnreadableBytes):
            read_publish(bytes.fromhex(data), level)


def test_bytes_behind_the_variable_header_are_properties_at_level_5_alone() -> None:
    without, with_length = bytes.fromhex("3006 0003 612f62"), bytes.fromhex("3007 0003 612f62 00")
    assert read_publish(without, 4).properties == b""
    assert read_publish(with_length, 5).properties == b"\0"
    for header, level in ((without, 5), (with_length, 4), (with_length, -1)):
        with pytest.raises(UnreadableBytes):
            read_publish(header, level)


def test_entries_of_subscribe_and_unsubscribe_read_alone_and_in_their_packet() -> None:
    assert read_filter(bytes.fromhex("0003 612f23 01"), 8) == "a/#"
    assert read_filter(bytes.fromhex("82 08 000a 0003 612f23 01"), 8) == "a/#"
    assert read_filter(bytes.fromhex("0003 612f23"), 10) == "a/#"
    with pytest.raises(UnreadableBytes):
        read_filter(bytes.fromhex("0003 612f"), 10)


def test_a_will_is_a_topic_and_flags() -> None:
    assert read_will(bytes.fromhex("0003 612f62 03")) == ("a/b", True, 1, b"")
    assert read_will(bytes.fromhex("0003 612f62 03 02 0101"), 5) == ("a/b", True, 1, bytes.fromhex("02 0101"))
    with pytest.raises(UnreadableBytes):
        read_will(bytes.fromhex("0003 612f62"))
