"""Every command and every group has help, with an example that starts with the program's name."""

from collections.abc import Iterator

import pytest

from gateway.cli.commands import application


def commands() -> Iterator[tuple[str, ...]]:
    def walk(command, path):
        yield path
        for name, child in getattr(command, "commands", {}).items():
            yield from walk(child, (*path, name))

    yield from walk(application, ())


TREE = list(commands())


QUEUE_COMMANDS = (
    "list",
    "define",
    "depth",
    "browse",
    "get",
    "put",
    "clear",
    "verify",
    "backup",
    "redrive",
    "compact",
    "accept-rollback",
)


def test_tree_has_the_commands_of_the_contract():
    expected = {"run", "check", "queue", "convert", "inspect", "lint", "mqsc", "simulate", "audit"}
    expected |= {f"queue {name}" for name in QUEUE_COMMANDS}
    expected |= {"channel", *(f"channel {name}" for name in ("list", "show", "start", "stop", "resolve"))}
    expected |= {"sessions", *(f"sessions {name}" for name in ("list", "show", "disconnect", "expire", "sweep"))}
    expected |= {"audit explain", "audit fetch", "audit show", "audit ingest", "audit stream", "audit bulk"}
    expected |= {f"audit {name}" for name in ("run", "verify", "prove", "pack", "key", "key show", "key rotate")}
    expected |= {"balance", "explain", "user", "user add", "user remove", "user list"}
    expected |= {"user token", "user token add", "user token remove", "user token list"}
    assert {" ".join(path) for path in TREE} - {""} == expected


@pytest.mark.parametrize("path", TREE, ids=lambda path: " ".join(path) or "rfhbridge")
def test_command_has_help_with_an_example(rfhbridge, path):
    ended = rfhbridge(*path, "--help")
    assert ended.exit_code == 0
    assert ended.stderr == ""
    lines = ended.text.splitlines()
    example = lines[lines.index("  Example:") + 1].strip()
    assert " ".join(("rfhbridge", *path)) in example
    assert "--log-level" in ended.text
    assert "--log-format" in ended.text
    assert "--version" in ended.text


@pytest.mark.parametrize("path", TREE, ids=lambda path: " ".join(path) or "rfhbridge")
def test_summary_of_a_command_is_not_cut(rfhbridge, path):
    assert "..." not in rfhbridge(*path, "--help").text.replace("...]", "").replace("ARGS]...", "").replace("]...", "")


@pytest.mark.parametrize("path", TREE, ids=lambda path: " ".join(path) or "rfhbridge")
def test_unknown_option_is_a_usage_error_in_one_line(rfhbridge, path):
    ended = rfhbridge(*path, "--no-such-option")
    assert ended.exit_code == (3 if path[:1] == ("audit",) else 2)
    assert ended.stdout == b""
    assert ended.stderr.count("\n") == 1
    assert "--no-such-option" in ended.stderr
    assert f"{' '.join(('rfhbridge', *path))} --help" in ended.stderr


@pytest.mark.parametrize("path", [path for path in TREE if path in ((), ("queue",), ("audit",), ("user",))])
def test_group_without_a_command_is_a_usage_error(rfhbridge, path):
    ended = rfhbridge(*path)
    assert ended.exit_code == (3 if path == ("audit",) else 2)
    assert ended.stderr.count("\n") == 1
