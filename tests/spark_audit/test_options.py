"""The table of options: what it writes as words is what the command line reads."""

from pathlib import Path

import pytest

from spark_audit.commands.arguments import parsed
from spark_audit.options import COMMANDS, Kind, Option, repeatable, words_of
from spark_audit.remote_location import location_of

#: One value of each kind that is no default.
VALUES = {
    Kind.FOLDER: Path("folder"),
    Kind.LOCATION: location_of("s3a://bucket/folder?region=eu-west-1"),
    Kind.FILE: Path("file"),
    Kind.TEXT: "text",
    Kind.MOMENT: "2026-11-20T07:00:00Z",
    Kind.COUNT: 7,
    Kind.SIZE: "512m",
    Kind.FLAG: True,
}
#: Each excludes another option of its command.
EXCLUDED = {"parquet", "remote", "from", "until"}


def _value(option: Option) -> object:
    value = option.choices[-1] if option.choices else VALUES[option.kind]
    return [value] if option.repeats else value


@pytest.mark.parametrize("command", COMMANDS)
def test_the_words_of_some_values_are_read_as_the_same_values(command: str) -> None:
    values = {option.key: _value(option) for option in COMMANDS[command].options if option.name not in EXCLUDED}
    if "trail" in values:
        values["trail"] = []  # digests are of one trail
    read = vars(parsed([command, *words_of(command, values)], ""))
    assert {key: read[key] for key in values} == values


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_given_has_the_default_of_the_table(command: str) -> None:
    required = {option.key: _value(option) for option in COMMANDS[command].options if option.is_required}
    trails = {"data": [Path("var")]} if any(option.name == "data" for option in COMMANDS[command].options) else {}
    read = vars(parsed([command, *words_of(command, required | trails)], ""))
    for option in COMMANDS[command].options:
        if option.key not in required | trails and option.kind in (Kind.TEXT, Kind.COUNT, Kind.SIZE):
            assert read[option.key] == option.default, option.name


def test_what_is_empty_or_the_default_is_left_out() -> None:
    values = {"data": ["var"], "master": "", "memory": "2g", "policy": None, "as_json": False, "trail": []}
    assert list(words_of("run", values)) == ["--data", "var"]


def test_a_command_that_audits_the_same_again_names_what_is_judged() -> None:
    values = {"data": ["var"], "out": "report", "memory": "8g", "as_json": True, "from_time": "2026-11-20T00:00:00Z"}
    expected = ("--data", "var", "--out", "report", "--from", "2026-11-20T00:00:00Z")
    assert repeatable("run", values) == ("rfhbridge", "audit", "run", *expected)


def test_a_time_is_repeated_in_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    told = ["run", "--data", "var", "--out", "report", "--from", "2026-11-20", "--until", "2026-11-20T08:00:00+01:00"]
    read = parsed(told, "")
    assert (read.from_time, read.until_time) == ("2026-11-20T00:00:00Z", "2026-11-20T07:00:00Z")
    with pytest.raises(SystemExit) as ended:
        parsed([*told, "--from", "2026-11-20T07:00:00Z"], "")
    assert (ended.value.code, capsys.readouterr().err.count("--until must be later")) == (3, 1)


@pytest.mark.parametrize("size", ["nonsense", "2", "0g", "-1g", "2 g", "2gb", "1.5g"])
def test_a_size_that_java_would_not_take_is_wrong_use(capsys: pytest.CaptureFixture[str], size: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(["run", "--data", "var", "--out", "report", f"--memory={size}"], "")
    assert ended.value.code == 3
    assert "is not a size of memory such as 512m or 2g" in capsys.readouterr().err
