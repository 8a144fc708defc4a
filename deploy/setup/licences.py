"""Lists the packages of a software bill of materials with their licences: one line each, `name version: licence`.

usage: python deploy/setup/licences.py build/sbom.json

Ends with 1 if a package names no licence: whoever passes the product on must then ask its authors.
Source: CycloneDX 1.6, `components[].licenses`.
"""

import json
import sys
from pathlib import Path
from typing import Any


def licences_of(component: dict[str, Any]) -> str:
    """The licences that a component names, as it names them; "" for none."""
    found = []
    for choice in component.get("licenses", []):
        licence = choice.get("license", {})
        found.append(choice.get("expression") or licence.get("id") or licence.get("name") or "")
    names = [name.rpartition(":: ")[2] for name in found if name]  # some are a classifier of a Python package
    return " or ".join(dict.fromkeys(names))


def main() -> int:
    components = json.loads(Path(sys.argv[1]).read_text())["components"]
    lines = [f"{each['name']} {each['version']}: {licences_of(each) or 'UNKNOWN'}" for each in components]
    lines.sort(key=str.casefold)
    print("\n".join(lines))
    unknown = [line for line in lines if line.endswith(": UNKNOWN")]
    for line in unknown:
        print(f"licences: {line.removesuffix(': UNKNOWN')} names no licence", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
