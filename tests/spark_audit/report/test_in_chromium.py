"""report.html in a browser: nothing is asked for, nothing runs, nothing is wider than a telephone, all of it prints."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_audit.report import html
from spark_audit.result import AuditResult
from tests.spark_audit.report.chromium import Page, chromium, chromium_path

#: CSS pixels: a small telephone, and the printed width of A4.
_TELEPHONE, _PAPER, _DESK = 360, 680, 1_280
#: Elements that are wider than the page, but for those that scroll within themselves.
_TOO_WIDE = """[...document.querySelectorAll("body *")]
    .filter(element => !element.closest(".chart, pre, details .table"))
    .filter(element => element.getBoundingClientRect().right > innerWidth + 1)
    .map(element => element.outerHTML)"""


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A browser; skipped where there is none."""
    path = chromium_path()
    if path is None:
        pytest.skip("Chromium is not installed: the report is not looked at in a browser")
    with chromium(path, tmp_path / "profile") as opened:
        yield opened


@pytest.fixture
def file(result: AuditResult, tmp_path: Path) -> Path:
    """The hostile report."""
    written = tmp_path / "report.html"
    written.write_text(html(result), encoding="utf-8")
    return written


def test_the_page_asks_for_nothing_but_itself_and_the_browser_has_no_complaint(page: Page, file: Path) -> None:
    page.open(file, width=_DESK)
    assert page.requests == [file.as_uri()]
    assert page.complaints == []
    assert page.value("document.scripts.length + document.images.length") == 0


@pytest.mark.parametrize(
    ("width", "media", "scheme"),
    [(_TELEPHONE, "screen", "light"), (_PAPER, "print", "light"), (_DESK, "screen", "dark")],
    ids=["narrow", "printed", "wide and dark"],
)
def test_nothing_is_wider_than_the_page(page: Page, file: Path, width: int, media: str, scheme: str) -> None:
    page.open(file, width=width, media=media, scheme=scheme)
    assert page.value("[innerWidth, document.documentElement.scrollWidth]") == [width, width]
    assert page.value(_TOO_WIDE) == []


def test_what_strangers_wrote_stays_text_in_the_tree(page: Page, file: Path) -> None:
    page.open(file, width=_DESK)
    assert page.value("document.querySelectorAll('script, [onclick], [onerror]').length") == 0
    subjects = page.value("[...document.querySelectorAll('.findings tbody td:nth-child(2)')].map(e => e.innerText)")
    assert subjects[0].startswith("</td><script>alert('x')</script>\\u001b[31m{{ 7 * 7 }}")
    assert len(subjects) == 6


def test_letters_are_seen_on_their_ground_in_light_and_in_dark(page: Page, file: Path) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        page.open(file, width=_DESK, scheme=scheme)
        colours = page.value("['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])")
        ground, letters = (sum(map(int, re.findall(r"[0-9]+", colour)[:3])) for colour in colours)
        assert abs(ground - letters) > 500
        grounds.add(ground)
    assert len(grounds) == 2


def test_the_page_prints_with_the_bytes_of_every_finding(page: Page, file: Path) -> None:
    page.open(file, width=_PAPER, media="print")
    hidden = "[...document.querySelectorAll('details.bytes mark')].filter(e => !e.checkVisibility()).length"
    assert page.value("document.querySelectorAll('details.bytes mark').length") >= 6
    assert page.value(hidden) == 0
    assert page.pdf().startswith(b"%PDF-")
