"""How Sphinx builds the pages: `make docs`, from the root of the repository, for the READMEs are pages too."""

import gc
import re
from pathlib import Path
from typing import Any

from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import rfhbridge

# A tree of a page has many nodes, and nearly all stay: with Python's own thresholds a third of the CPU time of a build
# went to look for garbage in them.
gc.set_threshold(5_000, 20, 50)

project = "rfhbridge"
author = "The maintainers of rfhbridge"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "*.md", "*/README.md", "*/*/README.md"]
exclude_patterns = [".*", "build", "dist", "var", "tests/*/**"]
#: index.html of the output leads to docs/index.html.
html_extra_path = ["entrance"]

html_theme = "furo"
html_title = "rfhbridge"
html_static_path = ["style"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

#: Headings have the anchors that forges give them, so that a link holds there and here.
myst_heading_anchors = 4

#: The library's page leads to what the library names. Foreign types, and those of the house behind it, lead nowhere.
nitpicky = True
nitpick_ignore_regex = [
    ("py:class", r"(collections|enum|pathlib|mappings|mq_adapters)\..*"),
    ("py:class", r"Engine|Path|tuple\[str"),
]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"

_FOLDER_LINK = re.compile(r"\[([^\]]+)\]\(([^):]+/)\)")


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", _lead_to_pages)
    app.connect("autodoc-process-docstring", _as_restructured_text)
    app.connect("missing-reference", _as_the_library_names_it)


def _lead_to_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """A forge shows a folder; here a link to one leads to its page, or is no link where it has none."""
    folder = (Path(app.srcdir) / page).parent

    def replaced(link: re.Match[str]) -> str:
        text, target = link.groups()
        found = [name for name in ("index.md", "README.md") if (folder / target / name).exists()]
        return f"[{text}]({target}{found[0]})" if found else text

    source[0] = _FOLDER_LINK.sub(replaced, source[0])


def _as_restructured_text(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: `code` between backticks, and blocks of code that are indented."""
    written: list[str] = []
    for line in lines:
        if line.startswith(" "):
            if written and not written[-1] and (len(written) < 2 or not written[-2].startswith((" ", "::"))):
                written += ["::", ""]
            written.append(line)
        else:
            parts = line.split("`")
            marked = [
                f"``{part}``" if index % 2 else re.sub(r"([*|]|_\b)", r"\\\1", part) for index, part in enumerate(parts)
            ]
            written.append("".join(marked))
    lines[:] = written


def _as_the_library_names_it(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element
) -> Element | None:
    """Leads from mappings.headers.chain.HeaderChain to rfhbridge.HeaderChain, where the library has the name."""
    name = str(node.get("reftarget", "")).rpartition(".")[2]
    if node.get("refdomain") != "py" or name not in rfhbridge.__all__:
        return None
    python = env.get_domain("py")
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", f"rfhbridge.{name}", node, content)
