"""The page of the figures, and its charts, from what `make bench` has written of real runs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docs.generator.charts import Chart, Line, svg
from docs.generator.markdown import table

_FOLDER: Final = Path(__file__).resolve().parents[1] / "reference"
#: What `make bench ARGS="--json FILE ..."` wrote: the run of the sources, and that of the build of `make compile`.
_FILES: Final = {"sources": "performance.json", "compiled": "performance-compiled.json"}
_BENCHMARKS: Final = "qos1_offline one_to_one fan_out publishes latency rates sizes retained"
_OURS: Final = "rfhbridge"
#: Servers beside it, by the beginning of their names. Ratios are to the first.
_PEERS: Final = ("mosquitto", "RabbitMQ")
#: Processes that ran or could run in the minute before; of a quiet machine it is near 0.
_QUIET_LOAD: Final = 1.0
_BUSY: Final = """
**Other programs took a part of the machine in a run whose load is above 1.** Its rates are too low and its latencies
too high, and a ratio compares two moments that were disturbed differently. CPU suffers least.
[Benchmarks](../../benchmarks/README.md) has figures of quiet machines.
""".strip()
_GROUPED_FROM: Final = 100
#: The measures of each benchmark that the page has, in its order; the file has all.
_MEASURES: Final = {
    "qos1_offline": ("rate", "CPU", "PUBACK p50", "PUBACK p99", "PUBACK p99.9"),
    "one_to_one": ("rate", "CPU", "way p50", "way p99"),
    "fan_out": ("rate", "CPU", "way p50", "way p99"),
    "publishes": ("rate", "CPU"),
    "latency": ("PUBACK p50", "PUBACK p99", "PUBACK p99.9"),
    "rates": ("rate", "PUBACK p50", "PUBACK p99", "PUBACK p99.9"),
    "sizes": ("rate", "payload", "CPU", "PUBACK p99"),
    "retained": ("SUBACK", "rate", "CPU"),
}
_CHARTS: Final = {"rates": "performance-rates.svg", "sizes": "performance-sizes.svg"}
#: On both charts.
_NOTE: Final = "rfhbridge has copy and audit note synced on the disk before PUBACK, mosquitto has nothing there"
_HEADINGS: Final = {
    "qos1_offline": "Kept for a subscriber that is away",
    "one_to_one": "Publisher to subscriber",
    "fan_out": "One publisher to many subscribers",
    "publishes": "PUBLISHes that cost more",
    "latency": "PUBLISH to PUBACK",
    "rates": "Latency against load",
    "sizes": "Cost against size",
    "retained": "Retained messages",
}

INTRODUCTION: Final = f"""
How fast the gateway is, beside mosquitto and RabbitMQ on the same machine in the same run. The load generator shares
the cores with the server. [Benchmarks](../../benchmarks/README.md) says how it is measured, and has the figures of
attacks, of idle connections and of the audit. These commands measure again:

    make bench ARGS="--seconds 2 --json docs/reference/{_FILES["sources"]} {_BENCHMARKS}"
    make docs

"Times mosquitto" is the figure of the gateway divided by that of mosquitto in the same run. For a rate more is better,
for CPU and latency less is. CPU is that of the server's own process. A latency counts from the moment at which a
message was due. At a fixed rate the generator sleeps until that moment. With more than two cores it wakes 40 us before,
and looks at the clock again and again; with two cores this would take one from the server.
Below each table stands what was on the disk before the server answered: **mosquitto never syncs a message before it
acknowledges**, so it does less for each.
""".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a run."""

    benchmark: str
    subject: str
    case: str
    durable: str
    measure: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One file: the machine as it says, the titles and notes of the benchmarks, and all figures."""

    name: str
    machine: dict[str, Any]
    titles: dict[str, str]
    notes: dict[str, list[str]]
    figures: tuple[Figure, ...]

    def value(self, benchmark: str, subject: str, case: str, measure: str) -> float | None:
        """Of the first subject whose name begins so; None where it was not measured."""
        return next(
            (
                figure.value
                for figure in self.figures
                if (figure.benchmark, figure.case, figure.measure) == (benchmark, case, measure)
                and figure.subject.startswith(subject)
            ),
            None,
        )


def runs(folder: Path = _FOLDER) -> list[Run]:
    """The runs whose files are there, that of the sources first."""
    return [_run(name, folder / file) for name, file in _FILES.items() if (folder / file).exists()]


def lines() -> list[str]:
    """The page, without its title."""
    measured = runs()
    page = [*INTRODUCTION.splitlines(), "", "## The runs", "", *_machines(measured)]
    for benchmark in filter(measured[0].titles.__contains__, _MEASURES):
        page += ["", *_section(benchmark, measured)]
    return page


def charts() -> dict[str, str]:
    """The SVG files of the page by their names."""
    measured = runs()
    return {
        _CHARTS["rates"]: svg(
            Chart(
                title="Latency against load: PUBLISH to PUBACK, QoS 1, 64 B",
                note=_NOTE,
                x="messages a second that were due",
                y="ms",
                lines=tuple(_lines(measured, "rates", {"p50": "PUBACK p50", "p99": "PUBACK p99"})),
            )
        ),
        _CHARTS["sizes"]: svg(
            Chart(
                title="Cost against size: CPU of the server for one message, QoS 1",
                note=_NOTE,
                x="bytes of payload",
                y="us of CPU",
                lines=tuple(_lines(measured, "sizes", {"": "CPU"})),
            )
        ),
    }


def _run(name: str, file: Path) -> Run:
    told = json.loads(file.read_text())
    figures = [
        Figure(
            benchmark=report["name"],
            subject=row["subject"],
            case=row["case"],
            durable=row["durable"],
            measure=measure["name"],
            value=measure["value"],
            unit=measure["unit"],
        )
        for report in told["reports"]
        for row in report["rows"]
        for measure in row["measures"]
    ]
    return Run(
        name=name,
        machine=told["machine"],
        titles={report["name"]: report["title"] for report in told["reports"]},
        notes={report["name"]: report["notes"] for report in told["reports"]},
        figures=tuple(figures),
    )


def _machines(measured: list[Run]) -> list[str]:
    """When, where and with what each run was measured."""
    fields = {
        "date": "{date}",
        "commit": "{commit}",
        "machine": "{processor}, {cores} cores, {memory_gib:.0f} GiB, {system}",
        "interpreter": "{python} ({python_built})",
        "fdatasync of 4,096 B, median": "{sync_ms:.2f} ms",
        "load of the machine before": "{load:.1f}",
    }
    rows = [(name, *(template.format(**run.machine) for run in measured)) for name, template in fields.items()]
    busy = [run for run in measured if run.machine["load"] > _QUIET_LOAD]
    return [*table(["", *(_name_of(run) for run in measured)], rows), *(["", *_BUSY.splitlines()] if busy else [])]


def _name_of(run: Run) -> str:
    return _OURS if run.name == "sources" else f"{_OURS}, {run.name}"


def _section(benchmark: str, measured: list[Run]) -> Iterator[str]:
    first = measured[0]
    yield f"## {_HEADINGS[benchmark]}"
    yield ""
    yield f"`{benchmark}`: {first.titles[benchmark]}."
    yield ""
    if benchmark in _CHARTS:
        yield f"![{_HEADINGS[benchmark]}: {_alternative(benchmark, measured)}]({_CHARTS[benchmark]})"
        yield ""
    titles = ["Case", "Figure", *(title for run in measured for title in (_name_of(run), f"times {_PEERS[0]}"))]
    beside = [f"{peer} beside {_name_of(first)}" for peer in _peers_of(benchmark, first)]
    yield from table([*titles, *beside], _rows(benchmark, measured))
    yield ""
    yield from _durable(benchmark, first)
    kept = [note for note in first.notes[benchmark] if " has " not in note]  # ratios stand in the table
    if kept:
        yield ""
        yield from kept


def _rows(benchmark: str, measured: list[Run]) -> Iterator[list[str]]:
    first = measured[0]
    cases = dict.fromkeys(figure.case for figure in first.figures if figure.benchmark == benchmark)
    units = {figure.measure: figure.unit for figure in first.figures if figure.benchmark == benchmark}
    for case in cases:
        for measure in _MEASURES[benchmark]:
            cells = [case, f"{measure}, {units[measure]}"]
            for run in measured:
                ours = run.value(benchmark, _OURS, case, measure)
                theirs = run.value(benchmark, _PEERS[0], case, measure)
                cells += [_text(ours), f"{ours / theirs:.2f}" if ours and theirs else ""]
            yield [
                *cells,
                *(_text(first.value(benchmark, peer, case, measure)) for peer in _peers_of(benchmark, first)),
            ]


def _peers_of(benchmark: str, run: Run) -> list[str]:
    """The servers that a benchmark measured beside the gateway."""
    subjects = {figure.subject for figure in run.figures if figure.benchmark == benchmark}
    return [peer for peer in _PEERS if any(subject.startswith(peer) for subject in subjects)]


def _durable(benchmark: str, run: Run) -> Iterator[str]:
    """What was on the disk, once for all cases of a subject that agree."""
    told: dict[tuple[str, str], list[str]] = {}
    for figure in run.figures:
        if figure.benchmark == benchmark:
            cases = told.setdefault((figure.subject, figure.durable), [])
            if figure.case not in cases:
                cases.append(figure.case)
    subjects = [subject for subject, _ in told]
    yield "On the disk before the answer:"
    yield ""
    for (subject, durable), cases in told.items():
        of = f" ({', '.join(cases)})" if subjects.count(subject) > 1 else ""
        yield f"- {subject}{of}: {durable}."


def _lines(measured: list[Run], benchmark: str, wanted: dict[str, str]) -> Iterator[Line]:
    """For the chart: each run, and mosquitto of the first one."""
    subjects = [(_name_of(run), run, _OURS) for run in measured] + [("mosquitto", measured[0], "mosquitto")]
    for colour, (name, run, subject) in enumerate(subjects):
        for place, (label, measure) in enumerate(wanted.items()):
            points = tuple(_points(run, benchmark, subject, measure))
            if points:
                yield Line(name=f"{name} {label}".strip(), colour=colour, points=points, is_dashed=place > 0)


def _points(run: Run, benchmark: str, subject: str, measure: str) -> Iterator[tuple[float, float]]:
    """The number that a case begins with, and the figure."""
    for figure in run.figures:
        if (figure.benchmark, figure.measure) == (benchmark, measure) and figure.subject.startswith(subject):
            yield float(figure.case.split("/")[0].split()[0].replace(",", "")), figure.value


def _alternative(benchmark: str, measured: list[Run]) -> str:
    """For a reader who does not see the chart: the table below has its figures."""
    names = ", ".join([*(_name_of(run) for run in measured), "mosquitto"])
    return f"lines of {names}; the table has all figures"


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= _GROUPED_FROM else f"{value:.3g}"
