"""The pages of docs build without a warning and load nothing from another host; what is generated or drawn is fresh."""

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.generator.pages import PAGES, other_texts, page_text

#: What a browser fetches of its own accord, by element: the attributes that name it.
FETCHED = {
    "audio": ["src"],
    "embed": ["src"],
    "iframe": ["src"],
    "image": ["href", "xlink:href"],
    "img": ["src", "srcset"],
    "input": ["src"],
    "link": ["href"],
    "object": ["data"],
    "script": ["src"],
    "source": ["src", "srcset"],
    "use": ["href", "xlink:href"],
    "video": ["src", "poster"],
}
FOREIGN = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
FOREIGN_IN_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s*["'])((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
#: Addresses in the theme's scripts: the name space of SVG, and comments.
NAMED_IN_SCRIPTS = ("http://www.w3.org/2000/svg", "https://developer.mozilla.org/", "https://snowballstem.org/")


class Loads(HTMLParser):
    """Collects what a page loads from another host."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = [value or "" for name, value in attrs if name in FETCHED.get(tag, [])]
        self.found += [value for value in named if FOREIGN.match(value)]
        self.found += [
            each for name, value in attrs if name == "style" for each in FOREIGN_IN_STYLE.findall(value or "")
        ]


def _foreign(file: Path) -> list[str]:
    """The addresses of other hosts that a file makes a browser load."""
    if file.suffix == ".html":
        page = Loads()
        page.feed(file.read_text())
        return page.found + FOREIGN_IN_STYLE.findall(file.read_text())
    if file.suffix == ".js":
        named = re.findall(r"https?://[^\s\"'`)]+", file.read_text())
        return [each for each in named if not each.startswith(NAMED_IN_SCRIPTS)]
    if file.suffix in {".css", ".svg"}:
        loaded = re.findall(r"(?:href|src)=\"((?:https?:)?//[^\"]+)", file.read_text())
        return loaded + FOREIGN_IN_STYLE.findall(file.read_text())
    return []


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages, built once: anew, or from the last build of `make docs`, which keeps one only if it had no warning."""
    folder = tmp_path_factory.mktemp("docs")
    if (root / "build/doctrees").is_dir():
        shutil.copytree(root / "build/doctrees", folder / "trees")
        shutil.copytree(root / "build/docs", folder / "pages")
    options = ["-b", "html", "-d", str(folder / "trees"), "-c", "docs", "-q", "-W", "--keep-going"]
    build = [sys.executable, "-m", "sphinx", *options, ".", str(folder / "pages")]
    run = subprocess.run(build, cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "pages"


@pytest.mark.timeout(600)  # pages build in 16 s of CPU time, on a machine with much other work in minutes
def test_pages_build_without_a_warning_and_the_entrance_leads_to_them(built: Path) -> None:
    (led,) = re.findall(r'url=([^"]+)"', (built / "index.html").read_text())
    assert "Tutorials" in (built / led).read_text()
    assert "maximum_in_flight" in (built / "docs/reference/configuration.html").read_text()


@pytest.mark.timeout(600)
def test_pages_load_nothing_from_another_host(built: Path) -> None:
    files = [file for file in built.rglob("*") if file.is_file()]
    assert {".html", ".css", ".js"} <= {file.suffix for file in files}
    assert [(file.name, each) for file in files for each in _foreign(file)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<link rel="stylesheet" href="https://fonts.example/css">'),
        ("a.html", '<script src="//cdn.example/x.js"></script>'),
        ("a.html", "<style>@font-face { src: url(https://fonts.example/a.woff2) }</style>"),
        ("a.html", '<img srcset="https://pictures.example/a.png 2x">'),
        ("a.css", '@import "https://fonts.example/css";'),
        ("a.css", "body { background: url('//pictures.example/a.png') }"),
        ("a.svg", '<image href="https://pictures.example/a.png"/>'),
        ("a.js", 'fetch("https://counter.example/hit")'),
    ],
)
def test_a_load_from_another_host_is_found(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert _foreign(tmp_path / name)


@pytest.mark.parametrize("text", ['<a href="https://www.example.com/">a link</a>', '<img src="a.png">'])
def test_a_link_and_a_file_of_our_own_are_no_load_from_another_host(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.html").write_text(text)
    assert _foreign(tmp_path / "a.html") == []


@pytest.mark.parametrize("name", PAGES)
def test_generated_page_says_what_the_code_says(root: Path, name: str) -> None:
    assert (root / "docs/reference" / name).read_text() == page_text(name), "stale: run `make docs`"


def test_generated_charts_show_what_was_measured_and_load_nothing(root: Path) -> None:
    for name, text in other_texts().items():
        assert (root / "docs/reference" / name).read_text() == text, "stale: run `make docs`"
        assert _foreign(root / "docs/reference" / name) == []


def _sources(root: Path) -> Iterator[Path]:
    return (root / "docs/pictures").glob("*.mmd")


def test_every_picture_was_drawn_from_its_source_as_it_is_now(root: Path) -> None:
    sources = sorted(_sources(root))
    assert {"the-way-of-a-publish.mmd", "units-of-work.mmd", "the-trails-chain.mmd"} <= {each.name for each in sources}
    for source in sources:
        drawn_from = source.with_suffix(".svg").read_text().split("\n", 1)[0]
        assert hashlib.sha256(source.read_bytes()).hexdigest() in drawn_from, f"{source.name}: run `make pictures`"


def test_every_picture_has_a_source_and_loads_nothing(root: Path) -> None:
    pictures = sorted((root / "docs/pictures").glob("*.svg"))
    assert [each.stem for each in pictures] == sorted(each.stem for each in _sources(root))
    assert [each for picture in pictures for each in _foreign(picture)] == []
    assert not any("foreignObject" in picture.read_text() for picture in pictures)  # a page of HTML in a picture
