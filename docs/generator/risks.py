"""The page of the risks that `rfhbridge check` names, from their table."""

from typing import Final

from docs.generator.markdown import code, sentence, table
from gateway.cli.risks import RISKS

INTRODUCTION: Final = """
`rfhbridge check` warns of each risk that it finds. With `--strict` it puts the name in front of each, and ends with
exit code 1 if it finds one. `--json` has the risks under `risks`, each with what to do.

The last column says when `rfhbridge check` without `--strict` names a risk: always, or only if other machines reach a
port of the gateway. With `--strict` it always names all of them.
""".strip()


def lines() -> list[str]:
    """The page, without its title."""
    rows = [
        (
            code(row.name),
            sentence(row.looks_at),
            row.meaning,
            row.what_to_do,
            "if other machines reach a port" if row.counts_on_networks else "always",
        )
        for row in RISKS
    ]
    return [
        *INTRODUCTION.splitlines(),
        "",
        *table(["Name", "Looks at", "Risk", "What to do", "Without --strict"], rows),
    ]
