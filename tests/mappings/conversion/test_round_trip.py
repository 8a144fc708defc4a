"""The law of what survives there and back, for any fields, and for folders that are kept."""

import struct
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.headers
from mappings.commands.command import FORMAT_MQRFH, FORMAT_MQRFH2, Completion, Dialect, Response, ResponseReason
from mappings.commands.response import pscr_folder, response_string
from mappings.conversion.convert import Folders, Mode, Outcome, convert
from mappings.headers.chain import read_header_chain
from mappings.headers.mqrfh2 import Mqrfh2, elements_text
from mappings.headers.name_value import format_name_value_string
from tests.mappings.round_trip import Meaning, surviving_meaning
from tests.mappings.there_and_back import assert_law_holds

mqrfh = partial(tests.headers.mqrfh, ccsid=819, encoding=273, padded=False)
mqrfh2 = partial(tests.headers.mqrfh2, ccsid=819, encoding=273)

BODY = b"\x00\xffpayload"
OPTIONS = ["None", "CorrelAsId", "Local", "InformIfRet", "DeregAll", "AddName", "JoinExcl", "0", "1", "5", "131329"]
PUBLICATION_OPTIONS = ["None", "RetainPub", "Local", "CorrelAsId", "2", "3", "16"]
TOPICS = st.one_of(
    st.sampled_from(["a/b", "a/#", "#", "+/b/#", "a/+", "a/b*", "p/x?y", "100%%", "%*", "a b", "*", "$SYS/x"]),
    st.text(alphabet="ab/ %*?+#é&<", max_size=6),
)
TEXTS = st.text(alphabet="AB .&<>\"'é\t\r", max_size=5)


@given(
    st.sampled_from(["Publish", "DeletePub", "RegSub", "DeregSub", "ReqUpdate"]),
    st.lists(TOPICS, max_size=3),
    st.lists(st.sampled_from(OPTIONS), max_size=2),
    st.lists(st.sampled_from(PUBLICATION_OPTIONS), max_size=2),
    st.dictionaries(st.sampled_from(["QName", "QMgrName", "PubTime", "SubName", "SubIdentity", "Mine"]), TEXTS),
    st.sampled_from(list(Dialect)),
    st.sampled_from(list(Mode)),
)
def test_the_law_holds_for_any_fields(
    verb: str,
    topics: list[str],
    registration: list[str],
    publication: list[str],
    texts: dict[str, str],
    dialect: Dialect,
    mode: Mode,
) -> None:
    keyed = [("Command", verb), *(("RegOpt", value) for value in registration)]
    keyed += [("PubOpt", value) for value in publication] + [("Topic", topic) for topic in topics]
    keyed += texts.items()
    if dialect is Dialect.MQRFH2:
        data, format = mqrfh2(f"<psc>{elements_text(tuple(keyed))}</psc>".replace("\r", "&#13;")), FORMAT_MQRFH2
    else:
        plural = {"RegOpt": "RegOpts", "PubOpt": "PubOpts"}
        pairs = tuple((f"MQPS{plural.get(name, name)}", value) for name, value in keyed)
        data, format = mqrfh(format_name_value_string(pairs)), FORMAT_MQRFH
    assert_law_holds(data + BODY, format=format, coded_char_set_id=1208, encoding=546, mode=mode)


REASONS = st.builds(
    ResponseReason,
    reason_code=st.sampled_from([2336, 3072, 3081, 9999]),
    fields=st.lists(
        st.tuples(
            st.sampled_from(["Topic", "RegOpt", "QName", "ErrorPos", "ParmId"]), st.sampled_from(["a/b", "1", "x y"])
        ),
        max_size=2,
    ).map(tuple),
)


@given(
    st.sampled_from(list(Completion)),
    st.lists(REASONS, max_size=2),
    st.lists(st.tuples(st.sampled_from(["Topic", "SubName", "Future"]), st.sampled_from(["a", "b c"])), max_size=2),
    st.sampled_from([None, "RegSub"]),
    st.sampled_from(list(Dialect)),
)
def test_the_law_holds_for_any_answer(
    completion: Completion,
    reasons: list[ResponseReason],
    fields: list[tuple[str, str]],
    verb: str | None,
    dialect: Dialect,
) -> None:
    ok = completion is Completion.OK
    response = Response(
        completion=completion,
        reasons=() if ok else tuple(reasons) or (ResponseReason(reason_code=2335),),
        fields=tuple(fields) if ok else (),
        verb=verb,
    )
    if dialect is Dialect.MQRFH2:
        data, format = mqrfh2(pscr_folder(response)), FORMAT_MQRFH2
    else:
        data, format = mqrfh(response_string(response, 1208).decode()), FORMAT_MQRFH
    assert assert_law_holds(data + BODY, format=format, coded_char_set_id=1208, encoding=546, mode=Mode.STRICT)


@pytest.mark.parametrize(
    "name", ["MQPSRea:onText", "MQPSgröße", "MQPSCompletion", "MQPSResponse", "1a", "<x>", "MQPSPubOpt", "MQPS"]
)
def test_a_name_in_an_answer_that_no_element_can_have_is_dropped_and_reported(name: str) -> None:
    data = mqrfh(f"MQPSCompCode 1 MQPSReason 3081 MQPSReasonText x {name} v MQPSTopic a")
    conversion = convert(data, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH2)
    expected = b"<Response><Reason>3081</Reason><Topic>a</Topic></Response>"
    if name == "MQPSPubOpt":  # the name of psc, which MQRFH spells otherwise, is understood
        expected = b"<Response><Reason>3081</Reason><PubOpt>v</PubOpt><Topic>a</Topic></Response>"
    else:
        assert name in [field.name for field in conversion.report.dropped]
    assert expected in conversion.header
    assert assert_law_holds(data, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546, mode=Mode.STRICT)


def test_the_law_says_what_is_lost() -> None:
    fields = (
        ("MQPSCommand", "RegSub"),
        ("MQPSRegOpts", "259"),
        ("MQPSStreamName", "S"),
        ("MQPSTopic", "a/b*"),
        ("MQPSSubName", "n"),
        ("own", "1"),
    )
    strict = Meaning(
        verb="RegSub",
        topics=("a", "a/*"),
        fields=(),
        options=frozenset({("RegOpt", "CorrelAsId"), ("RegOpt", "InformIfRet")}),
    )
    assert surviving_meaning("RegSub", fields, Dialect.MQRFH, Mode.STRICT) == strict
    assert surviving_meaning("RegSub", fields, Dialect.MQRFH, Mode.EXTENDED).fields == (("SubName", "n"),)
    added = (*fields, ("MQPSRegOpts", "AddName"))
    assert surviving_meaning("RegSub", added, Dialect.MQRFH, Mode.STRICT) == strict
    extended = surviving_meaning("RegSub", added, Dialect.MQRFH, Mode.EXTENDED).options
    assert extended == strict.options | {("RegOpt", "AddName")}


@pytest.mark.parametrize(("dialect", "field"), [(Dialect.MQRFH, "RegOpt"), (Dialect.MQRFH2, "PubOpt")])
def test_local_of_a_publication_ends_in_the_field_of_its_format(dialect: Dialect, field: str) -> None:
    name = "MQPSPubOpts" if dialect is Dialect.MQRFH else "RegOpt"
    meaning = surviving_meaning("Publish", ((name, "Local"),), dialect, Mode.EXTENDED)
    assert meaning.options == {(field, "Local")}


def test_kept_folders_follow_in_a_header_of_their_own_and_come_back_behind() -> None:
    psc, mcd, usr = "<psc><Command>Publish</Command><Topic>a</Topic></psc>", "<mcd><Msd>none</Msd></mcd>", "<usr></usr>"
    data = mqrfh2(mcd, psc, usr, flags=7) + BODY
    there = convert(
        data,
        format=FORMAT_MQRFH2,
        coded_char_set_id=1208,
        encoding=546,
        to=Dialect.MQRFH,
        folders=Folders.KEPT,
    )
    chain = read_header_chain(there.header, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546)
    _, behind = chain.headers
    assert isinstance(behind, Mqrfh2)
    assert [folder.raw.decode() for folder in behind.folders] == [mcd, usr]
    assert (chain.body_format, chain.body_coded_char_set_id, chain.body_encoding) == (b"MQSTR   ", 819, 273)
    assert [(field.name, field.outcome) for field in there.report.fields[2:]] == [
        ("mcd", Outcome.COPIED),
        ("usr", Outcome.COPIED),
        ("Flags", Outcome.DROPPED),
    ]
    back = convert(there.header + BODY, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH2)
    assert back.header[36:].count(b"<mcd>") == 1
    kept = {"folders": Folders.KEPT}
    assert assert_law_holds(data, format=FORMAT_MQRFH2, coded_char_set_id=1208, encoding=546, mode=Mode.STRICT, **kept)


def test_a_header_of_folders_alone_is_kept_in_front_by_choice() -> None:
    usr = mqrfh2("<usr><a>1</a></usr>", format=FORMAT_MQRFH2).replace(
        struct.pack("<ii", 273, 819), struct.pack("<ii", 546, 1208)
    )
    data = usr + mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>") + BODY
    there = convert(
        data,
        format=FORMAT_MQRFH2,
        coded_char_set_id=1208,
        encoding=546,
        to=Dialect.MQRFH,
        folders=Folders.KEPT,
    )
    assert there.format == FORMAT_MQRFH2
    assert there.header.startswith(usr.replace(b"MQHRF2  ", b"MQHRF   "))


def test_what_has_no_name_is_reported_too() -> None:
    data = mqrfh("MQPSCommand Publish MQPSTopic a\0lost text\0\0", flags=3)
    report = convert(data, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH2).report
    assert [(field.name, field.value) for field in report.dropped] == [("Flags", "3"), ("text behind NUL", "9 bytes")]
    data = mqrfh2("<psc><Command>Publish</Command><Topic dt='string'>a</Topic></psc>")
    report = convert(data, format=FORMAT_MQRFH2, coded_char_set_id=1208, encoding=546, to=Dialect.MQRFH).report
    assert [(field.name, field.value) for field in report.dropped] == [("Topic/@dt", "string")]
    assert all(field.reason and field.source for field in report.fields)


@pytest.mark.parametrize(
    ("verb", "topics"),
    [
        ("RegSub", ("a/+",)),
        ("RegSub", ("a/+", "+/b")),
        ("RegSub", ("a/#", "+", "b")),
        ("ReqUpdate", ("a/+",)),
    ],
)
def test_the_law_holds_for_patterns_that_come_back_wider(verb: str, topics: tuple[str, ...]) -> None:
    elements = "".join(f"<Topic>{topic}</Topic>" for topic in topics)
    folder = f"<psc><Command>{verb}</Command>{elements}</psc>".encode()
    folder += b" " * (-len(folder) % 4)
    fixed = struct.pack("<4siiii8sii", b"RFH ", 2, 40 + len(folder), 546, 1208, b"MQSTR   ", 0, 1208)
    data = fixed + struct.pack("<i", len(folder)) + folder
    assert assert_law_holds(data, format=FORMAT_MQRFH2, coded_char_set_id=1208, encoding=546, mode=Mode.STRICT)
