"""The generated pages by the names of their files, each with its title and the code that it comes from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from docs.generator import (
    commands,
    configuration,
    controls,
    detection,
    http_api,
    library,
    limits,
    metrics,
    mq,
    mqi,
    mqtt,
    performance,
    records,
    risks,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A generated page."""

    title: str
    source: str
    lines: Callable[[], list[str]]


PAGES: Final = {
    "configuration.md": Page(title="Configuration", source="gateway/config", lines=configuration.lines),
    "commands.md": Page(title="Commands", source="gateway/cli", lines=commands.lines),
    "metrics.md": Page(title="Metrics", source="gateway/metrics.py", lines=metrics.lines),
    "risks.md": Page(title="Risks", source="gateway/cli/risks.py", lines=risks.lines),
    "limits.md": Page(title="Limits", source="gateway/config/limits.py", lines=limits.lines),
    "mqtt.md": Page(
        title="MQTT behaviour",
        source="gateway/mqtt/levels.py and tests/conformance/normative_statements.toml",
        lines=mqtt.lines,
    ),
    "mq.md": Page(
        title="MQ behaviour",
        source="mappings/fields.toml, options.toml and reasons.py, and mq_adapters/reasons.py",
        lines=mq.lines,
    ),
    "mqi.md": Page(
        title="The MQI for MQ clients",
        source="docs/generator/mqi.py, with mq_adapters/embedded/mqi/options.py and gateway/listener/mq/calls.py",
        lines=mqi.lines,
    ),
    "audit-record.md": Page(
        title="Audit record", source="spark_audit/record and spark_audit/trail", lines=records.lines
    ),
    "audit-controls.md": Page(title="Audit controls", source="spark_audit/controls", lines=controls.lines),
    "audit-detection.md": Page(
        title="Wrong trails that the audit finds",
        source="tests/spark_audit/forger/forgeries.toml",
        lines=detection.lines,
    ),
    "library-api.md": Page(title="Library API", source="the docstrings of rfhbridge", lines=library.lines),
    "performance.md": Page(
        title="Performance",
        source="docs/reference/performance.json, which `make bench` writes",
        lines=performance.lines,
    ),
    "http-api.md": Page(title="HTTP API", source="gateway/operations/openapi.json", lines=http_api.lines),
}


def other_texts() -> dict[str, str]:
    """What lies beside the pages, by the names of the files: charts, and a table for programs."""
    return performance.charts() | {"audit-notes.json": records.names_of_notes()}


def page_text(name: str) -> str:
    """The text of a page as it must stand in its file."""
    page = PAGES[name]
    note = f"<!-- Written by `make docs` from {page.source}: change it there. -->"
    return "\n".join([f"# {page.title}", "", note, "", *page.lines()]) + "\n"
