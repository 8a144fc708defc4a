"""The whole audit: from the gateway's notes over the exporter's lines to verdict, files and exit code."""

import base64
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from gateway.audit_trail.exporter import export_pending
from gateway.audit_trail.notes.notes import Arrival, NoteKind, Translation, pack_batch
from mq_adapters.delivery_listener import Delivery
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.rights import EXPORTER
from mq_adapters.kernel_clock import ClockReading
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from spark_audit.__main__ import main
from spark_audit.audit_input import input_of_trails
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.policy import Policy
from spark_audit.read import trail_files
from spark_audit.report import html, print_summary
from spark_audit.result import AuditResult, Verdict
from tests.conftest import PROOF_VARIABLE
from tests.spark_audit.conftest import audited, policy_of, policy_text_of

AT = 1_795_158_000_000_000
PUBLISH = bytes.fromhex("32 09 0003 612f62 000a")
DIGEST = hashlib.sha256(b"21").digest()
#: A Publish of topic a/b in both formats, by their byte layouts: little-endian, UTF-8, Format of the body blank.
MQRFH2 = bytes.fromhex(
    "52464820 02000000 60000000 22020000 b8040000 2020202020202020 00000000 b8040000 38000000"
) + b"<psc><Command>Publish</Command><Topic>a/b</Topic></psc>".ljust(0x38)
MQRFH = bytes.fromhex("52464820 01000000 44000000 22020000 b8040000 2020202020202020 00000000") + (
    b"MQPSCommand Publish MQPSTopic a/b".ljust(0x24)
)
SUBSCRIBER = b"RFHB" + bytes(19) + b"\x01"
SEGMENT = "000000000001-20261120T07.jsonl"
IS_FULL = os.environ.get(PROOF_VARIABLE) == "full"


def _notes() -> list[tuple[object, ...]]:
    """A sensor's PUBLISH, put, copied for two subscribers, delivered to one and acknowledged at both ends."""
    translation = Translation(
        command="Publish",
        topic="a/b",
        queue="SYSTEM.BROKER.DEFAULT.STREAM",
        correl_id=bytes(24),
        persistent=True,
        format=b"MQHRF2  ",
        coded_char_set_id=1208,
        encoding=546,
        header=MQRFH2,
    )
    arrival = Arrival(
        queue="RFHBRIDGE.SUBSCRIBER",
        correl_id=SUBSCRIBER,
        topic="a/b",
        is_retained=False,
        format=b"MQHRF2  ",
        coded_char_set_id=1208,
        encoding=546,
        header=MQRFH2,
    )
    return [
        (NoteKind.STARTED, AT, "0.1.0", "1", bytes(32)),
        (NoteKind.SESSION, AT, "boiler", 1, "opened", 4, True),
        (NoteKind.PUBLISHED, AT, "boiler", 1, 1, PUBLISH, 2, DIGEST, 100, translation),
        (NoteKind.COPIED, AT, 100, 101, _copy("RFHBRIDGE.SUBSCRIBER", b"MQHRF2  ", MQRFH2)),
        (NoteKind.COPIED, AT, 100, 102, _copy("BOILER.ALARMS", b"MQHRF   ", MQRFH)),
        (NoteKind.DELIVERED, AT, "screen", 2, 1, 101, PUBLISH, 2, DIGEST, 1, 1, arrival),
        (NoteKind.ACKNOWLEDGED, AT, "screen", 2, 1, 4, 10, 101),
        (NoteKind.CONFIRMED, AT, "boiler", 1, 4, [[1, 1]]),
    ]


def _copy(queue: str, format: bytes, header: bytes) -> Delivery:
    return Delivery(
        queue_name=queue,
        correl_id=SUBSCRIBER,
        topics=("a/b",),
        input_format=b"MQHRF2  ",
        input_coded_char_set_id=1208,
        input_encoding=546,
        input_header=MQRFH2,
        output_format=format,
        output_coded_char_set_id=1208,
        output_encoding=546,
        output_header=header,
        is_retained=False,
        dropped=(),
    )


def _put_batch(queue_manager: Direct, batch: bytes) -> None:
    """What the engine does at a group commit; applications may not put there."""
    engine = queue_manager._engine
    assert engine is not None
    unit = engine.begin()
    descriptor = MessageDescriptor(persistence=MQPER_PERSISTENT)
    engine.put(unit, engine.queue("SYSTEM.RFHBRIDGE.AUDIT"), Message(descriptor, batch))
    engine.submit(unit)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder whose trail the exporter wrote from hand-made notes, by a clock that NTP steers."""
    steered = ClockReading(state="ok", maximum_error_us=21_000, estimated_error_us=340)
    monkeypatch.setattr("gateway.audit_trail.digests.read_clock", lambda: steered)
    folder = tmp_path / "data"
    with Direct(folder, rights=EXPORTER) as queue_manager:
        _put_batch(queue_manager, pack_batch(1, _notes()))
        export_pending(queue_manager, folder / "trail", close_segment=True)
    return folder


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A working folder that has modules under the names of those which Python, Spark and the audit import."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in ("json", "socket", "pyspark", "pyarrow", "orjson", "gateway", "spark_audit", "sitecustomize"):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'imported')!r}, 'w').write({name!r})\n")
    return folder


@pytest.mark.usefixtures("spark")
def test_a_clean_trail_ends_with_0_and_leaves_result_and_report(data: Path, hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    program = Path(sys.executable).with_name("rfhbridge")
    command = [str(program), "audit", "run", "--data", str(data), "--out", str(out)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=hostile)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("clean: 9 records, 4 conversions performed again, no violation\n")
    assert "\x1b" not in run.stdout
    assert "audit: starting Spark" in run.stderr
    result = json.loads((out / "result.json").read_text())
    schema = json.loads((files("spark_audit.report") / "result.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(result)
    assert (result["result_version"], result["verdict"]) == (3, "clean")
    assert {(row["conversion"], row["status"], row["same_bytes"]) for row in result["conversions"]} == {
        ("packet_to_header", "match", True),
        ("header_to_header", "match", True),
        ("header_to_packet", "match", True),
    }
    tested = {control["identifier"]: control["tested"] for control in result["controls"]}
    assert [control["status"] for control in result["controls"]] == [
        "held" if tested[control.identifier] else "nothing to test" for control in CONTROLS
    ]
    assert {name for name, count in tested.items() if not count} == {
        *("qos.2", "qos.identifiers", "delivery.qos2", "operators.destroyed", "retained.deleted"),
        *("passages", "passages.order", "conversion.table"),
        *("custody.retained", "custody.commands", "custody.passages", "custody.stock", "custody.queues"),
        *("custody.inventory", "custody.codes", "custody.programs"),
    }
    assert result["balances"]["exchanges"] == [{"group": "1", "what": "put", "count": 1}]
    assert result["command"] == ["rfhbridge", "audit", "run", "--data", str(data), "--out", str(out)]
    assert [(row["qos"], row["put"], row["delivered"], row["completed"]) for row in result["qos_proofs"]] == [
        (0, 0, 0, 0),
        (1, 1, 1, 1),
        (2, 0, 0, 0),
    ]
    assert {row["step"]: row["max_us"] for row in result["latencies"]} == {
        "acknowledged after accepted": 0,
        "delivered after put": 0,
    }
    assert "no violation" in (out / "report.html").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "hostile", "report"]
    assert {path.suffix for path in hostile.iterdir()} == {".py"}, "nothing was imported from there or written"


def _audited(trail, tmp_path: Path, *controls: str) -> AuditResult:
    """The result of some controls, or of all."""
    audit_input = input_of_trails([trail_files(trail.write(), tmp_path)])
    return audited(audit_input, tmp_path, policy=policy_of(*controls) if controls else Policy())


def _put(trail, **changes: object) -> int:
    fields = {
        "direction": "in",
        "client": "boiler",
        "session_epoch": 1,
        "exchange": 1,
        "packet_type": 3,
        "qos": 1,
        "topic": "a/b",
        "command": "Publish",
        "queue": "SYSTEM.BROKER.DEFAULT.STREAM",
        "message_id": "01" * 24,
        "conversion": "packet_to_header",
        "input_format": "MQTT",
        "input": base64.b64encode(PUBLISH).decode(),
        "output_format": "MQHRF2",
        "output_ccsid": 1208,
        "output_encoding": 546,
        "output": base64.b64encode(MQRFH2).decode(),
        "payload_bytes": 2,
        "packet_identifier": 10,
        "persistent": True,
    }
    trail.add("accepted", **{name: fields[name] for name in list(fields)[:7]})
    return trail.add("put", **fields | changes)


def test_a_wrong_conversion_is_shown_with_its_bytes_and_a_hostile_one_without_markup(trail, tmp_path) -> None:
    wrong = MQRFH2.replace(b"a/b", b"a/c")
    sequence = _put(trail, output=base64.b64encode(wrong).decode())
    _put(
        trail,
        client="<script>alert(1)</script>",
        exchange=2,
        message_id="02" * 24,
        output="not base64",
        dropped_fields=[["<b>", ""]],
    )
    result = _audited(trail, tmp_path)
    assert (result.verdict, result.verdict.exit_code) == (Verdict.VIOLATIONS, 1)
    (control,) = (control for control in result.controls if control.identifier == "conversion.reperformance")
    (found,) = control.sample
    assert (found.sequence, found.segment, found.line) == (sequence, SEGMENT, sequence)
    evidence = found.evidence
    assert evidence is not None
    assert (evidence.byte_offset, evidence.written_byte, evidence.expected_byte) == (
        MQRFH2.index(b"a/b") + 2,
        "63",
        "62",
    )
    assert [base64.b64decode(side) for side in (evidence.input, evidence.output, evidence.expected)] == [
        PUBLISH,
        wrong,
        MQRFH2,
    ]
    counts = {control.identifier: control.violations for control in result.controls if control.violations}
    assert counts == {
        "conversion.reperformance": 1,
        "conversion.reperformable": 1,
        "conservation": 2,
        "reasons": 1,
        "stages": 1,
    }
    page = html(result)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<script") == 1  # that of the search, which holds nothing from a trail
    assert "alert" not in page.partition("<script")[2]
    assert "<b>" not in page


def test_conversions_of_which_none_can_be_judged_are_not_evaluable(trail, tmp_path: Path) -> None:
    _put(trail, input=base64.b64encode(b"\x36").decode())
    result = _audited(trail, tmp_path, "conversion.reperformance")
    assert (result.verdict, result.verdict.exit_code) == (Verdict.NOT_EVALUABLE, 2)


def test_records_of_another_version_are_not_evaluable(trail, tmp_path: Path) -> None:
    trail.add("started", version=3)
    result = _audited(trail, tmp_path)
    assert result.verdict is Verdict.NOT_EVALUABLE
    assert "another version" in result.reason


@pytest.mark.parametrize("content", [b"text\n", b"\xff\n", b'{"temperature":21}\n'], ids=["text", "binary", "foreign"])
def test_a_trail_without_a_record_is_not_evaluable(trail, tmp_path: Path, content: bytes) -> None:
    trail.lines.append(content)
    assert _audited(trail, tmp_path).verdict is Verdict.NOT_EVALUABLE


@pytest.mark.parametrize("content", [None, b"", b'{"version":1'], ids=["no trail", "empty", "half a line"])
def test_nothing_to_read_is_not_evaluable_before_spark_starts(tmp_path: Path, content: bytes | None, capsys) -> None:
    trail = tmp_path / "data" / "trail"
    trail.parent.mkdir()
    if content is not None:
        trail.mkdir()
        (trail / "000000000001-20261120T07.open").write_bytes(content)
    assert main(["run", "--data", str(trail.parent), "--out", str(tmp_path / "report"), "--json"]) == 2
    told = capsys.readouterr()
    assert json.loads(told.out)["verdict"] == "not evaluable"
    assert "Spark" not in told.err
    assert json.loads((tmp_path / "report" / "result.json").read_text())["verdict"] == "not evaluable"


def test_a_report_that_cannot_be_written_is_told_before_spark_starts(data: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert main(["run", "--data", str(data), "--out", str(tmp_path / "file" / "report")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"rfhbridge audit run: {tmp_path / 'file'}")
    assert "cannot be written" in told.err
    assert told.err.count("\n") == 1


def test_lines_on_stderr_are_json_where_that_is_asked_for(tmp_path: Path, capsys) -> None:
    (tmp_path / "data").mkdir()
    command = ["run", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "out"), "--log-format", "json"]
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["level"], told["module"]) == ("info", "spark_audit")
    assert told["event"].startswith("wrote ")


@pytest.mark.proof
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("until", ["starting Spark", "reading 1 segment", *(["conversion.reperformance: "] * IS_FULL)])
def test_an_interrupted_audit_ends_with_130_and_without_a_traceback(data: Path, tmp_path: Path, until: str) -> None:
    (tmp_path / "policy.toml").write_text(policy_text_of("conversion.reperformance"))
    command = [sys.executable, "-m", "spark_audit", "run", "--data", str(data), "--out", str(tmp_path / "report")]
    command += ["--policy", str(tmp_path / "policy.toml")]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as run:
        seen = iter(run.stderr.readline, "")
        assert any(until in line for line in seen)
        os.killpg(run.pid, signal.SIGINT)
        rest = "".join(seen)
        assert run.stdout.read() == ""
    assert run.returncode == 130
    assert "Traceback" not in rest
    assert "Exception" not in rest
    assert not list(tmp_path.glob("rfhbridge-audit-*"))


def test_an_interruption_while_the_audit_is_loaded_ends_it_without_a_word(data: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spark_audit", "run", "--data", str(data), "--out", str(tmp_path / "report")]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as the command line does
    try:
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with run:
        run.send_signal(signal.SIGINT)
        assert run.communicate(timeout=60) == (b"", b"")
    assert run.returncode == 130


def test_a_bad_line_is_named_by_its_file_and_number(trail, tmp_path: Path) -> None:
    trail.add("started")
    trail.lines.append(b"nonsense\n")
    trail.add("started")
    result = _audited(trail, tmp_path, "integrity.lines")
    (control,) = (control for control in result.controls if control.identifier == "integrity.lines")
    assert [violation.subject for violation in control.sample] == ["000000000001-20261120T07.jsonl, line 2"]
    assert [(violation.segment, violation.line) for violation in control.sample] == [(SEGMENT, 2)]
    pipe = io.StringIO()
    print_summary(result, Console(file=pipe, width=200))
    assert "integrity.lines 000000000001-20261120T07.jsonl, line 2: no audit record: nonsense" in pipe.getvalue()
    assert "record 0" not in pipe.getvalue()


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["run"], ["run", "--data", "x"], ["walk"], ["run", "--data", "x", "--out", "y", "--from", "yesterday"]),
        ["run", "--data", "x", "--out", "y", "--from", "2026-12-01", "--until", "2026-11-01"],
    ],
    ids=str,
)
def test_wrong_usage_ends_with_3_and_one_line(arguments: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rfhbridge audit run: " if "run" in arguments else "rfhbridge audit: ")
    assert "--help`)" in line


def test_a_data_folder_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    assert main(["run", "--data", str(tmp_path / "nowhere"), "--out", str(tmp_path)]) == 3
