"""Alarms for Prometheus and the dashboard for Grafana: they ask for metrics that the gateway has, and say what is true.

Grafana itself is not run. promtool reads every query; without it (apt-get install prometheus) those tests are skipped.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import reduce
from itertools import combinations, pairwise
from pathlib import Path

import pytest
import yaml

RULES = "deploy/prometheus/rfhbridge.rules.yml"
DASHBOARD = "deploy/grafana/rfhbridge.json"
#: What Prometheus adds to each series, and what it makes itself.
OF_PROMETHEUS = {"instance", "job"}
METRICS_OF_PROMETHEUS = {"up": set()}
METRICS_OF_THE_PROCESS = {"process_cpu_seconds_total": set(), "process_resident_memory_bytes": set()}
NAME = re.compile(r"\b(?:rfhbridge|process)_[a-z0-9_]+\b")
LABELS = re.compile(r"\{([^}]*)\}")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")
#: Grafana's own variables, as a number of seconds and a pattern.
VARIABLES = {"$__rate_interval": "1m", "$instance": ".*"}


@pytest.fixture(scope="module")
def known(root: Path) -> dict[str, set[str]]:
    """The labels of each metric by its name, as docs/reference/metrics.md has them from the code."""
    found: dict[str, set[str]] = METRICS_OF_PROMETHEUS | METRICS_OF_THE_PROCESS
    for line in (root / "docs/reference/metrics.md").read_text().splitlines():
        if not line.startswith("| `rfhbridge_"):
            continue
        name, kind, labels, _ = (cell.strip() for cell in line.strip("|").split("|", 3))
        names = {name.strip("`")}
        if kind == "histogram":
            names = {f"{each}_{part}" for each in names for part in ("bucket", "sum", "count")}
        for each in names:
            found[each] = set(re.findall(r"`(\w+)`", labels)) | ({"le"} if each.endswith("_bucket") else set())
    return found


@pytest.fixture(scope="module")
def rules(root: Path) -> list[dict[str, object]]:
    (group,) = yaml.safe_load((root / RULES).read_text())["groups"]
    return group["rules"]


@pytest.fixture(scope="module")
def panels(root: Path) -> list[dict[str, object]]:
    return json.loads((root / DASHBOARD).read_text())["panels"]


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is missing (apt-get install prometheus)")
    return found


def _queries(panels: list[dict[str, object]]) -> Iterator[tuple[str, str, str]]:
    """The title of a panel, each of its queries, and the legend of that."""
    for panel in panels:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"], target["legendFormat"]


def _unknown(query: str, known: dict[str, set[str]]) -> list[str]:
    """The metrics of a query that no gateway has, and the labels that none of its metrics has."""
    names = [name for name in NAME.findall(query) if not name.endswith("_")]
    labels = {label for name in names for label in known.get(name, ())} | OF_PROMETHEUS
    used = {re.split("[=!]", part)[0].strip() for found in LABELS.findall(query) for part in found.split(",")}
    used |= {part.strip() for found in GROUPED.findall(query) for part in found.split(",")}
    return [name for name in names if name not in known] + sorted(used - labels - {""})


def test_every_alarm_asks_for_metrics_and_labels_that_there_are(
    rules: list[dict[str, object]], known: dict[str, set[str]]
) -> None:
    assert len(rules) >= 19
    for rule in rules:
        assert _unknown(rule["expr"], known) == [], rule["alert"]
        metrics = NAME.findall(rule["expr"])
        labels = {label for name in metrics for label in known[name]} | OF_PROMETHEUS
        assert set(SHOWN.findall(rule["annotations"]["summary"])) <= labels, rule["alert"]


def test_every_panel_asks_for_metrics_and_labels_that_there_are(
    panels: list[dict[str, object]], known: dict[str, set[str]]
) -> None:
    queries = list(_queries(panels))
    assert len(queries) > 30
    for title, query, legend in queries:
        assert _unknown(query, known) == [], title
        grouped = {part.strip() for found in GROUPED.findall(query) for part in found.split(",")}
        labels = grouped or {label for name in NAME.findall(query) for label in known[name]} | OF_PROMETHEUS
        assert set(SHOWN.findall(legend)) <= labels, f"{title}: {legend}"


def test_an_unknown_metric_or_label_is_noticed(known: dict[str, set[str]]) -> None:
    assert _unknown('sum by (colour) (rfhbridge_sesions{instance="a"})', known) == ["rfhbridge_sesions", "colour"]


def test_the_page_on_monitoring_says_what_to_do_about_every_alarm(root: Path, rules: list[dict[str, object]]) -> None:
    page = (root / "docs/how-to/monitor.md").read_text()
    assert re.findall(r"^\| `(Rfhbridge\w+)` \|", page, re.MULTILINE) == [rule["alert"] for rule in rules]


def test_panels_have_numbers_and_places_of_their_own_and_say_what_they_show(panels: list[dict[str, object]]) -> None:
    assert len({panel["id"] for panel in panels}) == len(panels)
    shown = [panel for panel in panels if panel["type"] != "row"]
    for panel in shown:
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert apart or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    assert all(above["gridPos"]["y"] <= below["gridPos"]["y"] for above, below in pairwise(panels))


def test_promtool_reads_every_query_of_the_dashboard(
    promtool: str, panels: list[dict[str, object]], tmp_path: Path
) -> None:
    recorded = []
    for number, (_, query, _) in enumerate(_queries(panels)):
        expression = reduce(lambda text, variable: text.replace(*variable), VARIABLES.items(), query)
        recorded.append({"record": f"panel:{number}", "expr": expression})
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    told = subprocess.run([promtool, "check", "rules", path], check=False, capture_output=True, text=True)
    assert (told.returncode, f"{len(recorded)} rules found" in told.stdout) == (0, True), told.stdout + told.stderr


def test_alarms_are_raised_when_they_should_and_not_before(promtool: str, root: Path, tmp_path: Path) -> None:
    for path in (root / RULES, root / "tests/project/prometheus_rules.yml", root / "deploy/prometheus/prometheus.yml"):
        shutil.copy(path, tmp_path)
    for command in (
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "rfhbridge.rules.yml"],
        ["test", "rules", "prometheus_rules.yml"],
    ):
        told = subprocess.run([promtool, *command], cwd=tmp_path, check=False, capture_output=True, text=True)
        assert told.returncode == 0, told.stdout + told.stderr
