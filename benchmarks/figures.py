"""Figures of a benchmark: rows of named measures with their units, as a table and as JSON."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.load.task import Percentiles

#: Below this a figure needs two digits after the point, above it thousands are grouped.
_GROUPED_FROM = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure, with the unit it is in."""

    name: str
    value: float
    unit: str

    @property
    def column(self) -> str:
        return f"{self.name} ({self.unit})"

    @property
    def text(self) -> str:
        return f"{self.value:,.0f}" if abs(self.value) >= _GROUPED_FROM else f"{self.value:.3g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was measured of one subject (a server with its settings, or a call) in one case.

    `durable`: what was on the disk before the subject answered, where it is a server.
    """

    subject: str
    case: str = ""
    durable: str = ""
    measures: tuple[Measure, ...]

    def value(self, name: str) -> float:
        """The figure of that name. KeyError where it was not measured."""
        return {measure.name: measure.value for measure in self.measures}[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of one benchmark. `notes` are complete sentences: settings, ratios, and what did not hold."""

    name: str
    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "title": self.title,
            "rows": [
                {
                    "subject": row.subject,
                    "case": row.case,
                    "durable": row.durable,
                    "measures": [
                        {"name": measure.name, "value": measure.value, "unit": measure.unit} for measure in row.measures
                    ],
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
        }


def latency_measures(name: str, latencies: Percentiles) -> tuple[Measure, ...]:
    """All percentiles, and the longest."""
    values = {
        "p50": latencies.p50_ms,
        "p90": latencies.p90_ms,
        "p99": latencies.p99_ms,
        "p99.9": latencies.p99_9_ms,
        "max": latencies.max_ms,
    }
    return tuple(Measure(name=f"{name} {which}", value=value, unit="ms") for which, value in values.items())


def ratio_notes(rows: tuple[Row, ...], name: str) -> Iterator[str]:
    """How the first subject of each case stands to the others, by one measure."""
    for case in dict.fromkeys(row.case for row in rows):
        first, *others = [row for row in rows if row.case == case]
        for other in others:
            ratio = first.value(name) / other.value(name)
            yield f"{case + ': ' if case else ''}{first.subject} has {ratio:.2f} times the {name} of {other.subject}."


def print_report(report: Report, console: Console) -> None:
    """One table, its notes below."""
    columns = list(dict.fromkeys(measure.column for row in report.rows for measure in row.measures))
    has_cases = any(row.case for row in report.rows)
    table = Table(title=f"{report.name}: {report.title}", title_justify="left")
    for heading in ("subject", *(["case"] if has_cases else [])):
        table.add_column(heading, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    for row in report.rows:
        texts = {measure.column: measure.text for measure in row.measures}
        cells = [row.subject, *([row.case] if has_cases else [])]
        table.add_row(*cells, *(texts.get(column, "") for column in columns))
    console.print(table)
    for note in report.notes:
        console.print(f"  {note}", highlight=False)
    console.print()
