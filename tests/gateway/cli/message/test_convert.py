"""`rfhbridge convert` on messages of the specification, and on what is none."""

import json
import os
import stat
from pathlib import Path

import pytest

BODY = b"\x00\xff 21.5 \xe9"
# Section "Message formats" (aq19780_), the example of a publication with a stream name.
STREAM_STRING = (
    "MQPSCommand Publish MQPSPubOpts RetainPub MQPSStreamName SAMPLE.BROKER.RESULTS.STREAM "
    'MQPSTopic "Sport/Soccer/State/LatestScore/Team1 Team2"'
)
STREAM_FOLDER = (
    "<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt>"
    "<Topic>Sport/Soccer/State/LatestScore/Team1 Team2</Topic></psc>"
)


def stream_publication() -> bytes:
    string = STREAM_STRING.encode()
    string += b" " * (-len(string) % 4)
    fixed = bytes.fromhex("52464820 01000000") + (32 + len(string)).to_bytes(4, "little")
    return fixed + bytes.fromhex("22020000 b8040000 4d51535452202020 00000000") + string


def test_little_endian_mqrfh_becomes_the_mqrfh2_of_the_specification(rfhbridge, vectors):
    ended = rfhbridge("convert", "--to", "mqrfh2", stdin=vectors.mqrfh + BODY)
    assert ended.exit_code == 0
    assert ended.stdout == vectors.mqrfh2 + BODY
    assert ended.stderr == ""


def test_little_endian_mqrfh2_becomes_the_mqrfh_of_the_specification(rfhbridge, vectors):
    ended = rfhbridge("convert", "--to", "mqrfh", stdin=vectors.mqrfh2 + BODY)
    assert (ended.exit_code, ended.stdout) == (0, vectors.mqrfh + BODY)


def test_big_endian_header_stays_big_endian_in_both_directions(rfhbridge, vectors):
    forth = rfhbridge("convert", "--to", "mqrfh2", stdin=vectors.mqrfh_big_endian + BODY)
    assert (forth.exit_code, forth.stdout) == (0, vectors.mqrfh2_of_big_endian + BODY)
    back = rfhbridge("convert", "--to", "mqrfh", stdin=forth.stdout)
    assert (back.exit_code, back.stdout) == (0, vectors.mqrfh_big_endian + BODY)


def test_ebcdic_header_is_found_and_its_new_header_is_ebcdic(rfhbridge, vectors):
    ended = rfhbridge("convert", "--to", "mqrfh2", stdin=vectors.mqrfh_ebcdic + BODY)
    assert ended.exit_code == 0
    folder = b"<psc><Command>Publish</Command><Topic>a/b</Topic></psc>"
    assert ended.stdout.startswith(bytes.fromhex("d9c6c840 00000002"))
    assert ended.stdout[20:28] == bytes.fromhex("d4d8e2e3d9404040")
    assert folder in ended.stdout
    assert ended.stdout.endswith(BODY)


def test_stream_name_is_dropped_reported_and_no_error(rfhbridge, tmp_path):
    report = tmp_path / "report.json"
    ended = rfhbridge("convert", "--to", "mqrfh2", "--report", report, stdin=stream_publication())
    assert ended.exit_code == 0
    assert STREAM_FOLDER.encode() in ended.stdout
    assert b"SAMPLE.BROKER" not in ended.stdout
    assert "field dropped" in ended.stderr
    assert "name=MQPSStreamName" in ended.stderr
    told = json.loads(report.read_text())
    assert told["format"] == "MQHRF2"
    dropped = [field["name"] for field in told["fields"] if field["outcome"] == "dropped"]
    assert dropped == ["MQPSStreamName"]


@pytest.mark.parametrize("target", ["mqrfh", "mqrfh2"])
def test_message_in_the_target_format_passes_unchanged(rfhbridge, vectors, target):
    message = getattr(vectors, target) + BODY
    ended = rfhbridge("convert", "--to", target, stdin=message)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, message, "")


def test_mqrfh2_without_psc_is_mqrfh2_already(rfhbridge, vectors):
    folder = b"<usr><a>1</a></usr>\x20"
    message = vectors.mqrfh2[:8] + (60).to_bytes(4, "little") + vectors.mqrfh2[12:36]
    message += len(folder).to_bytes(4, "little") + folder + BODY
    ended = rfhbridge("convert", "--to", "mqrfh2", stdin=message)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, message, "")
    assert rfhbridge("convert", "--to", "mqrfh", stdin=message).exit_code == 1


def test_dead_letter_without_a_message_with_a_header_is_an_error(rfhbridge):
    header = b"DLH \x01\x00\x00\x00" + bytes(4) + b" " * 96 + bytes.fromhex("22020000b8040000") + b"MQSTR   "
    ended = rfhbridge("convert", "--to", "mqrfh2", stdin=header + bytes(4) + b" " * 44 + BODY)
    assert (ended.exit_code, ended.stdout) == (1, b"")


@pytest.mark.parametrize("stdin", [b"", b"hello", b"RFH ", b"RFH \x07\x00\x00\x00" + bytes(60)])
@pytest.mark.parametrize("target", ["mqrfh", "mqrfh2"])
def test_input_without_a_header_is_an_error_in_one_line_and_no_output(rfhbridge, stdin, target):
    ended = rfhbridge("convert", "--to", target, stdin=stdin)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert ended.stderr.count("\n") == 1
    assert "MQRC_RFH_ERROR (2334)" in ended.stderr


@pytest.mark.parametrize("target", ["mqrfh", "mqrfh2"])
def test_header_cut_at_any_length_is_an_error_and_no_output(rfhbridge, vectors, target):
    message = vectors.mqrfh if target == "mqrfh2" else vectors.mqrfh2
    for length in range(0, len(message), 7):
        ended = rfhbridge("convert", "--to", target, stdin=message[:length])
        assert (ended.exit_code, ended.stdout) == (1, b""), length
        assert "Traceback" not in ended.stderr


def test_folders_are_dropped_or_by_choice_kept_behind_an_mqrfh(rfhbridge, vectors, tmp_path):
    report = tmp_path / "report.json"
    message = vectors.mqrfh2_two_folders + BODY
    dropped = rfhbridge("convert", "--to", "mqrfh", "--report", report, stdin=message)
    assert dropped.exit_code == 0
    assert b"<mcd>" not in dropped.stdout
    assert "name=mcd" in dropped.stderr
    kept = rfhbridge("convert", "--to", "mqrfh", "--folders", "kept", "--report", report, stdin=message)
    assert (kept.exit_code, kept.stderr) == (0, "")
    assert kept.stdout.index(b"MQPSCommand") < kept.stdout.index(b"<mcd>")
    assert kept.stdout.endswith(BODY)
    outcomes = {field["name"]: field["outcome"] for field in json.loads(report.read_text())["fields"]}
    assert outcomes["mcd"] == "copied"
    back = rfhbridge("convert", "--to", "mqrfh2", stdin=kept.stdout)
    assert back.stdout.index(b"<psc>") < back.stdout.index(b"<mcd>")


def test_output_file_appears_whole_and_keeps_the_mode_of_the_one_it_replaces(rfhbridge, vectors, tmp_path):
    source, target = tmp_path / "in.bin", tmp_path / "out.bin"
    source.write_bytes(vectors.mqrfh)
    target.write_bytes(b"old")
    target.chmod(0o640)
    ended = rfhbridge("convert", "--to", "mqrfh2", source, "-o", target)
    assert (ended.exit_code, ended.stdout) == (0, b"")
    assert target.read_bytes() == vectors.mqrfh2
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.bin", "out.bin"]


def test_failed_conversion_leaves_the_old_output_file_alone(rfhbridge, tmp_path):
    target = tmp_path / "out.bin"
    target.write_bytes(b"old")
    assert rfhbridge("convert", "--to", "mqrfh2", "-o", target, stdin=b"x").exit_code == 1
    assert target.read_bytes() == b"old"


def test_output_may_be_a_pipe(rfhbridge, vectors, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert rfhbridge("convert", "--to", "mqrfh2", "-o", pipe, stdin=vectors.mqrfh).exit_code == 0
        assert os.read(reader, 4096) == vectors.mqrfh2
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_unwritable_output_or_report_is_one_line_and_no_output(rfhbridge, vectors, tmp_path):
    nowhere = tmp_path / "nowhere" / "file"
    for arguments in (["-o", nowhere], ["--report", nowhere]):
        ended = rfhbridge("convert", "--to", "mqrfh2", *arguments, stdin=vectors.mqrfh)
        assert (ended.exit_code, ended.stdout) == (1, b"")
        assert ended.stderr == f"rfhbridge: {nowhere}: No such file or directory (see that the path is right)\n"


def test_missing_input_file_is_one_line(rfhbridge, tmp_path):
    ended = rfhbridge("convert", "--to", "mqrfh", tmp_path / "none")
    assert (ended.exit_code, ended.stderr) == (
        1,
        f"rfhbridge: {tmp_path / 'none'}: No such file or directory (see that the path is right)\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--to", "mqrfh3"],
        ["--to", "mqrfh", "--mode", "loose"],
        ["--to", "mqrfh", "--format", "TOOLONGNAME"],
        ["--to", "mqrfh", "--ccsid", "x"],
        ["--to", "mqrfh", "--report", "-"],
        ["--to", "mqrfh", "-o", "same", "--report", "same"],
        ["--to", "mqrfh", "a", "b"],
    ],
)
def test_wrong_use_is_exit_code_2_and_no_output(rfhbridge, arguments):
    ended = rfhbridge("convert", *arguments)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert ended.stderr.count("\n") == 1


def test_what_the_caller_says_of_the_first_header_goes_before_what_is_found(rfhbridge, vectors):
    ended = rfhbridge("convert", "--to", "mqrfh2", "--ccsid", "500", stdin=vectors.mqrfh)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "500" in ended.stderr
    ended = rfhbridge("convert", "--to", "mqrfh2", "--encoding", "273", stdin=vectors.mqrfh)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    ended = rfhbridge(
        "convert", "--to", "mqrfh2", "--format", "MQHRF", "--ccsid", "1208", "--encoding", "546", stdin=vectors.mqrfh
    )
    assert (ended.exit_code, ended.stdout) == (0, vectors.mqrfh2)


def test_extended_mode_copies_the_subscription_name(rfhbridge):
    string = b"MQPSCommand RegSub MQPSTopic a MQPSSubName night "
    string += b" " * (-len(string) % 4)
    message = bytes.fromhex("52464820 01000000") + (32 + len(string)).to_bytes(4, "little")
    message += bytes.fromhex("22020000 b8040000 2020202020202020 00000000") + string
    strict = rfhbridge("convert", "--to", "mqrfh2", stdin=message)
    assert b"night" not in strict.stdout
    extended = rfhbridge("convert", "--to", "mqrfh2", "--mode", "extended", stdin=message)
    assert b"<SubName>night</SubName>" in extended.stdout


def test_process_writes_the_message_alone_to_standard_output(rfhbridge_process, vectors, tmp_path: Path):
    source = tmp_path / "message.bin"
    source.write_bytes(vectors.mqrfh + BODY)
    ended = rfhbridge_process("convert", "--to", "mqrfh2", source)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, vectors.mqrfh2 + BODY, "")
