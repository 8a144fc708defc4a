"""The page of the audit's controls, from their catalogue."""

from typing import Final

from docs.generator.markdown import code, sentence, table
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.controls.control import Control
from spark_audit.report.exceptions import COLUMNS

INTRODUCTION: Final = """
`rfhbridge audit run` asks each of these controls. A violation of severity error makes the verdict `violations` and the
exit code 1. A violation of severity warning is reported and does not change the verdict. An auditor's policy
(`--policy FILE`) changes severities and parameters:

```toml
[control."timeliness"]
severity = "error"
forwarded_within_s = 600
```
""".strip()

EXCEPTIONS: Final = """
`result.json` has a sample of what each control found. `exceptions.parquet` beside it has every violation, in a folder
for each control:

```sql
SELECT client, topic, count(*) FROM read_parquet('report/exceptions.parquet/**/*.parquet') GROUP BY client, topic;
```
""".strip()


def lines() -> list[str]:
    """The page, without its title."""
    rows = (
        (code(each.identifier), sentence(each.title), each.severity.value, sentence(each.source)) for each in CONTROLS
    )
    parameters = [row for each in CONTROLS for row in _parameters(each)]
    columns = ((code(each.name), str(each.type), sentence(each.meaning)) for each in COLUMNS)
    return [
        *INTRODUCTION.splitlines(),
        "",
        *table(["Control", "What it asks", "Severity", "Source"], rows),
        "",
        "## Parameters",
        "",
        *table(["Control", "Parameter", "Unit", "Default", "Least", "Meaning"], parameters),
        "",
        "## Every violation",
        "",
        *EXCEPTIONS.splitlines(),
        "",
        *table(["Column", "Type", "Meaning"], columns),
    ]


def _parameters(control: Control) -> list[tuple[str, ...]]:
    return [
        (
            code(control.identifier),
            code(each.name),
            each.unit,
            code(str(each.value).lower()),
            "" if isinstance(each.value, bool) else str(each.minimum),
            sentence(each.meaning),
        )
        for each in control.parameters
    ]
