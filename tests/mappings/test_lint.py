"""The linter: where an offending field stands, whose word it is, and what is no concern of a broker."""

from functools import partial

import pytest

import tests.headers
from mappings.commands.command import FORMAT_MQRFH, FORMAT_MQRFH2
from mappings.lint import Circumstances, Finding, Speaker, lint
from tests.every_case import for_every
from tests.headers import mqrfh2
from tests.mappings.vectors import REFUSED, Vector

mqrfh = partial(tests.headers.mqrfh, padded=False)


def only(data: bytes, **arguments: object) -> Finding:
    (finding,) = lint(data, **arguments)  # type: ignore[arg-type]  # by name
    return finding


def test_the_offset_of_a_value_in_a_string_counts_bytes_and_not_characters() -> None:
    string = "MQPSCommand Publish MQPSTopic Straße/a*"
    finding = only(mqrfh("grün 1 " + string))
    assert finding.reason_code == 3072
    assert finding.offset == 32 + len("grün 1 MQPSCommand Publish MQPSTopic ".encode())


@pytest.mark.parametrize(("ccsid", "codec"), [(1208, "utf-8"), (1200, "utf-16-le")])
def test_the_offset_of_a_value_in_a_folder(ccsid: int, codec: str) -> None:
    folder = "<psc><Command>Publish</Command><Topic>a</Topic><PubOpt>Retain</PubOpt></psc>"
    data = mqrfh2("<usr></usr>", folder, name_value_ccsid=ccsid, codec=codec)
    finding = only(data)
    assert (finding.reason_code, finding.field) == (3084, "Retain")
    assert finding.offset == data.index("Retain".encode(codec))


def test_a_value_that_is_escaped_in_its_folder_is_placed_at_the_folder() -> None:
    data = mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic><PubOpt>a&amp;b</PubOpt></psc>")
    assert only(data).offset == 40


def test_a_value_that_the_page_of_its_folder_lacks_is_placed_at_the_folder() -> None:
    folder = "<psc><Command>Publish</Command><Topic>a</Topic><PubOpt>&#x1F600;</PubOpt></psc>"
    assert only(mqrfh2(folder, name_value_ccsid=13488, codec="utf-16-le")).offset == 40


def test_every_wrong_folder_and_the_command_are_found() -> None:
    data = mqrfh2("<usr><a></usr>", "<mq><g><a>1</a></g></mq>", "<psc><Command>Publish</Command></psc>")
    findings = lint(data)
    assert [(finding.reason_code, finding.field, finding.speaker) for finding in findings] == [
        (2421, "usr", Speaker.MQPUT),
        (2527, "mq", Speaker.MQPUT),
        (2339, "Topic", Speaker.BROKER),
    ]
    assert findings[0].offset == 40


@pytest.mark.parametrize(
    "data",
    [
        mqrfh("MQPSCompCode 0 MQPSReason 0 MQPSReasonText MQRC_NONE"),
        mqrfh2("<pscr><Completion>ok</Completion></pscr>"),
        mqrfh2("<pscr><Completion>error</Completion></pscr>", "<psc><Command>Nonsense</Command></psc>"),
    ],
)
def test_an_answer_of_a_broker_is_clean(data: bytes) -> None:
    assert lint(data) == ()


def test_text_behind_a_nul_is_named_where_it_is_what_is_missing() -> None:
    assert "setNameValueString" in only(mqrfh("MQPSCommand Publish\0MQPSTopic a")).problem
    assert "setNameValueString" not in only(mqrfh("MQPSCommand Publish")).problem


def test_what_is_not_known_is_not_judged() -> None:
    command = mqrfh("MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSStreamName S MQPSTopic a")
    assert lint(command, circumstances=Circumstances()) == ()
    findings = lint(
        command,
        circumstances=Circumstances(
            queue_name="S", correlation_identifier=bytes(24), reply_to_queue="", streams=frozenset({"T"})
        ),
    )
    assert [finding.reason_code for finding in findings] == [3079, 3082, 3080, 3076]


@pytest.mark.parametrize(
    ("string", "reply_to_queue"),
    [
        ("MQPSCommand DeregSub MQPSSubName n", ""),
        ("MQPSCommand ReqUpdate MQPSSubName n", ""),
        ("MQPSCommand RegSub MQPSQName Q MQPSTopic a", ""),
        ("MQPSCommand RegSub MQPSTopic a", "REPLY"),
        ("MQPSCommand Publish MQPSPubOpts NoReg MQPSTopic a", ""),
        ("MQPSCommand DeletePub MQPSTopic a", ""),
    ],
)
def test_a_command_whose_queue_is_named_or_not_needed_is_clean(string: str, reply_to_queue: str) -> None:
    assert lint(mqrfh(string), circumstances=Circumstances(reply_to_queue=reply_to_queue)) == ()


@pytest.mark.parametrize(
    "string", ["MQPSCommand Publish MQPSStreamName S MQPSTopic a", "MQPSCommand Publish MQPSTopic a"]
)
def test_a_publication_on_the_queue_of_its_stream_is_clean(string: str) -> None:
    assert lint(mqrfh(string), circumstances=Circumstances(queue_name="S", streams=frozenset({"S"}))) == ()


def test_a_folder_mq_in_its_restricted_format_is_clean() -> None:
    assert lint(mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>", "<mq> <a dt='i4'>1</a></mq>")) == ()


def test_a_publication_in_psc_needs_no_queue() -> None:
    data = mqrfh2("<psc><Command>Publish</Command><Topic>a</Topic></psc>")
    assert lint(data, circumstances=Circumstances(reply_to_queue="", correlation_identifier=bytes(24))) == ()


def test_a_message_is_read_as_its_mqmd_says() -> None:
    data = mqrfh("MQPSCommand Publish MQPSTopic a")
    assert lint(data, format=FORMAT_MQRFH, coded_char_set_id=1208, encoding=546) == ()
    assert only(data, format=FORMAT_MQRFH2).reason_code == 2334
    assert only(data, encoding=273).reason_code == 2334
    assert only(data, format=b"MQSTR   ", coded_char_set_id=1208, encoding=546).reason_code == 2334


@for_every(REFUSED)
def test_every_refusal_of_the_corpus_has_advice_of_its_own(vector: Vector) -> None:
    for finding in lint(vector.data, **vector.mqmd):  # type: ignore[arg-type]  # by name
        assert finding.advice.endswith(".")
        assert "Look the reason code up" not in finding.advice
