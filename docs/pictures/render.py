"""Draws each NAME.mmd of this folder as NAME.svg, with Mermaid in the system's Chromium: `make pictures`.

The SVG begins with the SHA-256 of its source. A picture whose source has not changed is left as it is; --all draws all.
"""

import base64
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent
INSTALLED: Final = FOLDER.parents[1] / ".venv" / "mermaid"
_LIMIT_S: Final = 120


def first_line(source: Path) -> str:
    """The line that the SVG of a source begins with."""
    return f"<!-- {source.name}, SHA-256 {hashlib.sha256(source.read_bytes()).hexdigest()} -->"


def is_fresh(source: Path) -> bool:
    """Whether the SVG beside a source was drawn from it as it is now."""
    picture = source.with_suffix(".svg")
    return picture.exists() and picture.read_text().split("\n", 1)[0] == first_line(source)


def drawn(source: str) -> str:
    """The SVG of a source. Raises ValueError with Mermaid's own words."""
    page = (FOLDER / "page.html").read_text()
    library = INSTALLED / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
    page = page.replace("MERMAID", library.as_uri()).replace("SOURCE", json.dumps(source).replace("<", "\\u003c"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page)
        command = [(INSTALLED / "chromium").read_text().strip(), "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--virtual-time-budget=60000", f"--user-data-dir={folder}/profile", "--dump-dom", path.as_uri()]
        told = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True).stdout
    found = re.search(r"<title>(SVG|ERROR) (.*?)</title>", told, re.DOTALL)
    if found is None or found[1] == "ERROR":
        raise ValueError(found[2] if found else "Chromium drew nothing")
    return base64.b64decode(found[2]).decode()


def main() -> None:
    for source in sorted(FOLDER.glob("*.mmd")):
        if "--all" in sys.argv or not is_fresh(source):
            source.with_suffix(".svg").write_text(f"{first_line(source)}\n{drawn(source.read_text())}\n")
            print(f"drawn: docs/pictures/{source.stem}.svg")


if __name__ == "__main__":
    main()
