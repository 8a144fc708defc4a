"""Volumes and latencies as SVG inside a page: small, readable aloud, and in the colours of the page.

Matplotlib draws. This module removes the parts for a file of its own: prologue, metadata, identifiers, font lists.
Lines and letters have the colour of the text around (currentColor), so they are visible on light and on dark.
"""

import io
import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from spark_audit.report.text import duration
from spark_audit.result import Latency, Volume, Volumes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import RcKeyType

#: The colour that is replaced afterwards. No series has it.
_INK: Final = "#010203"
#: Readable on white and on near-black alike (contrast at least 3 to 1 on both).
_BLUE, _ORANGE, _GREEN, _RED, _VIOLET = "#3b82d6", "#c77d0a", "#2e9e5b", "#e0524d", "#9a6fd0"
_SERIES: Final = (
    ("accepted", _BLUE, "-"),
    ("put", _ORANGE, "--"),
    ("delivered", _GREEN, "-."),
    ("forwarded", _VIOLET, ":"),
    ("ended_otherwise", _RED, "-"),
)
_PERCENTILES: Final = (("50 %", "o", _BLUE), ("90 %", "s", _GREEN), ("99 %", "D", _ORANGE), ("longest", "|", _RED))
_INCHES_WIDE: Final = 7.2
#: So far below the axis the first time does not touch the 0 beside it.
_BELOW_POINTS: Final = 9
_SETTINGS: "Final[dict[RcKeyType, Any]]" = {
    "date.converter": "concise",
    "svg.fonttype": "none",
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "path.simplify": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
#: Matplotlib counts days since 1970; these are microseconds of a day.
_DAY_US: Final = 86_400_000_000
#: The year 9900. An at_us after it, or before 1970, is no time of a gateway.
_LATEST_DAY: Final = 2_896_000


def volumes_chart(volumes: Volumes) -> str:
    """Records by time interval, a line for each kind; "" if there is nothing to draw."""
    intervals = [row for row in volumes.intervals if 0 <= row.at_us < _LATEST_DAY * _DAY_US]
    if not intervals:
        return ""
    total = sum(row.accepted for row in intervals)
    return _drawn(
        lambda axes: _draw_volumes(axes, intervals, volumes.interval_s * 1_000_000),
        name="volumes",
        inches_high=2.6,
        title="Records over time",
        description=f"{len(intervals)} intervals of {volumes.interval_s} seconds, {total} exchanges accepted. "
        "The figures stand in the table below.",
    )


def latencies_chart(latencies: Sequence[Latency]) -> str:
    """Percentiles of each step on a logarithmic scale; "" if there is nothing to draw."""
    drawn = [row for row in latencies if row.max_us > 0]
    if not drawn:
        return ""
    words = "; ".join(
        f"{_step_label(row)}: half within {duration(row.p50_us)}, 99 % within {duration(row.p99_us)}" for row in drawn
    )
    return _drawn(
        lambda axes: _draw_latencies(axes, drawn[::-1]),
        name="latencies",
        inches_high=0.9 + 0.42 * len(drawn),
        title="How long each step took",
        description=words,
    )


def _draw_volumes(axes: "Axes", intervals: Sequence[Volume], step_us: int) -> None:
    times, places = _filled(intervals, step_us)
    days = [at_us / _DAY_US for at_us in times]
    for name, colour, style in _SERIES:
        counts = [getattr(place, name) if place else 0 for place in places]
        if any(counts):
            label = name.replace("_", " ")
            axes.plot(days, counts, style, color=colour, label=label, linewidth=1.8, drawstyle="steps-post")
    axes.xaxis_date()
    axes.tick_params(axis="x", pad=_BELOW_POINTS)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("records")
    if axes.lines:
        axes.legend(frameon=False, ncols=5, loc="lower left", bbox_to_anchor=(0, 1), fontsize=9, handlelength=1.6)


def _filled(intervals: Sequence[Volume], step_us: int) -> tuple[list[int], list[Volume | None]]:
    """Starts of intervals and their counts. A gap begins with an empty interval, and the last one has its end."""
    times: list[int] = []
    places: list[Volume | None] = []
    for row in intervals:
        if times and row.at_us > times[-1] + step_us:
            times.append(times[-1] + step_us)
            places.append(None)
        times.append(row.at_us)
        places.append(row)
    return [*times, times[-1] + step_us], [*places, places[-1]]


def _draw_latencies(axes: "Axes", rows: Sequence[Latency]) -> None:
    for place, row in enumerate(rows):
        points = [max(value, 1) / 1_000 for value in (row.p50_us, row.p90_us, row.p99_us, row.max_us)]
        axes.plot(points, [place] * len(points), color=_INK, linewidth=0.8, alpha=0.5)
        for point, (label, marker, colour) in zip(points, _PERCENTILES, strict=True):
            axes.plot([point], [place], marker, color=colour, markersize=7, label="" if place else label)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda milliseconds, _place: duration(round(milliseconds * 1_000)))
    axes.minorticks_off()
    axes.set_yticks(range(len(rows)), [_step_label(row) for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.legend(frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1), fontsize=9, handlelength=1)


def _step_label(row: Latency) -> str:
    return f"{row.step}, QoS {row.qos}" if row.qos >= 0 else row.step


def _drawn(draw: "Callable[[Axes], None]", *, name: str, inches_high: float, title: str, description: str) -> str:
    """One drawing. `name` makes its identifiers unique on the page."""
    import matplotlib
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": name}):
        figure = Figure(figsize=(_INCHES_WIDE, inches_high), layout="constrained")
        axes = figure.add_subplot()
        axes.grid(color=_INK, alpha=0.12, linewidth=0.6)
        draw(axes)
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    return _embedded(buffer.getvalue(), name, title, description)


def _embedded(drawing: str, name: str, title: str, description: str) -> str:
    """Matplotlib's file as an element of a page."""
    body = drawing[drawing.index(">", drawing.index("<svg")) + 1 :]
    view_box = re.search(r'viewBox="[-0-9. ]+"', drawing)
    assert view_box is not None, "Matplotlib writes a viewBox"
    body = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", body, flags=re.DOTALL)
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r' id="[a-z_]+[0-9]*\.?[a-z_]*_[0-9]+"', "", body)
    body = re.sub(r"font-family: [^;\"]*; ?|; stroke-(?:linecap|linejoin): [a-z]+", "", body)
    body = re.sub(r'<path d="[^"]*"(?: clip-path="[^"]*")? style="fill: none"/>', "", body)  # empty backgrounds
    body = re.sub(r"(?<![0-9#a-z])-?[0-9]+\.[0-9]+", _shortened, body)
    body = re.sub(r' d="M ([-0-9. ]+(?:\sL [-0-9. ]+)+)\s*"', _shorter_path, body)
    body = body.replace("xlink:href", "href").replace(_INK, "currentColor")
    body = re.sub(r"\s+", " ", re.sub(r">\s+<", "><", body))
    body = body.replace("<g></g>", "").replace("<defs></defs>", "")
    opening = (
        f'<svg {view_box[0]} role="img" aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-description">{escape(description)}</desc>'
    )
    return opening + body.strip()


def _shortened(number: re.Match[str]) -> str:
    """Rounds numbers to a tenth of a point, which is finer than a screen shows."""
    return f"{float(number[0]):.1f}".removesuffix(".0")


def _shorter_path(path: re.Match[str]) -> str:
    """The same line, with one number for each piece along an axis, because most of a chart is steps."""
    points = [tuple(point.split()) for point in path[1].split("L ")]
    words = [f"M{' '.join(points[0])}"]
    for (x, y), (next_x, next_y) in pairwise(points):
        words.append(f"H{next_x}" if next_y == y else f"V{next_y}" if next_x == x else f"L{next_x} {next_y}")
    return f' d="{"".join(words)}"'
