"""`python -m docs.generator`: writes every generated page anew, and names those that have changed."""

from pathlib import Path

from docs.generator.pages import PAGES, other_texts, page_text

FOLDER = Path(__file__).resolve().parents[1] / "reference"


def main() -> None:
    for name, text in ({name: page_text(name) for name in PAGES} | other_texts()).items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"written: docs/reference/{name}")


main()
