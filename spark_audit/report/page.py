"""report.html: one page for people, which loads nothing and runs one script of its own, the search.

The template escapes everything; what strangers wrote also goes through `visible`, which leaves nothing that turns,
hides or overflows. A policy in the page forbids whatever might get through nevertheless: it allows the one script by
the hash of its text. Without scripts the page has everything but the search box.
"""

import base64
import hashlib
import shlex
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib.resources import files
from itertools import pairwise
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from spark_audit.report.citations import cited_by, cited_in
from spark_audit.report.headlines import headlines
from spark_audit.report.hexdump import dump
from spark_audit.report.text import duration, moment, visible
from spark_audit.result import AuditResult, ControlStatus, Integrity, Subject, Verdict, Volumes, counted

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
    "restored": "gap",
}
_PERIODS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_ANCHORED: Final = "anchored"
_NOT_CHECKED: Final = "the files of the trail were not checked, so nothing here says whether somebody changed them"
_NOT_SIGNED: Final = "no record is signed: whoever can write the files could have written all of them anew"
_NOT_ANCHORED: Final = (
    "the files were held against nothing from elsewhere, so somebody may have written all of them anew "
    "(--public-key, --digests)"
)


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
        "cited": cited_in,
        "counted": counted,
        "duration": duration,
        "interval": interval_in_words,
        "moment": lambda at_us: moment(at_us).replace("+00:00", "Z"),
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
    script = files("spark_audit.report.templates").joinpath("search.js").read_text(encoding="utf-8")
    doubts = reservations(result)
    statuses = Counter(control.status.value for control in result.controls)
    return environment.get_template("page.html").render(
        result=result,
        volumes_chart=volumes,
        latencies_chart=latencies,
        command=shlex.join(result.command),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        reservations=doubts,
        verdict_tone="open" if doubts and result.verdict is Verdict.CLEAN else _TONES.get(result.verdict.value, "open"),
        headlines=headlines(result.controls),
        statuses=statuses.most_common(),
        signed_share=_signed_share(result.integrity),
        freshness=_freshness(result),
        folders=_folders(result.command),
        sources=cited_by(control.source for control in result.controls),
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


def reservations(result: AuditResult) -> list[str]:
    """Why a verdict stands on less than signed and anchored evidence; none for an archive, which has no signatures."""
    integrity = result.integrity
    if result.subject is not Subject.TRAIL or result.verdict is Verdict.NOT_EVALUABLE:
        return []
    if not integrity.records:
        return [_NOT_CHECKED]
    if not integrity.digests:
        return [_NOT_SIGNED]
    unsigned = integrity.records_without_digest
    doubts = [f"{unsigned:,} of {integrity.records:,} records are without a signed digest"] if unsigned else []
    return doubts if integrity.verdict == _ANCHORED else [*doubts, _NOT_ANCHORED]


def _signed_share(integrity: Integrity) -> str:
    """How many of the records a signed digest covers, rounded down: 100 % means all."""
    if not integrity.records:
        return ""
    signed = integrity.records - integrity.records_without_digest if integrity.digests else 0
    return f"{1_000 * signed // integrity.records / 10:g} %"


def _freshness(result: AuditResult) -> str:
    """The age of the last digest when the audit was made."""
    at_us = result.integrity.last_digest_at_us
    try:
        audited_us = int(datetime.fromisoformat(result.audited_at).timestamp() * 1_000_000)
    except ValueError:
        return ""
    return duration(audited_us - at_us) if 0 < at_us <= audited_us else ""


def interval_in_words(volumes: Volumes) -> str:
    """The length of an interval: one minute, 5 minutes, one hour."""
    length, noun = next((length, noun) for length, noun in _PERIODS if volumes.interval_s % length == 0)
    number = volumes.interval_s // length
    return f"one {noun}" if number == 1 else f"{number} {noun}s"


def _folders(command: tuple[str, ...]) -> list[str]:
    """The folders of gateways, by the names that the auditor gave."""
    return [value for flag, value in pairwise(command) if flag in ("--data", "--trail", "--parquet")]


def _charts(result: AuditResult) -> tuple[str, str]:
    """Volumes and latencies as SVG; empty where there is nothing to draw."""
    if not result.volumes.intervals and not result.latencies:
        return "", ""
    from spark_audit.report.charts import latencies_chart, volumes_chart

    return volumes_chart(result.volumes), latencies_chart(result.latencies)
