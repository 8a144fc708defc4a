"""Charts as SVG: lines between points, on two logarithmic axes.

A chart brings its own ground. So it can be read on a page of either theme; where the reader's system is dark, so is it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _BOTTOM = 76, 24, 56
_LEGEND_STEP, _LEGEND_TOP, _LEGEND_COLUMN = 20, 70, 330
_RADIUS: Final = 4

#: Colours of lines that colour-blind readers tell apart too (Okabe and Ito), on a light and on a dark ground.
_STYLE: Final = """\
.ground { fill: #ffffff; stroke: #d0d7de } .grid { stroke: #d8dee4 } text { fill: #1f2328 }
.a { stroke: #0072b2 } .b { stroke: #b34700 } .c { stroke: #007a5a }
.point.a { fill: #0072b2 } .point.b { fill: #b34700 } .point.c { fill: #007a5a }
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117; stroke: #30363d } .grid { stroke: #262c34 } text { fill: #e6edf3 }
.a { stroke: #56b4e9 } .b { stroke: #f0a030 } .c { stroke: #3fc99a }
.point.a { fill: #56b4e9 } .point.b { fill: #f0a030 } .point.c { fill: #3fc99a }
}
text { font: 13px sans-serif } .title { font-size: 15px; font-weight: bold }
.line { fill: none; stroke-width: 2 } .dashed { stroke-dasharray: 6 4 }"""
_COLOURS: Final = "abc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points (x, y), all above 0. Lines of one `colour` (0, 1, 2) belong together; one of them may be dashed."""

    name: str
    colour: int
    points: tuple[tuple[float, float], ...]
    is_dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart, with the names of its axes and their units; `note` stands below the title."""

    title: str
    note: str
    x: str
    y: str
    lines: tuple[Line, ...]


def svg(chart: Chart) -> str:
    """The file."""
    return "\n".join(_elements(chart)) + "\n"


@dataclass(frozen=True, slots=True)
class _Axis:
    """A logarithmic axis: whole decades of values, from one place of the picture to another."""

    first: int
    last: int
    start: float
    end: float

    @property
    def decades(self) -> Iterator[tuple[float, float]]:
        """Value and place of each power of ten."""
        for power in range(self.first, self.last + 1):
            yield 10.0**power, self.place(10.0**power)

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.start + share * (self.end - self.start)


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    first = math.floor(math.log10(min(values)))
    return _Axis(first, max(first + 1, math.ceil(math.log10(max(values)))), start, end)


def _elements(chart: Chart) -> Iterator[str]:
    points = [point for line in chart.lines for point in line.points]
    x = _axis([at for at, _ in points], _LEFT, _WIDTH - _RIGHT)
    y = _axis([at for _, at in points], _HEIGHT - _BOTTOM, _LEGEND_TOP + _LEGEND_STEP * ((len(chart.lines) + 1) // 2))
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">'
    yield f"<title>{escape(chart.title)}</title>"
    yield f"<style>\n{_STYLE}\n</style>"
    yield f'<rect class="ground" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}" rx="6"/>'
    yield f'<text class="title" x="16" y="26">{escape(chart.title)}</text>'
    yield f'<text x="16" y="48">{escape(chart.note)}</text>'
    yield from _grid(x, y)
    across, down = (x.start + x.end) / 2, (y.start + y.end) / 2
    yield f'<text x="{across:.0f}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(chart.x)}</text>'
    yield f'<text transform="translate(18 {down:.0f}) rotate(-90)" text-anchor="middle">{escape(chart.y)}</text>'
    for place, line in enumerate(chart.lines):
        yield from _line(line, x, y)
        yield from _legend(line, place)
    yield "</svg>"


def _grid(x: _Axis, y: _Axis) -> Iterator[str]:
    for value, at in x.decades:
        yield f'<path class="grid" d="M{at:.1f} {y.start:.1f}V{y.end:.1f}"/>'
        yield f'<text x="{at:.1f}" y="{y.start + 18:.1f}" text-anchor="middle">{value:,.7g}</text>'
    for value, at in y.decades:
        yield f'<path class="grid" d="M{x.start:.1f} {at:.1f}H{x.end:.1f}"/>'
        yield f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:,.7g}</text>'


def _line(line: Line, x: _Axis, y: _Axis) -> Iterator[str]:
    places = [(x.place(at), y.place(value)) for at, value in line.points]
    path = "L".join(f"{across:.1f} {down:.1f}" for across, down in places)
    yield f'<path class="line {_classes(line)}" d="M{path}"/>'
    for across, down in places:
        yield f'<circle class="point {_COLOURS[line.colour]}" cx="{across:.1f}" cy="{down:.1f}" r="{_RADIUS}"/>'


def _legend(line: Line, place: int) -> Iterator[str]:
    across = 16 + place % 2 * _LEGEND_COLUMN
    down = _LEGEND_TOP + place // 2 * _LEGEND_STEP
    yield f'<path class="line {_classes(line)}" d="M{across} {down}h28"/>'
    yield f'<text x="{across + 36}" y="{down + 4}">{escape(line.name)}</text>'


def _classes(line: Line) -> str:
    return _COLOURS[line.colour] + (" dashed" if line.is_dashed else "")
