"""The page of the risks that `rfhbridge check` names, from their table."""

from typing import Final

from docs.generator.markdown import code, sentence, table
from gateway.cli.risks import RISKS

INTRODUCTION: Final = """
`rfhbridge check` warns of each risk that it finds. `rfhbridge check --strict` names each by its name here, and ends
with 1 where there is any. `--json` has them under `risks`, each with what to do.

Some count only where another machine reaches a port; `--strict` names these on a gateway of this machine alone too.
""".strip()


def lines() -> list[str]:
    """The page, without its title."""
    rows = [
        (
            code(row.name),
            sentence(row.looks_at),
            row.meaning,
            row.what_to_do,
            "with a port for other machines" if row.counts_on_networks else "always",
        )
        for row in RISKS
    ]
    return [
        *INTRODUCTION.splitlines(),
        "",
        *table(["Name", "Looks at", "Risk", "What to do", "Without --strict"], rows),
    ]
