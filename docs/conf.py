"""How Sphinx builds the pages: `make docs`, from the root of the repository, for the READMEs are pages too."""

import re
from pathlib import Path

from sphinx.application import Sphinx

project = "rfhbridge"
author = "The maintainers of rfhbridge"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "*.md", "*/README.md", "*/*/README.md"]
exclude_patterns = [".*", "build", "dist", "var", "tests/**"]
#: index.html of the output leads to docs/index.html.
html_extra_path = ["entrance"]

html_theme = "furo"
html_title = "rfhbridge"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

#: Headings have the anchors that forges give them, so that a link holds there and here.
myst_heading_anchors = 4

nitpicky = True
autodoc_member_order = "bysource"

_FOLDER_LINK = re.compile(r"\[([^\]]+)\]\(([^):]+/)\)")


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", _lead_to_pages)


def _lead_to_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """A forge shows a folder; here a link to one leads to its page, or is no link where it has none."""
    folder = (Path(app.srcdir) / page).parent

    def replaced(link: re.Match[str]) -> str:
        text, target = link.groups()
        found = [name for name in ("index.md", "README.md") if (folder / target / name).exists()]
        return f"[{text}]({target}{found[0]})" if found else text

    source[0] = _FOLDER_LINK.sub(replaced, source[0])
