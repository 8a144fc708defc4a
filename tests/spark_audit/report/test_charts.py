"""Charts: small, in the colours of the page, readable aloud, and without a reference to anything outside them."""

import re
from xml.etree import ElementTree

import pytest

from spark_audit.report.charts import latencies_chart, volumes_chart
from spark_audit.result import AuditResult, Latency, Volume, Volumes
from tests.spark_audit.report.conftest import AT

_BUSY = Volumes(
    interval_s=60,
    intervals=tuple(
        Volume(
            at_us=AT + minute * 60_000_000,
            accepted=100 + minute * 7 % 13,
            put=100 + minute * 5 % 11,
            delivered=300 + minute * 3 % 17,
            forwarded=0,
            ended_otherwise=0,
        )
        for minute in range(120)
    ),
)


def test_both_charts_are_whole_elements_of_svg_with_a_title_and_a_description(result: AuditResult) -> None:
    for chart, name in ((volumes_chart(result.volumes), "volumes"), (latencies_chart(result.latencies), "latencies")):
        drawing = ElementTree.fromstring(chart)
        assert drawing.get("role") == "img"
        assert drawing.get("aria-labelledby") == f"{name}-title {name}-description"
        assert [drawing[0].get("id"), drawing[1].get("id")] == [f"{name}-title", f"{name}-description"]
        assert all(element.text for element in drawing[:2])


def test_a_chart_refers_to_itself_alone_and_has_no_style_for_the_page(result: AuditResult) -> None:
    charts = volumes_chart(result.volumes) + latencies_chart(result.latencies)
    assert "http" not in charts
    assert "<style" not in charts
    assert "font-family" not in charts
    references = set(re.findall(r'(?:href="#|url\(#)([^")]+)', charts))
    assert references
    assert references <= set(re.findall(r' id="([^"]+)"', charts))


def test_lines_and_letters_have_the_colour_of_the_text_around(result: AuditResult) -> None:
    charts = volumes_chart(result.volumes) + latencies_chart(result.latencies)
    assert "currentColor" in charts
    assert "#000000" not in charts
    assert "#010203" not in charts


def test_a_busy_chart_is_small_and_drawn_alike_each_time() -> None:
    assert len(volumes_chart(_BUSY)) < 13_000
    assert volumes_chart(_BUSY) == volumes_chart(_BUSY)


def test_kinds_that_do_not_occur_have_no_line() -> None:
    chart = volumes_chart(_BUSY)
    assert ">accepted<" in chart
    assert ">forwarded<" not in chart


def test_the_description_of_latencies_tells_them() -> None:
    row = Latency(step="forwarded after put", qos=-1, count=3, p50_us=800, p90_us=900, p99_us=12_000, max_us=13_000)
    assert "forwarded after put: half within 800 µs, 99 % within 12 ms" in latencies_chart([row])


@pytest.mark.parametrize("at_us", [-1, 2**62], ids=["before 1970", "after every calendar"])
def test_intervals_at_no_time_of_a_gateway_are_not_drawn(at_us: int) -> None:
    volume = Volume(at_us=at_us, accepted=1, put=1, delivered=0, forwarded=0, ended_otherwise=0)
    assert volumes_chart(Volumes(interval_s=60, intervals=(volume,))) == ""


def test_nothing_is_drawn_of_nothing() -> None:
    assert volumes_chart(Volumes()) == ""
    row = Latency(step="delivered after put", qos=0, count=1, p50_us=-5, p90_us=-5, p99_us=-5, max_us=-5)
    assert latencies_chart([]) == latencies_chart([row]) == ""
