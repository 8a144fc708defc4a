"""What holds for every command: options that may stand anywhere, exit codes, and one line for an error."""

import json
import logging
import os
import shlex
import signal
import subprocess
import sys

import pytest

from gateway.cli import application as application_module
from gateway.cli.invocation import Invocation, invocation_of
from mappings.errors import HeaderError
from mq_adapters.reasons import QueueManagerError, StoreError


def test_options_for_every_command_may_stand_before_and_after_it():
    expected = Invocation(arguments=("queue", "list"), log_level="debug", log_format="json")
    assert invocation_of(["--log-level", "debug", "queue", "--log-format=json", "list"]) == expected
    assert invocation_of(["queue", "list", "--log-level=debug", "--log-format", "json"]) == expected


def test_what_stands_behind_two_hyphens_is_not_an_option():
    assert invocation_of(["inspect", "--", "--version"]) == Invocation(arguments=("inspect", "--", "--version"))


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("queue", "--version"), ("queue", "list", "--version"), ("--log-format", "json", "--version")],
)
def test_version_is_printed_wherever_it_is_asked_for(rfhbridge, arguments):
    ended = rfhbridge(*arguments)
    assert ended.exit_code == 0
    assert ended.text == f"rfhbridge {application_module.version()}\n"


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("option", ["--log-level", "--log-format"])
def test_wrong_value_of_an_option_for_every_command_is_a_usage_error(rfhbridge, option, place):
    arguments = [option, "loud", "queue", "list"] if place == "before" else ["queue", "list", option]
    ended = rfhbridge(*arguments)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert option in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_wrong_value_for_an_audit_command_is_exit_code_3(rfhbridge):
    assert rfhbridge("audit", "verify", "--log-level", "loud").exit_code == 3
    assert rfhbridge("--log-level", "loud", "audit", "verify").exit_code == 3


@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "a folder"])
@pytest.mark.parametrize("command", ["run", "check", "queue list", "mqsc", "audit run", "audit verify"])
def test_configuration_that_cannot_be_read_is_exit_code_2_in_every_command(rfhbridge, tmp_path, command, is_there):
    file = tmp_path / "rfhbridge.toml"
    if is_there:
        file.mkdir()
    ended = rfhbridge(*command.split(), "--config", file)
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert f"'{file}' cannot be read: " in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_unknown_command_names_the_nearest(rfhbridge):
    ended = rfhbridge("quue")
    assert ended.exit_code == 2
    assert "'queue'" in ended.stderr


def test_errors_are_json_where_the_log_is_json(rfhbridge):
    ended = rfhbridge("--log-format", "json", "convert", "--to", "mqrfh", stdin=b"")
    assert ended.exit_code == 1
    line = json.loads(ended.stderr)
    assert (line["level"], line["event"]) == ("error", "command failed")
    assert "2334" in line["error"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (QueueManagerError(2085, "open queue 'A'"), "2085 MQRC_UNKNOWN_OBJECT_NAME (define the queue first"),
        (StoreError("write", "No space left on device", "make room"), "write: No space left on device (make room)"),
        (HeaderError(2334, "wrong", offset=8), "MQRC_RFH_ERROR (2334) at byte 8: wrong"),
        (PermissionError(13, "Permission denied", "file"), "rfhbridge: file: Permission denied"),
        (ZeroDivisionError("a fault of ours"), "fault of this program: ZeroDivisionError('a fault of ours')"),
    ],
)
def test_any_error_is_one_line_and_exit_code_1(rfhbridge, monkeypatch, error, text):
    def fail(_name):
        raise error

    monkeypatch.setattr("gateway.cli.message.inspect.read_input", fail)
    ended = rfhbridge("inspect")
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert text in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_traceback_of_our_own_fault_is_shown_at_debug_level_only(rfhbridge, monkeypatch):
    monkeypatch.setattr("gateway.cli.message.inspect.read_input", lambda _name: 1 / 0)
    assert "Traceback" not in rfhbridge("inspect").stderr
    assert "Traceback" in rfhbridge("inspect", "--log-level", "debug").stderr


def test_interruption_is_exit_code_130_without_a_word(rfhbridge, monkeypatch):
    def interrupt(_name):
        raise KeyboardInterrupt

    monkeypatch.setattr("gateway.cli.message.inspect.read_input", interrupt)
    ended = rfhbridge("inspect")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (130, b"", "")


@pytest.mark.parametrize("arguments", [["inspect"], ["lint"], ["convert", "--to", "mqrfh"]], ids=" ".join)
def test_endless_input_is_one_line(rfhbridge, arguments):
    ended = rfhbridge(*arguments, "/dev/zero")
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert ended.stderr == "rfhbridge: /dev/zero: larger than the largest message, 257 MiB\n"


@pytest.mark.parametrize(("command", "exit_code"), [(["inspect"], 1), (["audit", "--help"], 2)])
def test_reader_that_has_gone_is_no_noise(vectors, command, exit_code):
    """Of an audit command, exit code 1 would mean violations."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "gateway.cli", *command],
            input=vectors.mqrfh,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (exit_code, b"")


def test_closed_output_is_one_line_and_takes_nothing(rfhbridge, data_folder):
    folder = ("--data", str(data_folder))
    assert rfhbridge("queue", "define", "A", *folder).exit_code == 0
    assert rfhbridge("queue", "put", "A", "-", *folder, stdin=b"precious").exit_code == 0
    ended = _run_with(">&-", "queue", "get", "A", *folder)
    expected = "rfhbridge: standard output: it is closed, so nothing can be written\n"
    assert (ended.returncode, ended.stderr) == (1, expected)
    assert _run_with(">&-", "--help").stderr == expected
    assert rfhbridge("queue", "get", "A", "--raw", *folder).stdout == b"precious"


def test_full_output_is_not_taken_for_a_full_store():
    ended = _run_with(">/dev/full", "check")
    expected = "standard output: No space left on device (make room on that disk, or name another one)"
    assert (ended.returncode, ended.stderr) == (1, f"rfhbridge: {expected}\n")


def test_data_folder_of_another_user_is_one_line_that_says_what_to_do(rfhbridge, tmp_path, monkeypatch):
    def deny(_path):
        raise PermissionError(13, "Permission denied", "queue_manager.sqlite")

    monkeypatch.setattr("pathlib.Path.is_file", deny)
    ended = rfhbridge("queue", "list", "--data", tmp_path)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert ended.stderr == f"rfhbridge: {tmp_path}: Permission denied (run this as the gateway's user)\n"


def test_closed_input_is_an_empty_one():
    ended = _run_with("<&-", "convert", "--to", "mqrfh")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "MQRC_RFH_ERROR (2334)" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_closed_standard_error_changes_nothing():
    assert _run_with("2>&-", "check").returncode == 0
    assert _run_with("2>&- >&- <&-", "inspect").returncode == 1


def _run_with(redirection, *arguments):
    command = shlex.join([sys.executable, "-m", "gateway.cli", *arguments])
    return subprocess.run(
        ["/bin/sh", "-c", f"{command} {redirection}"], capture_output=True, text=True, timeout=60, check=False
    )


def test_interruption_while_the_program_loads_is_silent():
    program = (
        "import sys\nclass Interrupting:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gateway.cli.commands': raise KeyboardInterrupt\n"
        "from gateway.cli import main\nsys.meta_path.insert(0, Interrupting())\nmain()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_while_python_ends_changes_nothing_of_what_came_of_the_command(number):
    program = (
        "import atexit, signal\nfrom gateway.cli import main\n"
        f"atexit.register(signal.raise_signal, {int(number)})\nmain()"
    )
    command = [sys.executable, "-c", program, "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_installation_that_cannot_start_is_one_line(tmp_path):
    program = "import sys; sys.modules['mappings.table'] = None; from gateway.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("rfhbridge: cannot start: ")
    assert ended.stderr.count("\n") == 1


def test_help_does_not_load_spark_nor_the_store_nor_paho():
    program = (
        "import sys\nfrom gateway.cli.commands import application\n"
        "print([name for name in ('pyspark', 'apsw', 'paho', 'uvloop', 'rich.console') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "[]\n"


@pytest.fixture(autouse=True)
def quiet_logs():
    """Commands configure the log of this process; the other tests get it back as it was."""
    yield
    for room in ("gateway", "mq_adapters", "mappings", "spark_audit", "asyncio"):
        logging.getLogger(room).handlers.clear()
        logging.getLogger(room).setLevel(logging.NOTSET)
