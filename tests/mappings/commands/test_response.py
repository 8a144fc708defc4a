"""Answers of a broker in both dialects, against the examples of IBM's documentation and samples."""

import pytest

from mappings.commands.command import (
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    Completion,
    Dialect,
    Response,
    ResponseReason,
    read_response,
    write_response,
)
from mappings.errors import MappingError, NameValueError
from mappings.headers.chain import HeaderChain, read_header_chain

OK = Response(completion=Completion.OK)
TOPIC_ERROR = Response(
    completion=Completion.FAILED, reasons=(ResponseReason(reason_code=3072, fields=(("Topic", "ABC%x"),)),)
)
TWO_WARNINGS = Response(
    completion=Completion.WARNING,
    reasons=(
        ResponseReason(reason_code=3081, fields=(("Topic", "topic1"),)),
        ResponseReason(reason_code=3081, fields=(("Topic", "topic2"),)),
    ),
)
FULL = Response(
    completion=Completion.OK,
    verb="RegSub",
    fields=(("Topic", "a/b"), ("QMgrName", "QM1"), ("QName", "GW.SUB"), ("UserId", "gw"), ("RegOpt", "CorrelAsId")),
)
PSC = b"<psc><Command>RegSub</Command><Topic>topic1</Topic><Topic>topic2</Topic></psc>"

STRINGS = [
    (OK, "MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE"),
    (TOPIC_ERROR, "MQPSCompCode 2 MQPSReason 3072 MQPSReasonText MQRCCF_TOPIC_ERROR MQPSTopic ABC%x"),
    (
        TWO_WARNINGS,
        "MQPSCompCode 1 MQPSReason 3081 MQPSReasonText MQRCCF_NOT_AUTHORIZED MQPSTopic topic1 "
        "MQPSCompCode 1 MQPSReason 3081 MQPSReasonText MQRCCF_NOT_AUTHORIZED MQPSTopic topic2",
    ),
    (
        FULL,
        "MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE MQPSCommand RegSub "
        "MQPSTopic a/b MQPSQMgrName QM1 MQPSQName GW.SUB MQPSUserId gw MQPSRegOpts CorrelAsId",
    ),
    (
        Response(
            completion=Completion.FAILED,
            verb="Publish",
            reasons=(ResponseReason(reason_code=2335, fields=(("ErrorPos", "29"), ("ParmId", "MQPSTopic"))),),
        ),
        "MQPSCompCode 2 MQPSReason 2335 MQPSReasonText MQRC_RFH_STRING_ERROR MQPSCommand Publish "
        "MQPSErrorPos 29 MQPSParmId MQPSTopic",
    ),
]
FOLDERS = [
    (OK, "<pscr><Completion>ok</Completion></pscr>"),
    (
        TOPIC_ERROR,
        "<pscr><Completion>error</Completion><Response><Reason>3072</Reason><Topic>ABC%x</Topic></Response></pscr>",
    ),
    (
        TWO_WARNINGS,
        "<pscr><Completion>warning</Completion><Response><Reason>3081</Reason><Topic>topic1</Topic></Response>"
        "<Response><Reason>3081</Reason><Topic>topic2</Topic></Response></pscr>",
    ),
    (
        FULL,
        "<pscr><Completion>ok</Completion><Command>RegSub</Command><Topic>a/b</Topic><QMgrName>QM1</QMgrName>"
        "<QName>GW.SUB</QName><UserId>gw</UserId><RegOpt>CorrelAsId</RegOpt></pscr>",
    ),
]


def written(response: Response, dialect: Dialect, failing_command: bytes = b"") -> bytes:
    return write_response(response, dialect, coded_char_set_id=1208, encoding=546, failing_command=failing_command)


def chain_of(data: bytes, dialect: Dialect) -> HeaderChain:
    format = FORMAT_MQRFH if dialect is Dialect.MQRFH else FORMAT_MQRFH2
    return read_header_chain(data, format=format, coded_char_set_id=1208, encoding=546)


@pytest.mark.parametrize(("response", "string"), STRINGS)
def test_an_mqrfh_answer_begins_at_once_and_is_ended_by_nul(response: Response, string: str) -> None:
    data = written(response, Dialect.MQRFH)
    assert data[32:].startswith(string.encode() + b"\0")
    assert data[32:].rstrip(b"\0") == string.encode()
    assert len(data) % 4 == 0
    assert read_response(chain_of(data, Dialect.MQRFH)) == response


@pytest.mark.parametrize(("response", "folder"), FOLDERS)
def test_an_mqrfh2_answer_is_a_pscr_folder(response: Response, folder: str) -> None:
    data = written(response, Dialect.MQRFH2)
    assert data[40:].rstrip(b" ") == folder.encode()
    assert read_response(chain_of(data, Dialect.MQRFH2)) == response


def test_a_command_that_failed_comes_back_behind_an_mqrfh_answer() -> None:
    command = b"MQPSCommand RegSub MQPSTopic ABC%x"
    data = written(TOPIC_ERROR, Dialect.MQRFH, command)
    chain = chain_of(data, Dialect.MQRFH)
    assert data[chain.body_offset :] == command
    assert chain.body_format == b"MQSTR   "


def test_a_command_that_failed_comes_back_as_a_folder_of_an_mqrfh2_answer() -> None:
    data = written(TWO_WARNINGS, Dialect.MQRFH2, PSC)
    response = read_response(chain_of(data, Dialect.MQRFH2))
    assert response.command_folder == PSC
    assert written(response, Dialect.MQRFH2) == data


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("reason_code", [2334, 3016])
def test_a_command_that_could_not_be_read_does_not_come_back(dialect: Dialect, reason_code: int) -> None:
    response = Response(completion=Completion.FAILED, reasons=(ResponseReason(reason_code=reason_code),))
    assert b"FAILING" not in written(response, dialect, b"<psc>FAILING</psc>")
    assert b"FAILING" not in written(OK, dialect, b"<psc>FAILING</psc>")


def test_details_that_mqrfh2_has_no_elements_for_are_left_out() -> None:
    response = Response(
        completion=Completion.FAILED,
        reasons=(ResponseReason(reason_code=3076, fields=(("QName", "X"), ("ErrorId", "2085"), ("ErrorPos", "1"))),),
    )
    assert written(response, Dialect.MQRFH2)[40:].rstrip() == (
        b"<pscr><Completion>error</Completion><Response><Reason>3076</Reason><QName>X</QName></Response></pscr>"
    )


def test_blank_padded_values_of_an_mqrfh_answer_are_trimmed() -> None:
    data = written(Response(completion=Completion.OK, fields=(("QName", "GW.SUB    "),)), Dialect.MQRFH)
    assert read_response(chain_of(data, Dialect.MQRFH)).fields == (("QName", "GW.SUB"),)


def with_string(string: str) -> bytes:
    data = string.encode().ljust(200)
    return b"RFH \x01\0\0\0\xe8\0\0\0\x22\x02\0\0\xb8\x04\0\0        \0\0\0\0" + data


def with_folder(folder: str) -> bytes:
    data = folder.encode().ljust(200)
    return b"RFH \x02\0\0\0\xf0\0\0\0\x22\x02\0\0\xb8\x04\0\0        \0\0\0\0\xb8\x04\0\0\xc8\0\0\0" + data


@pytest.mark.parametrize(
    "string",
    [
        "", "a b", "MQPSReason 0 MQPSCompCode 0", "MQPSCompCode 3", "MQPSCompCode x", "MQPSCompCode -1",
        "MQPSCompCode 2 MQPSReason 0x1", "MQPSCompCode 2 MQPSReason 99999999999", 'MQPSCompCode "',
    ],
)  # fmt: skip
def test_a_string_that_is_no_answer_is_refused(string: str) -> None:
    with pytest.raises(NameValueError) as caught:
        read_response(chain_of(with_string(string), Dialect.MQRFH))
    assert caught.value.reason_code == 2335


@pytest.mark.parametrize(
    "folder",
    [
        "<pscr></pscr>",
        "<pscr><Completion>OK</Completion></pscr>",
        "<pscr><Completion>error</Completion><Response></Response></pscr>",
        "<pscr><Completion>error</Completion><Response><Reason>x</Reason></Response></pscr>",
        "<pscr><Completion>error</Completion><Response><Reason>3150</Reason></Reponse></pscr>",
        "<usr></usr>",
    ],
)
def test_a_folder_that_is_no_answer_is_refused(folder: str) -> None:
    with pytest.raises(MappingError):
        read_response(chain_of(with_folder(folder), Dialect.MQRFH2))
