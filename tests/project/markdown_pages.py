"""What the tests of pages read in Markdown: blocks of code, code in sentences, links, and the anchors of headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^ *\2`* *$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_LINK = re.compile(r"(?<!\\)\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of code: its language, the line that it begins on, and its text."""

    language: str
    line: int
    text: str


def blocks(page: str) -> Iterator[Block]:
    """Every block of code."""
    for found in _FENCE.finditer(page):
        indent, _, language, text = found.groups()
        lines = [line.removeprefix(indent) for line in text.splitlines()]
        line = page.count("\n", 0, found.start()) + 1
        yield Block(language=language.strip(), line=line, text="\n".join(lines) + "\n")


def inline_code(page: str) -> list[str]:
    """The code in sentences and tables, each on one line."""
    return [" ".join(found[2].split()) for found in _INLINE.finditer(_FENCE.sub("", page))]


def links(page: str) -> list[str]:
    """What the page links to; pictures too."""
    return _LINK.findall(_INLINE.sub("", _FENCE.sub("", _COMMENT.sub("", page))))


def anchors(page: str) -> set[str]:
    """The anchors of the headings, as forges make them."""
    found: dict[str, int] = {}
    names: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if name in found else name)
        found[name] = found.get(name, 0) + 1
    return names
