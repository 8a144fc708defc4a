"""report.html in a browser: it asks for nothing, runs its search alone, fits a telephone, can be read, and prints."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from spark_audit.report import html
from spark_audit.result import AuditResult, Volume, Volumes
from tests.spark_audit.report.chromium import Page, chromium, chromium_path
from tests.spark_audit.report.conftest import AT

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
    assert page.value("[document.scripts.length, document.images.length]") == [1, 0]


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
    assert page.value("document.querySelectorAll('td script, [onclick], [onerror]').length") == 0
    subjects = page.value("[...document.querySelectorAll('.findings tbody td:nth-child(3)')].map(e => e.innerText)")
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


def test_a_script_of_somebody_else_does_not_run(page: Page, file: Path) -> None:
    planted = "<script>document.title = 'ran'</script><b id='planted' onclick=\"document.title = 'ran'\">x</b>"
    file.write_text(file.read_text(encoding="utf-8").replace("<main>", f"<main>{planted}"), encoding="utf-8")
    page.open(file, width=_DESK)
    page.value("document.getElementById('planted').click()")
    assert page.value("document.title") == "rfhbridge audit: violations"
    assert len(page.complaints) >= 2
    assert all("Content Security Policy" in complaint for complaint in page.complaints)


#: Types into the search box, and tells which findings are shown and what the box says.
_SEARCH = """(text => {
    const field = document.getElementById("find");
    field.value = text;
    field.dispatchEvent(new Event("input"));
    const shown = [...document.querySelectorAll("tr[data-found]")].filter(row => row.checkVisibility());
    return [shown.map(row => row.cells[0].innerText), document.getElementById("fits").innerText];
})"""
_SEARCHES = {
    "": (["7", "7", "7", "8", "9", "9"], ""),
    "שלום": (["7"], "1 of 6 shown"),
    "SCRIPT>alert(": (["7", "7", "7", "8", "9", "9"], "6 of 6 shown"),
    "07:09": (["9", "9"], "2 of 6 shown"),
    "07:09 took": (["9"], "1 of 6 shown"),
    "<b>nobody</b>": ([], "0 of 6 shown"),
}


def test_the_search_leaves_the_findings_with_all_words(page: Page, file: Path) -> None:
    page.open(file, width=_DESK)
    for text, expected in _SEARCHES.items():
        assert page.value(f"{_SEARCH}({json.dumps(text)})") == list(expected), text
    assert page.complaints == []


def test_a_search_hides_nothing_on_paper(page: Page, file: Path) -> None:
    page.open(file, width=_PAPER, media="print")
    page.value(f"{_SEARCH}('nobody')")
    shown = "[...document.querySelectorAll('[data-found]')].map(row => row.checkVisibility())"
    assert set(page.value(shown)) == {True}
    assert page.value("document.getElementById('search').checkVisibility()") is False


#: Text whose contrast with its ground is below what WCAG 2.2 asks for (1.4.3): 4.5, of large letters 3.
_FAINT = """(() => {
    const numbers = colour => colour.match(/[0-9.]+/g).map(Number);
    const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const ground = element => {
        for (let at = element; at; at = at.parentElement) {
            const colour = numbers(getComputedStyle(at).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const faint = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        const text = walker.currentNode.data.trim();
        if (!text || element.closest("script, title, desc") || !element.checkVisibility()) continue;
        const style = getComputedStyle(element);
        const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
        const colour = element.closest("svg") ? style.fill : style.color;
        const [low, high] = [light(numbers(colour)), light(ground(element))].sort((a, b) => a - b);
        const contrast = (high + 0.05) / (low + 0.05);
        if (contrast < (isLarge ? 3 : 4.5)) faint.push([contrast, colour, text.slice(0, 60)]);
    }
    return faint;
})()"""


@pytest.mark.parametrize(("media", "scheme"), [("screen", "light"), ("screen", "dark"), ("print", "light")])
def test_every_text_has_enough_contrast(page: Page, file: Path, media: str, scheme: str) -> None:
    page.open(file, width=_PAPER, media=media, scheme=scheme)
    assert page.value(_FAINT) == []


def test_a_screen_reader_finds_landmarks_headings_in_order_and_names(page: Page, file: Path) -> None:
    page.open(file, width=_DESK)
    marks = "['header', 'nav', 'main', 'h1'].map(name => document.querySelectorAll(`body ${name}`).length)"
    assert page.value(marks) == [1, 1, 1, 1]
    assert page.value("document.documentElement.lang") == "en"
    levels = page.value("[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(e => Number(e.tagName[1]))")
    assert [level for before, level in pairwise(levels) if level > before + 1] == []
    assert page.value("[...document.querySelectorAll('input')].map(e => e.labels.length)") == [1]
    assert page.value("[...document.querySelectorAll('th')].filter(e => !e.scope).length") == 0
    assert page.value("[...document.querySelectorAll('svg')].filter(e => !e.querySelector('title')).length") == 0
    lost = "[...document.querySelectorAll('a')].filter(e => !document.getElementById(e.hash.slice(1))).length"
    assert page.value(lost) == 0
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    unnamed = [
        node["role"]["value"]
        for node in tree
        if not node["ignored"]
        and node["role"]["value"] in ("link", "searchbox", "image", "heading", "search")
        and not node.get("name", {}).get("value")
    ]
    assert unnamed in ([], ["search"])


#: Rows and drawings that are higher than the printed page: a page break would cut them.
_PAGE_HEIGHT = 1_009  # 267 mm, A4 without its margins
_CUT = f"""[...document.querySelectorAll("tr, svg, header")].filter(element =>
    getComputedStyle(element).breakInside !== "avoid" || element.getBoundingClientRect().height > {_PAGE_HEIGHT}
).map(element => element.outerHTML.slice(0, 200))"""


def test_no_row_and_no_chart_is_cut_by_the_end_of_a_page(page: Page, file: Path) -> None:
    page.open(file, width=_PAPER, media="print")
    assert page.value(_CUT) == []
    assert page.value("[...document.querySelectorAll('thead')].map(e => getComputedStyle(e).display)[0]") == (
        "table-header-group"
    )


#: Labels of a chart that cover each other.
_COVERED = """(() => {
    const labels = [...document.querySelectorAll("#volumes svg text")];
    const boxes = labels.map(e => [e.textContent, e.getBoundingClientRect()]);
    return boxes.flatMap(([one, a], place) => boxes.slice(place + 1)
        .filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
        .map(([two]) => [one, two]));
})()"""
_PERIODS = {"one interval": (60, 1), "a minute": (1, 60), "a day": (900, 96), "a year": (345_600, 92)}


def test_a_chart_is_legible_for_a_minute_and_for_a_year(page: Page, result: AuditResult, tmp_path: Path) -> None:
    for name, (interval_s, count) in _PERIODS.items():
        volumes = Volumes(
            interval_s=interval_s,
            intervals=tuple(
                Volume(
                    at_us=AT + place * interval_s * 1_000_000,
                    accepted=9 + place % 5,
                    put=9,
                    delivered=20,
                    forwarded=1,
                    ended_otherwise=1,
                )
                for place in range(count)
            ),
        )
        written = tmp_path / f"{count}.html"
        written.write_text(html(replace(result, volumes=volumes)), encoding="utf-8")
        for width in (_TELEPHONE, _DESK):
            page.open(written, width=width)
            assert page.value(_COVERED) == [], (name, width)
            assert page.value("document.querySelectorAll('#volumes svg text').length") >= 8, name
