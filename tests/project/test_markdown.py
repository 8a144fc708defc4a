"""The pages hold: links lead somewhere, commands exist, configuration is read by its reader, programs compile."""

import ast
import importlib
import itertools
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gateway.access.access_list import AccessList
from gateway.cli.commands import application
from gateway.cli.invocation import invocation_of
from gateway.config import Settings
from spark_audit.policy import Policy
from tests.every_case import Test, for_every
from tests.project.markdown_pages import Block, anchors, blocks, inline_code, links

ROOT = Path(__file__).resolve().parents[2]
#: Of another grammar than forges', or a template.
NO_PAGES = ("spark_audit/pack_readme.md",)


def _pages() -> list[str]:
    """Every page, by its path from the root."""
    folders = ["*.md", "docs/**/*.md", "*/README.md", "*/*/README.md"]
    found = {path.relative_to(ROOT).as_posix() for pattern in folders for path in ROOT.glob(pattern)}
    return sorted(name for name in found if not name.startswith((".", "build/")) and name not in NO_PAGES)


def _text(page: str) -> str:
    return (ROOT / page).read_text()


def _for_every_block(*languages: str) -> Callable[[Test], Test]:
    """Try each code block of all pages in these languages, by its place."""
    return for_every(
        lambda: {
            f"{page}:{block.line}": block
            for page in _pages()
            for block in blocks(_text(page))
            if block.language in languages
        }
    )


# -- links -------------------------------------------------------------------------------------------------------------


def _broken(page: Path, link: str) -> str:
    """Why a link of a page leads nowhere; nothing where it leads somewhere, or to another host."""
    target, _, anchor = link.partition("#")
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return ""
    file = (page.parent / target).resolve() if target else page
    if not file.exists():
        return f"{link}: there is no such file"
    if anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
        return f"{link}: no heading has this anchor"
    return ""


@for_every(_pages)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    assert [broken for link in links(_text(page)) if (broken := _broken(ROOT / page, link))] == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# The one\n\n[a](#the-one) [b](#the-other) [c](gone.md) [d](page.md#two) `[e](no-link)`\n\n"
        "```\n[f](no-link-either)\n# no-heading\n```\n"
    )
    found = [broken.split(":")[0] for link in links(page.read_text()) if (broken := _broken(page, link))]
    assert found == ["#the-other", "gone.md", "page.md#two"]


# -- commands ----------------------------------------------------------------------------------------------------------

PROGRAM = re.compile(r"(?:^|/)rfhbridge$")
ENDS = {"|", "||", "&&", ";", "&", "(", ")", ">", ">>", "<", "2>", "2>&1"}


@cache
def _tree() -> Any:
    return application


def _statements(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell's text, each as its words; a line that ends with a backslash goes on."""
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in ENDS or set(word) <= set("|&;()<>"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _typed(block: Block) -> str:
    """What is typed in a console block, line by line: what stands behind the prompt, with what goes on from it."""
    lines: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            lines.append(line[2:])
        elif lines and lines[-1].endswith("\\"):
            lines.append(line)
    return "\n".join(lines)


def _unknown(arguments: list[str]) -> str:
    """What of the arguments of `rfhbridge` it does not know; nothing where it knows all."""
    command, waiting = _tree(), list(invocation_of(arguments).arguments)
    while waiting and getattr(command, "commands", None) and not waiting[0].startswith("-"):
        name = waiting.pop(0)
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    context = command.context_class(command, info_name="rfhbridge")
    options = {option: each for each in command.get_params(context) for option in (*each.opts, *each.secondary_opts)}
    room = sum(each.nargs if each.nargs > 0 else 1_000 for each in command.params if each.param_type_name == "argument")
    while waiting:
        word = waiting.pop(0)
        name, equals, _ = word.partition("=")
        if not word.startswith("-") or word == "-":
            room -= 1
        elif name not in options:
            return f"there is no option {name}"
        elif not equals and not getattr(options[name], "is_flag", False) and not getattr(options[name], "count", False):
            if not waiting:
                return f"{name} needs a value"
            waiting.pop(0)
    return "there are too many arguments" if room < 0 else ""


def _wrong_commands(text: str) -> list[str]:
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        for words in _statements(line):
            for index, word in enumerate(words):
                if PROGRAM.search(word) and (wrong := _unknown(words[index + 1 :])):
                    found.append(f"{line}: {wrong}")
                    break
    return found


def _alternatives(code: str) -> Iterator[str]:
    """The commands that `rfhbridge user add|remove` stands for; none where `...` or `[--json]` leaves out or adds."""
    if "..." not in code and "[" not in code:
        choices = [word.split("|") if word.strip("|") else [word] for word in code.replace("\\|", "|").split(" ")]
        yield from map(" ".join, itertools.product(*choices))


def _make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _made(text: str) -> set[str]:
    return {target for line in text.splitlines() for target in re.findall(r"(?:^|[;&|(]\s*|\$ )make ([a-z-]+)", line)}


@_for_every_block("console")
def test_every_command_of_a_console_block_exists(block: Block) -> None:
    typed = _typed(block)
    assert typed, "a console block has prompts: $ "
    assert _wrong_commands(typed) == []
    assert _made(typed) <= _make_targets()


@for_every(_pages)
def test_every_command_in_a_sentence_exists(page: str) -> None:
    said = [code for code in inline_code(_text(page)) if re.match(r"(\.venv/bin/)?rfhbridge( |$)", code)]
    assert [wrong for code in said for each in _alternatives(code) for wrong in _wrong_commands(each)] == []
    made = {match[1] for code in inline_code(_text(page)) if (match := re.match(r"make ([a-z-]+)", code))}
    assert made <= _make_targets()


@pytest.mark.parametrize(
    "line",
    [
        "rfhbridge quue list",
        "rfhbridge queue lst",
        "rfhbridge queue list --jsn",
        "rfhbridge check --config",
        "echo x | rfhbridge queue put A B C",
        "timeout 5 .venv/bin/rfhbridge run --prot 5 &",
    ],
)
def test_a_wrong_command_is_found(line: str) -> None:
    assert len(_wrong_commands(line)) == 1


@pytest.mark.parametrize(
    "line",
    ["rfhbridge --version", "rfhbridge run --listen=127.0.0.1:0 --log-level debug &", "cd rfhbridge && make run"],
)
def test_a_right_command_is_let_through(line: str) -> None:
    assert _wrong_commands(line) == []


# -- files and programs ------------------------------------------------------------------------------------------------


@_for_every_block("toml")
def test_every_toml_block_is_read_by_the_reader_of_its_file(block: Block, tmp_path: Path) -> None:
    (tmp_path / "file.toml").write_text(block.text)
    tables = set(re.findall(r"^\[\[?([a-z_]+)", block.text, re.MULTILINE))
    if "rule" in tables:
        AccessList.read(tmp_path / "file.toml")
    elif tables and tables <= {"scope", "control", "restore", "renewal", "trail"}:
        Policy.load(tmp_path / "file.toml")
    else:
        Settings.load(tmp_path / "file.toml")


@_for_every_block("python")
def test_every_python_block_is_python_and_imports_what_is_there(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.Import):
            for name in node.names:
                importlib.import_module(name.name)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


@_for_every_block("", "text", "sh", "bash")
def test_what_is_typed_stands_in_a_console_block(block: Block) -> None:
    assert not [line for line in block.text.splitlines() if line.startswith("$ ")]
    assert block.language not in {"sh", "bash"}
