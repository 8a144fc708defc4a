"""Option tokens and numbers, typed from cmqpsc.h and cmqcfc.h; and the tables themselves."""

import pytest

from mappings.commands.options import (
    DeleteOption,
    Option,
    OptionClass,
    PublicationOption,
    RegistrationOption,
    check_option,
    option_number,
    rows_of,
    tokens_of,
)
from mappings.errors import CommandError
from mappings.table import (
    FIELD_ROWS,
    OPTION_ROWS,
    TABLE_VERSION,
    VERBS,
    Dialect,
    FieldRow,
    Standing,
    TableError,
    read_field_rows,
    read_option_rows,
)

# Token, name of the constant, number, and whether psc has it.
REGISTRATION = [
    ("CorrelAsId", "MQREGO_CORREL_ID_AS_IDENTITY", 0x1, True),
    ("Anon", "MQREGO_ANONYMOUS", 0x2, False),
    ("Local", "MQREGO_LOCAL", 0x4, True),
    ("DirectReq", "MQREGO_DIRECT_REQUESTS", 0x8, False),
    ("NewPubsOnly", "MQREGO_NEW_PUBLICATIONS_ONLY", 0x10, True),
    ("PubOnReqOnly", "MQREGO_PUBLISH_ON_REQUEST_ONLY", 0x20, True),
    ("DeregAll", "MQREGO_DEREGISTER_ALL", 0x40, True),
    ("InclStreamName", "MQREGO_INCLUDE_STREAM_NAME", 0x80, False),
    ("InformIfRet", "MQREGO_INFORM_IF_RETAINED", 0x100, True),
    ("DupsOK", "MQREGO_DUPLICATES_OK", 0x200, True),
    ("NonPers", "MQREGO_NON_PERSISTENT", 0x400, True),
    ("Pers", "MQREGO_PERSISTENT", 0x800, True),
    ("PersAsPub", "MQREGO_PERSISTENT_AS_PUBLISH", 0x1000, True),
    ("PersAsQueue", "MQREGO_PERSISTENT_AS_Q", 0x2000, True),
    ("AddName", "MQREGO_ADD_NAME", 0x4000, True),
    ("NoAlter", "MQREGO_NO_ALTERATION", 0x8000, True),
    ("FullResp", "MQREGO_FULL_RESPONSE", 0x10000, True),
    ("JoinShared", "MQREGO_JOIN_SHARED", 0x20000, True),
    ("JoinExcl", "MQREGO_JOIN_EXCLUSIVE", 0x40000, True),
    ("LeaveOnly", "MQREGO_LEAVE_ONLY", 0x80000, True),
    ("VariableUserId", "MQREGO_VARIABLE_USER_ID", 0x100000, True),
    ("Locked", "MQREGO_LOCKED", 0x200000, True),
]
PUBLICATION = [
    ("CorrelAsId", "MQPUBO_CORREL_ID_AS_IDENTITY", 0x1, True),
    ("RetainPub", "MQPUBO_RETAIN_PUBLICATION", 0x2, True),
    ("OtherSubsOnly", "MQPUBO_OTHER_SUBSCRIBERS_ONLY", 0x4, True),
    ("NoReg", "MQPUBO_NO_REGISTRATION", 0x8, False),
    ("IsRetainedPub", "MQPUBO_IS_RETAINED_PUBLICATION", 0x10, True),
]
DELETE = [("Local", "MQDELO_LOCAL", 0x4, True)]

KINDS: list[tuple[OptionClass, str, list[tuple[str, str, int, bool]]]] = [
    (RegistrationOption, "registration", REGISTRATION),
    (PublicationOption, "publication", PUBLICATION),
    (DeleteOption, "delete", DELETE),
]


@pytest.mark.parametrize(("option_class", "kind", "expected"), KINDS)
def test_the_table_of_options_is_complete(
    option_class: OptionClass, kind: str, expected: list[tuple[str, str, int, bool]]
) -> None:
    rows = [row for row in OPTION_ROWS if row.kind == kind]
    assert [(row.token, row.constant, row.number, Dialect.MQRFH2 in row.formats) for row in rows] == expected
    assert all(Dialect.MQRFH in row.formats for row in rows)
    assert tokens_of(option_class(sum(number for _, _, number, _ in expected))) == tuple(row[0] for row in expected)


@pytest.mark.parametrize(("option_class", "kind", "expected"), KINDS)
def test_each_option_is_read_as_token_and_as_number(
    option_class: OptionClass, kind: str, expected: list[tuple[str, str, int, bool]]
) -> None:
    for token, _, number, _ in expected:
        assert option_number(option_class, token) == option_number(option_class, str(number)) == number
        assert tokens_of(option_class(number)) == (token,)


def test_no_options_are_none_or_zero() -> None:
    assert option_number(RegistrationOption, "None") == option_number(RegistrationOption, "0") == 0
    assert tokens_of(RegistrationOption(0)) == ()


def test_a_decimal_sum_is_read() -> None:
    assert tokens_of(RegistrationOption(option_number(RegistrationOption, "257"))) == ("CorrelAsId", "InformIfRet")


def test_bit_4_means_local_or_other_subscribers_only() -> None:
    assert tokens_of(RegistrationOption(4)) == tokens_of(DeleteOption(4)) == ("Local",)
    assert tokens_of(PublicationOption(4)) == ("OtherSubsOnly",)


@pytest.mark.parametrize(
    ("option_class", "reason"), [(RegistrationOption, 3083), (PublicationOption, 3084), (DeleteOption, 3087)]
)
@pytest.mark.parametrize(
    "value", ["0x1", "correlasid", "PersAsQ", "RetPub", "-1", "1.0", "", " 1", "4194304", "9" * 11, "²"]
)
def test_an_unknown_option_is_named(option_class: OptionClass, reason: int, value: str) -> None:
    with pytest.raises(CommandError) as caught:
        option_number(option_class, value)
    assert (caught.value.reason_code, caught.value.parameter) == (reason, value)


@pytest.mark.parametrize(
    ("option", "verb", "dialect", "parameter"),
    [
        (PublicationOption.NO_REGISTRATION, "Publish", Dialect.MQRFH2, "NoReg"),
        (RegistrationOption.ANONYMOUS, "RegSub", Dialect.MQRFH2, "Anon"),
        (RegistrationOption.INFORM_IF_RETAINED, "ReqUpdate", Dialect.MQRFH, "InformIfRet"),
        (RegistrationOption.LEAVE_ONLY, "RegSub", Dialect.MQRFH2, "LeaveOnly"),
        (RegistrationOption(1 << 30), "RegSub", Dialect.MQRFH2, str(1 << 30)),
        (PublicationOption.RETAIN_PUBLICATION, "RegSub", Dialect.MQRFH2, "RetainPub"),
    ],
)
def test_an_option_of_another_format_or_command_is_refused(
    option: Option, verb: str, dialect: Dialect, parameter: str
) -> None:
    with pytest.raises(CommandError) as caught:
        check_option(option, verb=verb, dialect=dialect)
    assert caught.value.parameter == parameter


NINE_NAMES = [
    ("MQPSCommand", "Command"),
    ("MQPSDelOpts", "DelOpt"),
    ("MQPSPubOpts", "PubOpt"),
    ("MQPSPubTime", "PubTime"),
    ("MQPSQMgrName", "QMgrName"),
    ("MQPSQName", "QName"),
    ("MQPSRegOpts", "RegOpt"),
    ("MQPSSeqNum", "SeqNum"),
    ("MQPSTopic", "Topic"),
]


def test_the_nine_mapped_names_are_those_of_the_message_format_page() -> None:
    mapped = [(row.mqrfh, row.mqrfh2) for row in FIELD_ROWS if row.standing is Standing.MAPPED]
    assert mapped == NINE_NAMES


def test_every_field_has_a_reason_and_a_source() -> None:
    assert all(row.reason and row.source for row in FIELD_ROWS)
    assert TABLE_VERSION == "1"


def fields_of(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "mqrfh": "MQPSX",
        "standing": "mapped",
        "commands": [],
        "repeats": False,
        "reason": "r",
        "source": "s",
    }
    return {"field": [row | {"mqrfh": f"MQPS{number}"} for number in range(8)] + [row | changes]}


def test_a_table_of_nine_names_is_read() -> None:
    rows = read_field_rows(fields_of(mqrfh2="X"))
    assert len(rows) == 9
    assert [rows[0].key, rows[8].key] == ["0", "X"]
    assert isinstance(rows[0], FieldRow)


def test_a_parameter_may_repeat_in_all_of_its_commands_in_some_or_in_none() -> None:
    taking = ["Publish", "ReqUpdate"]
    for repeats, expected in ((True, set(VERBS)), (False, set()), (["Publish"], {"Publish"})):
        assert read_field_rows(fields_of(commands=taking, repeats=repeats))[8].repeats == expected


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"field": []},
        fields_of(mqrfh="MQPS1"),
        fields_of(standing="dropped"),
        fields_of(commands=["Subscribe"]),
        fields_of(commands="Publish"),
        fields_of(repeats="Publish"),
        fields_of(repeats=["Publish"]),
        fields_of(reason=""),
        fields_of(source=1),
    ],
)
def test_a_table_of_fields_that_contradicts_itself_stops_the_import(document: dict[str, object]) -> None:
    with pytest.raises(TableError):
        read_field_rows(document)


def options_of(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "kind": "delete", "token": "Local", "member": "LOCAL", "constant": "MQDELO_LOCAL", "number": 4,
        "formats": ["mqrfh"], "commands": ["DeletePub"], "support": "yes", "notes": [5],
    }  # fmt: skip
    return {"option": [row, row | {"token": "Other", "number": 8} | changes]}


def test_a_table_of_two_options_is_read() -> None:
    assert [row.token for row in read_option_rows(options_of())] == ["Local", "Other"]


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 4},
        {"number": 3},
        {"number": "8"},
        {"kind": "other"},
        {"token": "Local"},
        {"notes": 5},
        {"formats": 1},
    ],
)
def test_a_table_of_options_that_contradicts_itself_stops_the_import(changes: dict[str, object]) -> None:
    with pytest.raises(TableError):
        read_option_rows(options_of(**changes))


def test_a_table_that_lacks_an_option_of_the_flag_class_stops_the_import() -> None:
    assert rows_of(DeleteOption, OPTION_ROWS)
    with pytest.raises(TableError, match="do not agree"):
        rows_of(DeleteOption, OPTION_ROWS[:-1])
