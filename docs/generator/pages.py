"""The generated pages by the names of their files, each with its title and the code that it comes from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from docs.generator import commands, configuration, http_api, metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A generated page."""

    title: str
    source: str
    lines: Callable[[], list[str]]


PAGES: Final = {
    "configuration.md": Page(title="Configuration", source="gateway/config", lines=configuration.lines),
    "commands.md": Page(title="Commands", source="gateway/cli", lines=commands.lines),
    "metrics.md": Page(title="Metrics", source="gateway/metrics.py", lines=metrics.lines),
    "http-api.md": Page(title="HTTP API", source="gateway/operations/openapi.json", lines=http_api.lines),
}


def page_text(name: str) -> str:
    """The text of a page as it must stand in its file."""
    page = PAGES[name]
    note = f"<!-- Written by `make docs` from {page.source}: change it there. -->"
    return "\n".join([f"# {page.title}", "", note, "", *page.lines()]) + "\n"
