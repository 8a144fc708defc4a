"""report.html: one page for people, which loads nothing and runs nothing.

The template escapes everything; what strangers wrote also goes through `visible`, which leaves nothing that turns,
hides or overflows. A policy in the page forbids whatever might get through nevertheless.
"""

import shlex
from dataclasses import dataclass
from html import escape
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from spark_audit.report.hexdump import dump
from spark_audit.report.text import duration, moment, visible
from spark_audit.result import AuditResult, ControlStatus, Verdict, Volumes, counted

#: Findings of a control whose bytes the page shows; all of the sample are in result.json.
EVIDENCE_SHOWN: Final = 10
#: Lines of the policy that the page shows: one that names every control with every parameter has some 200.
POLICY_LINES_SHOWN: Final = 500
#: Colours of what verdicts, statuses and spark_audit.verify say; anything else is an open question.
_TONES: Final = {
    Verdict.CLEAN.value: "good",
    Verdict.VIOLATIONS.value: "bad",
    ControlStatus.HELD.value: "good",
    ControlStatus.VIOLATED.value: "bad",
    "anchored": "good",
    "consistent, not anchored": "good",
    "restored": "gap",
}
_PERIODS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def html(result: AuditResult) -> str:
    """The page. Matplotlib is needed where there is something to draw."""
    environment = Environment(
        loader=PackageLoader("spark_audit.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": counted,
        "duration": duration,
        "interval": interval_in_words,
        "moment": moment,
        "number": lambda number: f"{number:,}",
        "shown": Shown,
    }
    environment.globals |= {
        "dump": dump,
        "evidence_shown": EVIDENCE_SHOWN,
        "tone": lambda word: _TONES.get(word, "open"),
    }
    volumes, latencies = _charts(result)
    policy_lines = result.policy_text.splitlines()
    return environment.get_template("page.html").render(
        result=result,
        volumes_chart=volumes,
        latencies_chart=latencies,
        command=shlex.join(result.command),
        policy_lines=policy_lines[:POLICY_LINES_SHOWN],
        policy_lines_left_out=len(policy_lines[POLICY_LINES_SHOWN:]),
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """A stranger's text in the page, kept to itself: letters written from right to left do not turn its line."""

    text: str

    def __html__(self) -> str:
        """What the template writes in place of the text, escaped."""
        return f"<bdi>{escape(visible(self.text))}</bdi>"


def interval_in_words(volumes: Volumes) -> str:
    """The length of an interval: minute, 5 minutes, hour."""
    for length, noun in _PERIODS:
        if volumes.interval_s % length == 0:
            number = volumes.interval_s // length
            return noun if number == 1 else f"{number} {noun}s"
    return f"{volumes.interval_s} seconds"


def _charts(result: AuditResult) -> tuple[str, str]:
    """Volumes and latencies as SVG; empty where there is nothing to draw."""
    if not result.volumes.intervals and not result.latencies:
        return "", ""
    from spark_audit.report.charts import latencies_chart, volumes_chart

    return volumes_chart(result.volumes), latencies_chart(result.latencies)
