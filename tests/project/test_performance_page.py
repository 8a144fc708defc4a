"""The page of the figures says of each what was durable, and of each run whether the machine was busy."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.generator import performance
from docs.generator.charts import Chart, Line, svg

SVG = "{http://www.w3.org/2000/svg}"


def test_every_figure_of_the_page_says_what_was_durable() -> None:
    measured = performance.runs()
    assert {run.name for run in measured} >= {"sources"}
    assert [figure for run in measured for figure in run.figures if not figure.durable] == []


def test_the_page_names_machine_date_interpreter_and_a_commit_without_changes() -> None:
    for run in performance.runs():
        assert re.fullmatch(r"[0-9a-f]{8}", run.machine["commit"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", run.machine["date"])
        assert "CPython" in run.machine["python"]
        assert run.machine["cores"] > 0


@pytest.fixture
def measured(tmp_path: Path) -> performance.Run:
    """A run of one benchmark on two servers."""
    rows = [
        {"subject": subject, "case": "1,000/s", "durable": durable, "measures": [_measure("CPU", value)]}
        for subject, durable, value in (("rfhbridge", "all", 30.0), ("mosquitto 2, in memory", "nothing", 12.0))
    ]
    report = {"name": "rates", "title": "t", "rows": rows, "notes": ["rfhbridge has 2.50 times", "A note."]}
    (tmp_path / "performance.json").write_text(json.dumps({"machine": {}, "reports": [report]}))
    (run,) = performance.runs(tmp_path)
    return run


def _measure(name: str, value: float) -> dict[str, object]:
    return {"name": name, "value": value, "unit": "us/message"}


def test_a_figure_stands_beside_that_of_mosquitto_and_their_ratio(
    measured: performance.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(performance._MEASURES, "rates", ("CPU",))
    section = list(performance._section("rates", [measured]))
    assert "| 1,000/s | CPU, us/message | 30 | 2.50 | 12 |" in section
    assert section[-6:] == [
        "On the disk before the answer:",
        "",
        "- rfhbridge: all.",
        "- mosquitto 2, in memory: nothing.",
        "",
        "A note.",
    ]


def test_rabbitmq_stands_in_the_table_where_it_was_measured(
    measured: performance.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(performance._MEASURES, "rates", ("CPU",))
    of_rabbitmq = replace(measured.figures[1], subject="RabbitMQ 3", value=120.0)
    section = list(performance._section("rates", [replace(measured, figures=(*measured.figures, of_rabbitmq))]))
    assert (
        "| Case | Figure | rfhbridge | times mosquitto | mosquitto beside rfhbridge | RabbitMQ beside rfhbridge |"
        in section
    )
    assert "| 1,000/s | CPU, us/message | 30 | 2.50 | 12 | 120 |" in section
    assert not any("RabbitMQ" in line for line in performance._section("rates", [measured]))


def test_a_chart_is_whole_and_draws_each_line_in_the_colour_of_its_server() -> None:
    lines = (
        Line(name="ours & p50", colour=0, points=((10, 1), (100, 10))),
        Line(name="theirs", colour=1, points=((10, 2),), is_dashed=True),
    )
    root = ElementTree.fromstring(svg(Chart(title="a < b", note="n", x="x", y="y", lines=lines)))
    paths = [each for each in root.iter(f"{SVG}path") if "line" in each.get("class", "")]
    assert [each.get("class") for each in paths] == ["line a", "line a", "line b dashed", "line b dashed"]
    assert len(list(root.iter(f"{SVG}circle"))) == 3
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert {"a < b", "ours & p50", "theirs", "10", "100", "1"} <= set(texts)


def test_points_of_a_chart_stand_where_a_logarithmic_axis_has_them() -> None:
    points = ((10.0, 1.0), (100.0, 1.0), (1_000.0, 1.0))
    line = Line(name="l", colour=0, points=points)
    root = ElementTree.fromstring(svg(Chart(title="t", note="n", x="x", y="y", lines=(line,))))
    first, middle, last = (float(each.get("cx", "")) for each in root.iter(f"{SVG}circle"))
    assert middle - first == pytest.approx(last - middle, abs=0.2)
    assert first < middle


def _contrast(one: str, other: str) -> float:
    """Of two colours (#rrggbb), as WCAG 2 counts it: 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_chart_is_legible_in_both_themes() -> None:
    """It has a ground of its own; text has a contrast of 7 on it and lines one of 4.5 (WCAG 2.2, 1.4.6 and 1.4.3)."""
    line = Line(name="l", colour=0, points=((1, 1), (9, 9)))
    style = svg(Chart(title="t", note="n", x="x", y="y", lines=(line,)))
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    for theme in (light, dark):
        (ground,) = re.findall(r"\.ground { fill: (#\w{6})", theme)
        (text,) = re.findall(r"text { fill: (#\w{6})", theme)
        lines = re.findall(r"\.[abc] { stroke: (#\w{6})", theme)
        assert len(lines) == 3
        assert _contrast(text, ground) >= 7
        assert min(_contrast(line, ground) for line in lines) >= 4.5
    assert light.count('class="ground"') + dark.count('class="ground"') == 1


@pytest.mark.parametrize(("load", "is_told"), [(0.4, False), (5.6, True)])
def test_the_page_says_that_the_machine_was_busy(measured: performance.Run, load: float, is_told: bool) -> None:
    machine = dict.fromkeys(("date", "commit", "processor", "cores", "system", "python", "python_built"), "x")
    run = replace(measured, machine=machine | {"load": load, "memory_gib": 1.0, "sync_ms": 1.0})
    assert ("Other programs" in "".join(performance._machines([run]))) == is_told
