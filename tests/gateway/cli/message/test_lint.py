"""`rfhbridge lint`: findings in words and as JSON, exit codes, and what the caller knows beside the bytes."""

import json
from functools import partial

import pytest

import tests.headers

mqrfh = partial(tests.headers.mqrfh, padded=False)


WRONG_TOPIC = mqrfh("MQPSCommand Publish MQPSTopic a*")


def test_a_message_that_a_broker_would_take_is_clean(rfhbridge, vectors):
    for message in (vectors.mqrfh, vectors.mqrfh_big_endian, vectors.mqrfh_ebcdic, vectors.mqrfh2):
        ended = rfhbridge("lint", stdin=message + b"body")
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert ended.text == "clean: a broker would take this message\n"


def test_a_finding_has_reason_speaker_place_and_advice(rfhbridge, tmp_path):
    file = tmp_path / "message.bin"
    file.write_bytes(WRONG_TOPIC)
    ended = rfhbridge("lint", file)
    assert (ended.exit_code, ended.stderr) == (1, "")
    said, where, what, do = ended.text.splitlines()
    assert said == "MQRCCF_TOPIC_ERROR (3072), said by: broker"
    assert where == f"  where: byte {32 + len('MQPSCommand Publish MQPSTopic ')}, field 'a*'"
    assert what.startswith("  what:  topic 'a*'")
    assert do.startswith("  do:    ")


def test_findings_as_json(rfhbridge):
    (finding,) = json.loads(rfhbridge("lint", "--json", stdin=mqrfh("MQPSTopic a MQPSCommand Publish")).stdout)
    assert (finding["reason_code"], finding["reason_name"]) == (2336, "MQRC_RFH_COMMAND_ERROR")
    assert (finding["error_position"], finding["offset"], finding["field"]) == (0, 32, "MQPSTopic")
    assert json.loads(rfhbridge("lint", "--json", stdin=mqrfh("MQPSCommand Publish MQPSTopic a")).stdout) == []


@pytest.mark.parametrize("stdin", [b"", b"hello", b"RFH ", b"RFH \x07\x00\x00\x00" + bytes(60)])
def test_input_without_a_header_is_a_finding(rfhbridge, stdin):
    ended = rfhbridge("lint", stdin=stdin)
    assert ended.exit_code == 1
    assert ended.text.startswith("MQRC_RFH_ERROR (2334)")


@pytest.mark.parametrize(
    ("arguments", "string", "reason"),
    [
        (["--queue", "SYSTEM.BROKER.CONTROL.QUEUE"], "MQPSCommand Publish MQPSTopic a", "(3079)"),
        (["--queue", "S2"], "MQPSCommand Publish MQPSStreamName S1 MQPSTopic a", "(3075)"),
        (["--correl-id", "00"], "MQPSCommand RegSub MQPSRegOpts CorrelAsId MQPSTopic a", "(3080)"),
        (["--reply-to", ""], "MQPSCommand RegSub MQPSTopic a", "(3076)"),
    ],
)
def test_what_the_caller_knows_is_held_against_the_command(rfhbridge, arguments, string, reason):
    assert rfhbridge("lint", stdin=mqrfh(string)).exit_code == 0
    ended = rfhbridge("lint", *arguments, stdin=mqrfh(string))
    assert ended.exit_code == 1
    assert reason in ended.text


@pytest.mark.parametrize("arguments", [["--format", "TOOLONGNAME"], ["--ccsid", "x"], ["--correl-id", "x"], ["a", "b"]])
def test_wrong_use_is_exit_code_2(rfhbridge, arguments):
    ended = rfhbridge("lint", *arguments)
    assert (ended.exit_code, ended.stdout) == (2, b"")


def test_the_page_of_the_caller_goes_before_what_is_found(rfhbridge, vectors):
    assert rfhbridge("lint", "--ccsid", "500", stdin=vectors.mqrfh).exit_code == 1
