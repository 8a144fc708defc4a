"""report.html: the verdict first, hostile text harmless, bytes marked where they differ, nothing from elsewhere."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from spark_audit.audit import not_evaluable
from spark_audit.report import html
from spark_audit.report.page import interval_in_words
from spark_audit.result import AuditResult, Integrity, Subject, Verdict, Volumes
from tests.spark_audit.report.conftest import AT, HOSTILE, HOUR_US, RESTORED

#: As the page shows the hostile text: escaped for HTML, and what turns or hides spelled out.
SHOWN = "&lt;/td&gt;&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;\\u001b[31m{{ 7 * 7 }} ]]&gt; \\u202egnp.exe"


class Outline(HTMLParser):
    """The elements of a page, with what each refers to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.references: list[str] = []
        self.open: list[str] = []
        self.headings: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        self.open.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)
            self.open.pop()


def test_what_strangers_wrote_is_escaped_and_steers_nothing(result: AuditResult) -> None:
    page = html(result)
    assert page.count(SHOWN) >= 12
    assert HOSTILE not in page
    assert all(character.isprintable() or character == "\n" for character in page)


def test_the_page_has_one_script_allowed_by_its_hash_and_refers_to_nothing_outside(result: AuditResult) -> None:
    page = html(result)
    outline = Outline(page)
    assert not outline.tags & {"link", "img", "iframe", "object", "embed", "form", "base", "audio", "video"}
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}';" in page
    assert page.count("<script") == page.count("script-src") == 1
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|fetch|XMLHttp|import\(", script)
    assert outline.references
    assert all(reference.startswith("#") for reference in outline.references)
    assert not re.search(r"https?:|javascript:(?!x)|@import|url\((?!#)", page)
    assert "default-src 'none'; script-src 'sha256-" in page
    assert "'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">" in page


def test_no_element_has_a_handler_and_no_two_have_one_identifier(result: AuditResult) -> None:
    page = html(result)
    assert not re.search(r"<[^>]* on[a-z]+=", page)
    identifiers = re.findall(r' id="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


def test_the_verdict_comes_first_and_the_sections_in_the_order_of_the_questions(result: AuditResult) -> None:
    assert Outline(html(result)).headings == [
        "violations",
        "Summary",
        "Scope and completeness",
        "Integrity",
        "Controls",
        "Findings",
        "Conversions performed again",
        "Quality of service",
        "Volumes",
        "Latency",
        "Method, versions and limits",
    ]


def test_the_first_byte_that_differs_is_marked_on_both_sides(result: AuditResult) -> None:
    page = html(result)
    assert "byte 80 is 63, 62 was expected" in page
    assert "<mark>63</mark> 3c 2f 54 6f 70 69 63" in page
    assert "<mark>62</mark> 3c 2f 54 6f 70 69 63" in page
    assert "<mark>c</mark>&lt;/Topic" in page


def test_bytes_that_go_on_where_the_end_was_expected_are_marked_alone(result: AuditResult) -> None:
    page = html(result)
    assert "byte 40,000 is 6e, the end was expected" in page
    assert "… 39,936 bytes before" in page


def test_a_long_topic_is_cut_and_its_length_told(result: AuditResult) -> None:
    page = html(result)
    assert "(65,000 characters)" in page
    assert "long/" * 60 not in page
    assert len(page) < 150_000


def test_findings_that_are_not_shown_are_counted_and_their_place_named(result: AuditResult) -> None:
    page = html(result)
    assert "Shown are the first 3. All of them are in exceptions.parquet." in page
    assert "qos.1: 81,234 findings" in page


def test_a_control_tells_its_parameters_or_why_it_did_not_judge(result: AuditResult) -> None:
    page = html(result)
    assert "With grace_s = 60 s, from_start = yes" in page
    assert '<td class="word open">not evaluable</td>' in page
    assert '<td class="word open">off</td>' in page
    assert '<td class="word open">warning</td>' in page


def test_the_command_that_repeats_the_audit_can_be_pasted_into_a_shell(result: AuditResult) -> None:
    assert "rfhbridge audit run --data &#x27;it&#x27;&quot;&#x27;&quot;&#x27;s here&#x27;" in html(result)


def test_the_policy_is_shown_line_by_line_and_as_harmless_as_all_else(result: AuditResult) -> None:
    page = html(result)
    assert "<bdi>[scope]</bdi>\n<bdi>topics = [&quot;plant/#&quot;]  # &lt;/td&gt;&lt;script&gt;" in page
    assert "<h3>The policy</h3>" not in html(replace(result, policy_text=""))


def test_a_long_policy_is_cut_and_what_is_left_out_counted(result: AuditResult) -> None:
    page = html(replace(result, policy_text="".join(f"# line {number}\n" for number in range(1, 503))))
    assert "<bdi># line 500</bdi>" in page
    assert "<bdi># line 501</bdi>" not in page
    assert "… 2 lines more, in result.json" in page


@pytest.mark.parametrize("verdict", ["anchored", "consistent, not anchored", "violated", "not evaluable"])
def test_integrity_is_told_in_the_words_of_the_check(result: AuditResult, verdict: str) -> None:
    page = html(replace(result, integrity=Integrity(verdict=verdict, records=1, anchors=("public key",))))
    assert f"<bdi>{verdict}</bdi></strong>" in page
    assert "<td><bdi>public key</bdi></td>" in page


def test_a_gap_that_the_trail_tells_is_amber_until_a_policy_names_it(result: AuditResult) -> None:
    page = html(replace(result, integrity=RESTORED))
    assert '<strong class="gap"><bdi>restored</bdi></strong>' in page
    assert '<span class="gap"><bdi>restored at 2026-11-20T07:00:00Z, batches 1 to 4 missing</bdi></span>' in page
    assert f'<code>record = "<bdi>{"ef" * 32}</bdi>"</code>' in page
    assert '<span class="good"><bdi>restored at 2026-11-19T07:00:00Z</bdi></span>' in page
    assert "Gaps that the trail tells" not in html(result)


def test_a_result_without_controls_has_a_page_that_says_why() -> None:
    page = html(not_evaluable("the trail is empty"))
    assert Outline(page).headings == [
        "not evaluable",
        "Summary",
        "Scope and completeness",
        "Integrity",
        "Method, versions and limits",
    ]
    assert "<bdi>the trail is empty</bdi>" in page
    assert '<header class="open">' in page


SIGNED = Integrity(
    verdict="anchored",
    anchors=("public key",),
    records=1_000,
    digests=3,
    last_digest_at_us=AT + 2 * HOUR_US,
)
RESERVATIONS = {
    "not checked": (Integrity(), "the files of the trail were not checked"),
    "nothing signed": (replace(SIGNED, digests=0, records_without_digest=1_000), "no record is signed"),
    "some not signed": (replace(SIGNED, records_without_digest=1), "1 of 1,000 records are without a signed digest"),
    "not anchored": (
        replace(SIGNED, verdict="consistent, not anchored"),
        "the files were held against nothing from elsewhere",
    ),
}


def test_clean_over_signed_and_anchored_evidence_is_green(result: AuditResult) -> None:
    page = html(replace(result, verdict=Verdict.CLEAN, integrity=SIGNED))
    assert '<header class="good">\n<h1>clean</h1>' in page
    assert "Reservation" not in page


@pytest.mark.parametrize("name", RESERVATIONS)
def test_clean_over_weaker_evidence_is_amber_and_says_why(result: AuditResult, name: str) -> None:
    integrity, words = RESERVATIONS[name]
    page = html(replace(result, verdict=Verdict.CLEAN, integrity=integrity))
    assert '<header class="open">\n<h1>clean, with reservations</h1>' in page
    assert f"Reservation: {words}" in page
    assert '<header class="bad">' in html(replace(result, integrity=integrity))


def test_an_archive_has_no_signatures_and_no_reservation(result: AuditResult) -> None:
    archive = replace(result, verdict=Verdict.CLEAN, subject=Subject.ARCHIVE, integrity=Integrity())
    assert '<header class="good">\n<h1>clean</h1>' in html(archive)


def _fact(page: str, name: str) -> str:
    (cell,) = re.findall(rf'<tr><th scope="row">{name}</th><td>(.*?)</td></tr>', page, re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", cell)).strip()


def test_the_summary_tells_period_gateways_signatures_freshness_and_who_asked(result: AuditResult) -> None:
    partly = replace(SIGNED, records_without_digest=3)
    page = html(replace(result, integrity=partly, auditor="ann@desk"))
    summary = page[page.index('id="summary"') : page.index('id="scope"')]
    told = {name: _fact(summary, name) for name in ("Period", "Signed", "Anchored", "Freshness", "Audited")}
    assert told == {
        "Period": "2026-11-20 07:00:00.000Z to 2026-11-20 08:00:00.000Z",
        "Signed": "99.7 % of 1000 records",
        "Anchored": "by the public key",
        "Freshness": "last digest of 2026-11-20 09:00:00.000Z, 71 min before the audit",
        "Audited": "2026-11-20T10:11:12+00:00 by ann@desk , with rfhbridge 0.1.0",
    }
    assert _fact(summary, "Gateways").endswith("Read from it&#x27;s here")
    assert _fact(summary, "Policy").startswith("policy.toml SHA-256 1212")
    assert "violated" in _fact(summary, "Controls")


def test_a_digest_after_the_audit_tells_no_freshness(result: AuditResult) -> None:
    page = html(replace(result, integrity=replace(SIGNED, last_digest_at_us=AT + 9 * HOUR_US)))
    assert "before the audit" not in page


def test_each_source_leads_to_its_document(result: AuditResult) -> None:
    page = html(result)
    assert '<a href="#source-ac10850">QoS levels and flows (ac10850_)</a>' in page
    assert '<li id="source-ac10850">IBM WebSphere Message Broker V6 documentation' in page


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(60, "one minute"), (300, "5 minutes"), (3_600, "one hour"), (172_800, "2 days"), (7, "7 seconds")],
)
def test_an_interval_is_told_in_words(seconds: int, words: str) -> None:
    assert interval_in_words(Volumes(interval_s=seconds)) == words
