"""Conversion by the table: the message format page's example, the chain around the header, and the report."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.headers
from mappings.commands.command import FORMAT_DEAD_LETTER, FORMAT_MQRFH, FORMAT_MQRFH2, Dialect
from mappings.conversion.convert import Conversion, Mode, Outcome, convert
from mappings.errors import CommandError, ConversionError, MappingError
from mappings.headers.chain import HeaderChain, read_header_chain
from mappings.headers.mqrfh import Mqrfh
from mappings.headers.mqrfh2 import Mqrfh2
from mappings.headers.name_value import format_name_value_string

mqrfh = partial(tests.headers.mqrfh, ccsid=819, encoding=273, padded=False)
mqrfh2 = partial(tests.headers.mqrfh2, ccsid=819, encoding=273)

BODY = b"\x00\xffpayload"
DEAD_LETTER = (
    b"DLH \x01\0\0\0\x23\x08\0\0" + b"Q".ljust(48) + b"QM".ljust(48)
    + b"\x22\x02\0\0\xb8\x04\0\0MQHRF   \x1a\0\0\0" + b"appl".ljust(28) + b"2026112006150000"
)  # fmt: skip


def converted(data: bytes, format: bytes, to: Dialect, mode: Mode = Mode.STRICT, ccsid: int = 1208) -> Conversion:
    return convert(data, format=format, coded_char_set_id=ccsid, encoding=546, to=to, mode=mode)


def chain_of(conversion: Conversion, ccsid: int = 1208) -> HeaderChain:
    return read_header_chain(conversion.header, format=conversion.format, coded_char_set_id=ccsid, encoding=546)


def to_psc(string: str, mode: Mode = Mode.STRICT) -> str:
    """The psc folder that a NameValueString becomes."""
    conversion = converted(mqrfh(string) + BODY, FORMAT_MQRFH, Dialect.MQRFH2, mode)
    (header,) = chain_of(conversion).headers
    assert isinstance(header, Mqrfh2)
    return header.folders[0].text


def to_string(folder: str, mode: Mode = Mode.STRICT) -> str:
    """The NameValueString that a psc folder becomes."""
    conversion = converted(mqrfh2(folder) + BODY, FORMAT_MQRFH2, Dialect.MQRFH, mode)
    (header,) = chain_of(conversion).headers
    assert isinstance(header, Mqrfh)
    return header.name_value_string.rstrip(" ")


def test_the_example_of_the_message_format_page_is_converted_exactly() -> None:
    string = (
        "MQPSCommand Publish MQPSPubOpts RetainPub MQPSStreamName SAMPLE.BROKER.RESULTS.STREAM "
        'MQPSTopic "Sport/Soccer/State/LatestScore/Team1 Team2"'
    )
    expected = (
        "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt>"
        "<Topic>Sport/Soccer/State/LatestScore/Team1 Team2</Topic></psc>"
    )
    assert to_psc(string) == expected


def test_topic_text_is_never_translated() -> None:
    string = 'MQPSCommand Publish MQPSTopic "Sport/Fußball/Status/Spielstand/Team1 Team2"'
    assert "<Topic>Sport/Fußball/Status/Spielstand/Team1 Team2</Topic>" in to_psc(string)


# MQRFH string and psc folder that become each other in strict mode.
BOTH_WAYS = [
    (
        "MQPSCommand Publish MQPSTopic a MQPSTopic b MQPSPubOpts RetainPub MQPSPubOpts OtherSubsOnly",
        "<psc><Command>Publish</Command><Topic>a</Topic><Topic>b</Topic><PubOpt>RetainPub</PubOpt>"
        "<PubOpt>OtherSubsOnly</PubOpt></psc>",
    ),
    (
        "MQPSCommand Publish MQPSPubTime 2026112006154200 MQPSSeqNum 7 MQPSQName Q MQPSQMgrName QM MQPSTopic a",
        "<psc><Command>Publish</Command><PubTime>2026112006154200</PubTime><SeqNum>7</SeqNum><QName>Q</QName>"
        "<QMgrName>QM</QMgrName><Topic>a</Topic></psc>",
    ),
    (
        "MQPSCommand Publish MQPSTopic 100%%/what%?/%*",
        "<psc><Command>Publish</Command><Topic>100%/what?/*</Topic></psc>",
    ),
    (
        'MQPSCommand Publish MQPSTopic "say ""a & <b>"""',
        '<psc><Command>Publish</Command><Topic>say "a &amp; &lt;b&gt;"</Topic></psc>',
    ),
    (
        "MQPSCommand DeletePub MQPSTopic a/b MQPSDelOpts Local",
        "<psc><Command>DeletePub</Command><Topic>a/b</Topic><DelOpt>Local</DelOpt></psc>",
    ),
    (
        "MQPSCommand DeregSub MQPSRegOpts CorrelAsId MQPSRegOpts DeregAll",
        "<psc><Command>DeregSub</Command><RegOpt>CorrelAsId</RegOpt><RegOpt>DeregAll</RegOpt></psc>",
    ),
    (
        "MQPSCommand RegSub MQPSRegOpts None MQPSTopic *",
        "<psc><Command>RegSub</Command><RegOpt>None</RegOpt><Topic>#</Topic></psc>",
    ),
    (
        "MQPSCommand Publish MQPSRegOpts Local MQPSRegOpts CorrelAsId MQPSTopic a",
        "<psc><Command>Publish</Command><RegOpt>Local</RegOpt><RegOpt>CorrelAsId</RegOpt><Topic>a</Topic></psc>",
    ),
    (
        "MQPSCommand Publish MQPSPubOpts Local MQPSTopic a",
        "<psc><Command>Publish</Command><PubOpt>Local</PubOpt><Topic>a</Topic></psc>",
    ),
]


@pytest.mark.parametrize(("string", "folder"), BOTH_WAYS)
def test_the_nine_names_are_converted_both_ways_in_the_order_of_the_input(string: str, folder: str) -> None:
    assert to_psc(string) == folder
    assert to_string(folder) == string


ONE_WAY_TO_PSC = [
    (
        "MQPSCommand RegSub MQPSRegOpts 257 MQPSTopic a",
        "<RegOpt>CorrelAsId</RegOpt><RegOpt>InformIfRet</RegOpt><Topic>a</Topic>",
    ),
    ("MQPSCommand RegSub MQPSRegOpts 0 MQPSTopic a", "<RegOpt>None</RegOpt><Topic>a</Topic>"),
    ("MQPSCommand RegSub MQPSTopic a/b* MQPSTopic a/c?", "<Topic>a/#</Topic>"),
    ("MQPSCommand RegSub MQPSRegOpts Anon MQPSRegOpts InclStreamName MQPSTopic p/*", "<Topic>p/#</Topic>"),
    ("MQPSCommand Publish MQPSPubOpts 10 MQPSTopic a", "<PubOpt>RetainPub</PubOpt><Topic>a</Topic>"),
    (
        "MQPSCommand Publish MQPSTopic a MQPSStringData x MQPSIntData 5 own 1 MQPSNew 2 MQPSSubName n",
        "<Topic>a</Topic>",
    ),
    ("own 1 MQPSCommand Publish MQPSTopic a", "<Topic>a</Topic>"),
    ("MQPSCommand DeletePub MQPSTopic *", "<Topic>#</Topic>"),
]


@pytest.mark.parametrize(("string", "elements"), ONE_WAY_TO_PSC)
def test_what_psc_does_not_have_is_expanded_translated_or_dropped(string: str, elements: str) -> None:
    verb = string.partition("MQPSCommand ")[2].split(" ")[0]
    assert to_psc(string) == f"<psc><Command>{verb}</Command>{elements}</psc>"


ONE_WAY_TO_STRING = [
    ("<Topic>a</Topic><Command>Publish</Command>", "Publish MQPSTopic a"),
    (
        "<Command>RegSub</Command><RegOpt>257</RegOpt><Topic>a</Topic>",
        "RegSub MQPSRegOpts CorrelAsId MQPSRegOpts InformIfRet MQPSTopic a",
    ),
    ("<Command>RegSub</Command><Topic>a/#</Topic><Topic>a/+</Topic>", "RegSub MQPSTopic a MQPSTopic a/*"),
    ("<Command>RegSub</Command><Topic>a</Topic><SubPoint></SubPoint>", "RegSub MQPSTopic a"),
    ("<Command>Publish</Command><Topic>a</Topic><SubPoint>euro</SubPoint><New>1</New>", "Publish MQPSTopic a"),
    ("<Command>ReqUpdate</Command><Topic>a/+/c</Topic>", "ReqUpdate MQPSTopic a/*/c"),
]


@pytest.mark.parametrize(("elements", "string"), ONE_WAY_TO_STRING)
def test_what_mqrfh_does_not_have_is_expanded_translated_or_dropped(elements: str, string: str) -> None:
    assert to_string(f"<psc>{elements}</psc>") == f"MQPSCommand {string}"


def test_extended_mode_copies_names_identities_and_user_data() -> None:
    string = "MQPSCommand RegSub MQPSSubName n MQPSSubIdentity i MQPSSubUserData d MQPSTopic a"
    folder = (
        "<psc><Command>RegSub</Command><SubName>n</SubName><SubIdentity>i</SubIdentity>"
        "<SubUserData>d</SubUserData><Topic>a</Topic></psc>"
    )
    assert to_psc(string, Mode.EXTENDED) == folder
    assert to_string(folder, Mode.EXTENDED) == string
    assert to_string(folder) == "MQPSCommand RegSub MQPSTopic a"


@pytest.mark.parametrize(
    ("verb", "option", "name"),
    [
        ("RegSub", "AddName", "SubName"),
        ("RegSub", "JoinShared", "SubIdentity"),
        ("RegSub", "JoinExcl", "SubIdentity"),
    ],
)
def test_an_option_that_needs_a_name_is_dropped_with_it_and_says_why(verb: str, option: str, name: str) -> None:
    string = f"MQPSCommand {verb} MQPSRegOpts {option} MQPSRegOpts CorrelAsId MQPS{name} n MQPSTopic a"
    folder = (
        f"<psc><Command>{verb}</Command><RegOpt>{option}</RegOpt><RegOpt>CorrelAsId</RegOpt>"
        f"<{name}>n</{name}><Topic>a</Topic></psc>"
    )
    without = f"<psc><Command>{verb}</Command><RegOpt>CorrelAsId</RegOpt><Topic>a</Topic></psc>"
    assert to_psc(string) == without
    assert to_string(folder) == f"MQPSCommand {verb} MQPSRegOpts CorrelAsId MQPSTopic a"
    report = converted(mqrfh(string), FORMAT_MQRFH, Dialect.MQRFH2).report
    assert [(field.name, field.value) for field in report.dropped] == [("MQPSRegOpts", option), (f"MQPS{name}", "n")]
    assert report.dropped[0].reason == f"{option} means nothing without {name}, which strict mode does not copy"
    assert to_psc(string, Mode.EXTENDED) == folder
    assert to_string(folder, Mode.EXTENDED) == string


def test_an_option_that_needs_a_name_is_taken_out_of_a_sum() -> None:
    report = converted(mqrfh("MQPSCommand RegSub MQPSRegOpts 147457 MQPSTopic a"), FORMAT_MQRFH, Dialect.MQRFH2).report
    assert [(field.value, field.target) for field in report.fields[1:4]] == [
        ("147457 (AddName)", None),
        ("147457 (JoinShared)", None),
        ("147457", "RegOpt CorrelAsId"),
    ]


@pytest.mark.parametrize("verb", ["DeregSub", "ReqUpdate"])
def test_a_command_that_says_by_name_alone_what_it_means_needs_extended_mode(verb: str) -> None:
    string, folder = f"MQPSCommand {verb} MQPSSubName n", f"<psc><Command>{verb}</Command><SubName>n</SubName></psc>"
    assert to_psc(string, Mode.EXTENDED) == folder
    assert to_string(folder, Mode.EXTENDED) == string
    for convert_strictly, name in ((lambda: to_psc(string), "MQPSSubName"), (lambda: to_string(folder), "SubName")):
        with pytest.raises(ConversionError, match="use extended mode") as caught:
            convert_strictly()
        assert (caught.value.reason_code, caught.value.parameter) == (2339, name)
    everything = f"MQPSCommand {verb} MQPSRegOpts DeregAll MQPSSubName n"
    assert to_psc(everything) == f"<psc><Command>{verb}</Command><RegOpt>DeregAll</RegOpt></psc>"


@pytest.mark.parametrize(
    ("data", "format", "to", "reasons"),
    [
        (mqrfh("MQPSCommand RegSub MQPSTopic a/b MQPSTopic *"), FORMAT_MQRFH, Dialect.MQRFH2, ["one of the nine"] * 2),
        (mqrfh("MQPSCommand RegSub MQPSTopic a/b*"), FORMAT_MQRFH, Dialect.MQRFH2, ["wider: * and ? match / too"]),
        (
            mqrfh2("<psc><Command>RegSub</Command><Topic>a/+</Topic><Topic>b/#</Topic></psc>"),
            FORMAT_MQRFH2,
            Dialect.MQRFH,
            ["wider: * matches / too, and + does not", "one of the nine"],
        ),
    ],
)
def test_the_report_says_of_a_pattern_that_it_became_wider(
    data: bytes, format: bytes, to: Dialect, reasons: list[str]
) -> None:
    topics = [field for field in converted(data, format, to).report.fields if "Topic" in field.name]
    assert all(field.reason.startswith(reason) for field, reason in zip(topics, reasons, strict=True))


def test_extended_mode_puts_local_of_a_publish_where_each_format_has_it() -> None:
    string = "MQPSCommand Publish MQPSRegOpts Local MQPSTopic a"
    folder = "<psc><Command>Publish</Command><PubOpt>Local</PubOpt><Topic>a</Topic></psc>"
    assert to_psc(string, Mode.EXTENDED) == folder
    assert to_string(folder, Mode.EXTENDED) == string
    assert to_psc("MQPSCommand Publish MQPSRegOpts 5 MQPSTopic a", Mode.EXTENDED) == (
        "<psc><Command>Publish</Command><PubOpt>Local</PubOpt><RegOpt>CorrelAsId</RegOpt><Topic>a</Topic></psc>"
    )


def test_every_field_of_the_input_is_in_the_report() -> None:
    string = "MQPSCommand RegSub MQPSRegOpts 259 MQPSStreamName S MQPSTopic a%%/* MQPSSubName n own 1 MQPSNew 2"
    report = converted(mqrfh(string), FORMAT_MQRFH, Dialect.MQRFH2).report
    assert [(field.name, field.value, field.outcome, field.target) for field in report.fields] == [
        ("MQPSCommand", "RegSub", Outcome.RENAMED, "Command"),
        ("MQPSRegOpts", "259 (Anon)", Outcome.DROPPED, None),
        ("MQPSRegOpts", "259", Outcome.EXPANDED, "RegOpt CorrelAsId, RegOpt InformIfRet"),
        ("MQPSStreamName", "S", Outcome.DROPPED, None),
        ("MQPSTopic", "a%%/*", Outcome.EXPANDED, "Topic a%/#"),
        ("MQPSSubName", "n", Outcome.DROPPED, None),
        ("own", "1", Outcome.DROPPED, None),
        ("MQPSNew", "2", Outcome.DROPPED, None),
    ]
    assert all(field.reason and field.source for field in report.fields)
    assert [field.name for field in report.dropped] == [
        "MQPSRegOpts",
        "MQPSStreamName",
        "MQPSSubName",
        "own",
        "MQPSNew",
    ]
    assert (report.source_format, report.target_format, report.mode, report.table_version) == (
        "mqrfh",
        "mqrfh2",
        Mode.STRICT,
        "1",
    )


def test_a_report_becomes_plain_values() -> None:
    report = converted(mqrfh("MQPSCommand Publish MQPSTopic a"), FORMAT_MQRFH, Dialect.MQRFH2, Mode.EXTENDED).report
    assert report.as_dict() == {
        "source_format": "mqrfh",
        "target_format": "mqrfh2",
        "mode": "extended",
        "table_version": "1",
        "fields": [
            {
                "name": name,
                "value": value,
                "outcome": "renamed",
                "target": target,
                "reason": "one of the nine names with the same meaning in both formats",
                "source": "Message formats (aq19780_)",
            }
            for name, value, target in [("MQPSCommand", "Publish", "Command"), ("MQPSTopic", "a", "Topic")]
        ],
    }


def test_folders_are_dropped_on_the_way_to_mqrfh_and_reported() -> None:
    data = mqrfh2(
        "<mcd><Msd>none</Msd></mcd>", "<psc><Command>Publish</Command><Topic>a</Topic></psc>", "<mine></mine>"
    )
    report = converted(data + BODY, FORMAT_MQRFH2, Dialect.MQRFH).report
    assert [(field.name, field.outcome, field.value) for field in report.dropped] == [
        ("mcd", Outcome.DROPPED, "26 bytes"),
        ("mine", Outcome.DROPPED, "13 bytes"),
    ]
    assert all(field.reason and field.source for field in report.fields)


REFUSED = [
    ("<psc><Command>RegSub</Command><Topic>a</Topic><Filter>x</Filter></psc>", "Filter"),
    ("<psc><Command>DeregSub</Command><Topic>a</Topic><Filter>x</Filter></psc>", "Filter"),
    ("<psc><Command>RegSub</Command><Topic>a</Topic><SubPoint>euro</SubPoint></psc>", "SubPoint"),
    ("<psc><Command>ReqUpdate</Command><Topic>a/#</Topic></psc>", "a/#"),
]


@pytest.mark.parametrize(("folder", "parameter"), REFUSED)
def test_a_subscription_is_refused_rather_than_widened(folder: str, parameter: str) -> None:
    with pytest.raises(ConversionError) as caught:
        to_string(folder)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("verb", ["DeregSub", "RegSub", "DeletePub"])
def test_a_topic_that_stands_twice_stands_twice_in_the_other_format(verb: str) -> None:
    """The report says of every field what became of it, and none vanishes on the way."""
    folder = f"<psc><Command>{verb}</Command><Topic>a</Topic><Topic>b</Topic><Topic>a</Topic></psc>"
    string = f"MQPSCommand {verb} MQPSTopic a MQPSTopic b MQPSTopic a"
    assert (to_psc(string), to_string(folder)) == (folder, string)
    report = converted(mqrfh(string), FORMAT_MQRFH, Dialect.MQRFH2).report
    assert [(field.value, field.target) for field in report.fields[1:]] == [(each, "Topic") for each in "aba"]


def test_a_pattern_that_stands_twice_stands_twice_and_one_of_two_topics_once() -> None:
    folder = "<psc><Command>DeregSub</Command><Topic>a/+</Topic><Topic>a/#</Topic><Topic>a/+</Topic></psc>"
    assert to_string(folder) == "MQPSCommand DeregSub MQPSTopic a/* MQPSTopic a MQPSTopic a/*"


@pytest.mark.parametrize("second", ["a", "b"])
def test_a_second_topic_in_req_update_is_refused_and_not_dropped(second: str) -> None:
    string = f"MQPSCommand ReqUpdate MQPSTopic a MQPSTopic {second}"
    folder = f"<psc><Command>ReqUpdate</Command><Topic>a</Topic><Topic>{second}</Topic></psc>"
    for convert_it, name in ((lambda: to_psc(string), "MQPSTopic"), (lambda: to_string(folder), "Topic")):
        with pytest.raises(CommandError) as caught:
            convert_it()
        assert (caught.value.reason_code, caught.value.parameter) == (2338, name)


@pytest.mark.parametrize("verb", ["RegPub", "DeregPub"])
def test_commands_of_a_publishers_registration_have_no_psc_form(verb: str) -> None:
    with pytest.raises(ConversionError, match=f"{verb} has no psc form"):
        to_psc(f"MQPSCommand {verb} MQPSTopic a")


@pytest.mark.parametrize(
    ("string", "reason_code"),
    [
        ("MQPSTopic a", 2336),
        ("MQPSCommand", 2335),
        ("MQPSCommand Publish MQPSCommand Publish", 2338),
        ("MQPSCommand Publish MQPSPubOpts Retain", 3084),
        ("MQPSCommand Publish MQPSTopic a*", 3072),
        ("MQPSCommand RegSub MQPSTopic a+", 3072),
        ("MQPSCommand RegSub MQPSTopic a%", 3072),
        ("MQPSCommand Publish MQPSTopic \x01", 3072),
    ],
)
def test_a_wrong_header_is_not_converted(string: str, reason_code: int) -> None:
    with pytest.raises(MappingError) as caught:
        to_psc(string)
    assert caught.value.reason_code == reason_code


def test_a_group_in_psc_is_not_converted() -> None:
    with pytest.raises(CommandError):
        to_string("<psc><Command>Publish</Command><Topic><a>b</a></Topic></psc>")


def test_a_character_that_the_header_cannot_hold_is_reported_as_such() -> None:
    data = mqrfh2("<psc><Command>Publish</Command><Topic>日本</Topic></psc>")
    with pytest.raises(ConversionError) as caught:
        converted(data, FORMAT_MQRFH2, Dialect.MQRFH, ccsid=819)
    assert (caught.value.reason_code, caught.value.parameter) == (2119, "日")


def test_an_unknown_page_of_the_header_is_no_conversion_error() -> None:
    data = mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    with pytest.raises(MappingError) as caught:
        converted(data, FORMAT_MQRFH2, Dialect.MQRFH, ccsid=932)
    assert caught.value.reason_code == 2115


@pytest.mark.parametrize(
    ("data", "format", "to"),
    [
        (mqrfh2("<psc><Command>Publish</Command></psc>") + BODY, FORMAT_MQRFH2, Dialect.MQRFH2),
        (mqrfh2("<usr><pump>7</pump></usr>") + BODY, FORMAT_MQRFH2, Dialect.MQRFH2),
        (mqrfh("MQPSCommand Publish") + BODY, FORMAT_MQRFH, Dialect.MQRFH),
    ],
)
def test_a_header_in_the_wanted_format_is_returned_unchanged(data: bytes, format: bytes, to: Dialect) -> None:
    conversion = converted(data, format, to)
    assert (conversion.format, conversion.header + data[conversion.body_offset :]) == (format, data)
    assert conversion.report.fields == ()


@pytest.mark.parametrize("to", list(Dialect))
@pytest.mark.parametrize(
    ("data", "format"),
    [
        (BODY, b"MQSTR   "),
        (DEAD_LETTER[:116] + b"MQSTR   " + DEAD_LETTER[124:], FORMAT_DEAD_LETTER),
    ],
)
def test_a_message_without_a_command_is_not_converted(data: bytes, format: bytes, to: Dialect) -> None:
    with pytest.raises(ConversionError) as caught:
        converted(data, format, to)
    assert caught.value.reason_code == 2334


def test_an_mqrfh2_without_a_command_has_no_form_in_mqrfh() -> None:
    with pytest.raises(ConversionError) as caught:
        converted(mqrfh2("<usr></usr>"), FORMAT_MQRFH2, Dialect.MQRFH)
    assert caught.value.reason_code == 2334


@pytest.mark.parametrize(
    ("data", "format", "to"),
    [
        (mqrfh("a b ", format=FORMAT_MQRFH, ccsid=1208, encoding=546) + mqrfh("a b "), FORMAT_MQRFH, Dialect.MQRFH2),
        (mqrfh2("<psc><Command>Publish</Command></psc>", "<psc></psc>"), FORMAT_MQRFH2, Dialect.MQRFH),
        (
            mqrfh2("<psc></psc>", format=FORMAT_MQRFH2, encoding=546) + mqrfh2("<psc></psc>"),
            FORMAT_MQRFH2,
            Dialect.MQRFH,
        ),
    ],
)
def test_a_message_with_two_commands_is_not_converted(data: bytes, format: bytes, to: Dialect) -> None:
    with pytest.raises(ConversionError, match="more than one"):
        converted(data, format, to)


@pytest.mark.parametrize("ccsid", [819, 0, -2, 1208])
def test_the_description_of_the_body_is_copied_and_the_body_untouched(ccsid: int) -> None:
    data = mqrfh("MQPSCommand Publish MQPSTopic a ", format=b"JSON    ", ccsid=ccsid, encoding=785) + BODY
    there = converted(data, FORMAT_MQRFH, Dialect.MQRFH2)
    assert there.format == FORMAT_MQRFH2
    assert there.header[12:32] == data[12:32]
    assert data[there.body_offset :] == BODY
    back = converted(there.header + BODY, there.format, Dialect.MQRFH)
    assert (back.format, back.header + BODY) == (FORMAT_MQRFH, data)


def test_the_new_header_is_in_the_page_and_order_of_the_structure_in_front() -> None:
    ebcdic = bytes.fromhex("d9c6c840 00000001 00000040 00000222 000004b8 d4d8e2e3d9404040 00000000")
    data = ebcdic + "MQPSCommand Publish MQPSTopic a ".encode("cp500")
    conversion = convert(data, format=FORMAT_MQRFH, coded_char_set_id=500, encoding=273, to=Dialect.MQRFH2)
    assert conversion.header[:8].hex() == "d9c6c84000000002"
    assert conversion.header[12:32] == data[12:32]
    assert conversion.header[40:].rstrip(b" ") == b"<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    back = convert(conversion.header, format=FORMAT_MQRFH2, coded_char_set_id=500, encoding=273, to=Dialect.MQRFH)
    assert back.header == data


def test_a_dead_letter_header_in_front_stays_and_names_the_new_format() -> None:
    data = DEAD_LETTER + mqrfh("MQPSCommand Publish MQPSTopic a ") + BODY
    conversion = converted(data, FORMAT_DEAD_LETTER, Dialect.MQRFH2)
    assert conversion.format == FORMAT_DEAD_LETTER
    assert conversion.header[:172] == DEAD_LETTER.replace(b"MQHRF   ", b"MQHRF2  ")
    back = converted(conversion.header + BODY, FORMAT_DEAD_LETTER, Dialect.MQRFH)
    assert back.header + BODY == data


def test_the_classic_jms_publication_keeps_its_second_header() -> None:
    second = mqrfh2("<mcd><Msd>jms_text</Msd></mcd>", "<usr><x>1</x></usr>", ccsid=1208, encoding=546)
    first = mqrfh("MQPSCommand Publish MQPSTopic a ", format=FORMAT_MQRFH2, ccsid=1208, encoding=546)
    conversion = converted(first + second + BODY, FORMAT_MQRFH, Dialect.MQRFH2)
    assert conversion.header.endswith(second)
    assert (first + second + BODY)[conversion.body_offset :] == BODY
    assert [(field.name, field.outcome) for field in conversion.report.fields[2:]] == [
        ("mcd", Outcome.COPIED),
        ("usr", Outcome.COPIED),
    ]
    back = converted(conversion.header + BODY, FORMAT_MQRFH2, Dialect.MQRFH)
    assert back.header == mqrfh("MQPSCommand Publish MQPSTopic a ", ccsid=1208, encoding=546)
    assert [field.name for field in back.report.dropped] == ["mcd", "usr"]


def test_headers_that_vanish_leave_a_description_that_is_true() -> None:
    usr = mqrfh2("<usr></usr>", format=FORMAT_MQRFH2, ccsid=850, encoding=546)
    psc = mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>", ccsid=-2)
    conversion = converted(usr + psc + BODY, FORMAT_MQRFH2, Dialect.MQRFH)
    chain = chain_of(conversion)
    assert len(chain.headers) == 1
    assert (chain.body_coded_char_set_id, chain.body_encoding, chain.body_format) == (850, 273, b"MQSTR   ")
    assert conversion.report.fields[0].name == "usr"
    assert conversion.report.fields[0].outcome is Outcome.DROPPED


def test_a_dead_letter_header_in_front_of_one_that_vanishes_describes_what_follows_now() -> None:
    dead_letter = DEAD_LETTER.replace(b"MQHRF   ", b"MQHRF2  ")
    usr = mqrfh2("<usr></usr>", format=FORMAT_MQRFH2, ccsid=850, encoding=273)
    psc = mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>", order=">")
    conversion = converted(dead_letter + usr + psc + BODY, FORMAT_DEAD_LETTER, Dialect.MQRFH)
    chain = chain_of(conversion)
    assert [(place.coded_char_set_id, place.encoding) for place in chain.places] == [(1208, 546), (850, 273)]
    assert chain.body_offset == len(conversion.header)


def test_a_first_header_in_another_page_than_the_message_is_not_guessed_at() -> None:
    usr = mqrfh2("<usr></usr>", format=FORMAT_DEAD_LETTER, ccsid=850, encoding=546)
    psc = mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    dead_letter = DEAD_LETTER.replace(b"MQHRF   ", b"MQHRF2  ")
    with pytest.raises(ConversionError, match="another code page"):
        converted(usr + dead_letter + psc, FORMAT_MQRFH2, Dialect.MQRFH)


def test_an_answer_is_converted_both_ways() -> None:
    string = (
        "MQPSCompCode 2 MQPSReason 3072 MQPSReasonText MQRCCF_TOPIC_ERROR "
        "MQPSCommand RegSub MQPSErrorId 5 MQPSTopic ABC%x"
    )
    folder = "<pscr><Completion>error</Completion><Response><Reason>3072</Reason><Topic>ABC%x</Topic></Response></pscr>"
    assert to_psc(string) == folder
    data = mqrfh2(folder, "<psc><Command>RegSub</Command></psc>")
    conversion = converted(data, FORMAT_MQRFH2, Dialect.MQRFH)
    assert conversion.header[32:].rstrip(b"\0").decode() == (
        "MQPSCompCode 2 MQPSReason 3072 MQPSReasonText MQRCCF_TOPIC_ERROR MQPSTopic ABC%x"
    )
    assert conversion.header.endswith(b"\0")
    assert [(field.name, field.target) for field in conversion.report.fields] == [
        ("Completion", "MQPSCompCode"),
        ("Reason", "MQPSReason"),
        ("Topic", "MQPSTopic"),
        ("psc", None),
    ]
    report = converted(mqrfh(string), FORMAT_MQRFH, Dialect.MQRFH2).report
    assert [(field.name, field.target) for field in report.fields] == [
        ("MQPSCompCode", "Completion"),
        ("MQPSReason", "Reason"),
        ("MQPSReasonText", None),
        ("MQPSCommand", None),
        ("MQPSErrorId", None),
        ("MQPSTopic", "Topic"),
    ]


def test_an_answer_that_is_well_keeps_what_it_returns() -> None:
    string = "MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE MQPSCommand RegSub MQPSTopic a/b MQPSFuture 1"
    folder = "<pscr><Completion>ok</Completion><Command>RegSub</Command><Topic>a/b</Topic><Future>1</Future></pscr>"
    assert to_psc(string) == folder
    assert to_psc("MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE") == "<pscr><Completion>ok</Completion></pscr>"
    assert converted(mqrfh2(folder), FORMAT_MQRFH2, Dialect.MQRFH).header[32:].rstrip(b"\0").decode() == string


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cc", "Cs"]), max_size=20)
NAMES = st.text("ABCZ019._/%", min_size=1, max_size=48)
PUBLICATION_TOKENS = st.lists(
    st.sampled_from(["CorrelAsId", "RetainPub", "OtherSubsOnly", "IsRetainedPub"]), max_size=3
)
REGISTRATION_TOKENS = st.lists(
    st.sampled_from(["CorrelAsId", "Local", "DupsOK", "PersAsQueue", "NoAlter", "VariableUserId", "None"]), max_size=3
)


#: Characters that a folder writes otherwise.
_REFERENCES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xd;"}


@given(
    topics=st.lists(TEXT.filter(lambda text: not {"\ufffe", "\uffff"} & set(text)), max_size=3),
    publication=PUBLICATION_TOKENS,
    registration=REGISTRATION_TOKENS,
    texts=st.dictionaries(st.sampled_from(["PubTime", "SeqNum", "QName", "QMgrName"]), NAMES),
    mode=st.sampled_from(list(Mode)),
)
def test_to_mqrfh_and_back_keeps_the_nine_fields_and_every_token(
    topics: list[str], publication: list[str], registration: list[str], texts: dict[str, str], mode: Mode
) -> None:
    fields = [("Command", "Publish"), *(("PubOpt", token) for token in publication)]
    fields += [("Topic", topic) for topic in topics] + [("RegOpt", token) for token in registration if token != "Local"]
    fields += texts.items()
    elements = "".join(
        f"<{name}>{''.join(_REFERENCES.get(each, each) for each in value)}</{name}>" for name, value in fields
    )
    elements = "".join(f"&#x{ord(each):x};" if each > "\uffff" else each for each in elements)
    folder = f"<psc>{elements}</psc>"
    data = mqrfh2(folder, ccsid=1208, encoding=546)
    there = converted(data + BODY, FORMAT_MQRFH2, Dialect.MQRFH, mode)
    back = converted(there.header + BODY, there.format, Dialect.MQRFH2, mode)
    assert back.header == data
    assert there.report.dropped == back.report.dropped == ()


@given(st.lists(st.tuples(TEXT.filter(lambda name: not name.startswith("MQ")), TEXT), max_size=5))
def test_own_pairs_are_never_copied_and_always_reported(pairs: list[tuple[str, str]]) -> None:
    string = format_name_value_string((("MQPSCommand", "Publish"), *pairs, ("MQPSTopic", "a")))
    conversion = converted(mqrfh(string), FORMAT_MQRFH, Dialect.MQRFH2)
    assert conversion.header[40:].rstrip(b" ") == b"<psc><Command>Publish</Command><Topic>a</Topic></psc>"
    assert [(field.name, field.value) for field in conversion.report.dropped] == pairs


@pytest.mark.parametrize(
    ("data", "format", "to"),
    [
        (mqrfh("MQPSCommand DeletePub MQPSTopic a/x*"), FORMAT_MQRFH, Dialect.MQRFH2),
        (mqrfh("MQPSCommand DeletePub MQPSTopic a/*"), FORMAT_MQRFH, Dialect.MQRFH2),
        (mqrfh2("<psc><Command>DeletePub</Command><Topic>a/+/c</Topic></psc>"), FORMAT_MQRFH2, Dialect.MQRFH),
    ],
)
def test_a_deletion_that_would_reach_further_is_refused(data: bytes, format: bytes, to: Dialect) -> None:
    with pytest.raises(ConversionError, match="would delete more") as caught:
        converted(data, format, to)
    assert caught.value.reason_code == 3072


@pytest.mark.parametrize("options", ["LeaveOnly", "524289", "LeaveOnly MQPSRegOpts DeregAll"])
def test_a_leaving_that_would_end_the_subscription_for_everybody_is_refused(options: str) -> None:
    """One identity leaves a subscription that others share: without MQREGO_LEAVE_ONLY it would end for them too."""
    string = f"MQPSCommand DeregSub MQPSRegOpts {options} MQPSTopic a MQPSSubIdentity i"
    with pytest.raises(ConversionError, match="end the subscription for everybody") as caught:
        converted(mqrfh(string), FORMAT_MQRFH, Dialect.MQRFH2)
    assert (caught.value.reason_code, caught.value.parameter) == (2337, "MQPSRegOpts")
    assert "<RegOpt>LeaveOnly</RegOpt>" in to_psc(string, Mode.EXTENDED)
    folder = (
        "<psc><Command>DeregSub</Command><RegOpt>LeaveOnly</RegOpt><Topic>a</Topic><SubIdentity>i</SubIdentity></psc>"
    )
    with pytest.raises(ConversionError, match="use extended mode"):
        to_string(folder)
    assert "MQPSRegOpts LeaveOnly" in to_string(folder, Mode.EXTENDED)


def test_a_deletion_of_a_whole_tree_goes_there_and_back() -> None:
    data = mqrfh2("<psc><Command>DeletePub</Command><Topic>a/#</Topic></psc>")
    there = converted(data, FORMAT_MQRFH2, Dialect.MQRFH)
    assert b"MQPSTopic a MQPSTopic a/*" in there.header
    back = converted(there.header, FORMAT_MQRFH, Dialect.MQRFH2)
    assert b"<Topic>a</Topic><Topic>a/#</Topic>" in back.header
