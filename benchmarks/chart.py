"""A chart of lines over two logarithmic axes, as SVG: no library, light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 24, 44, 56
#: Room that is kept for names at the right ends of the lines.
_NAMES = 150
#: Least distance of two names, so that they can be read.
_APART = 15
#: One colour a peer, that is told from the others in light and in dark.
_COLOURS = ("#2f6fed", "#8a8f98", "#e8590c", "#2f9e44", "#9c36b5", "#c2255c", "#0c8599")
_STYLE = """text { font: 12px system-ui, sans-serif; fill: #444; }
.title { font-size: 14px; font-weight: 600; }
.grid { stroke: #e3e5e8; } .axis { stroke: #9aa0a6; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
@media (prefers-color-scheme: dark) { text { fill: #c9cdd2; } .grid { stroke: #33383e; } }"""


@dataclass(frozen=True)
class Line:
    """A series. Lines of one group have one colour; those that are not whole are dashed."""

    name: str
    group: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """An axis: its label, what stands at a tick, and whether it is logarithmic."""

    label: str
    tick: Callable[[float], str]
    logarithmic: bool = True


@dataclass(frozen=True)
class _Scale:
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def __call__(self, value: float) -> float:
        position = math.log10(value) if self.logarithmic else value
        return self.start + (position - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Powers of ten, or whole numbers."""
        steps = range(math.ceil(self.low), math.floor(self.high) + 1)
        return [10.0**k if self.logarithmic else float(k) for k in steps]


def _scale(values: Sequence[float], axis: Axis, start: float, end: float) -> _Scale:
    places = [math.log10(value) if axis.logarithmic else value for value in values]
    low, high = min(places), max(places)
    if axis.logarithmic:
        low, high = math.floor(low), math.ceil(high)
    return _Scale(low, max(high, low + 1), start, end, axis.logarithmic)


def chart(title: str, lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """The picture."""
    right = _WIDTH - _RIGHT - _NAMES
    across = _scale([p[0] for line in lines for p in line.points], x, _LEFT, right)
    up = _scale([p[1] for line in lines for p in line.points], y, _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="{_LEFT}" y="22">{escape(title)}</text>',
        *_grid(across, up, x, y, right),
        *_drawn(lines, across, up),
        *_names(lines, up, right),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(across: _Scale, up: _Scale, x: Axis, y: Axis, right: float) -> list[str]:
    bottom = _HEIGHT - _BOTTOM
    parts = []
    for value in up.ticks():
        at = f"{up(value):.1f}"
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at}" y2="{at}"/>')
        parts.append(_text(_LEFT - 8, up(value) + 4, y.tick(value), "end"))
    for value in across.ticks():
        at = f"{across(value):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(_text(across(value), bottom + 18, x.tick(value), "middle"))
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    parts.append(_text((_LEFT + right) / 2, bottom + 40, x.label, "middle"))
    middle = (_TOP + bottom) / 2
    turned = f'transform="rotate(-90 16 {middle})"'
    parts.append(f'<text x="16" y="{middle}" text-anchor="middle" {turned}>{y.label}</text>')
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _colour(line: Line, lines: Sequence[Line]) -> str:
    groups = list(dict.fromkeys(one.group for one in lines))
    return _COLOURS[groups.index(line.group) % len(_COLOURS)]


def _drawn(lines: Sequence[Line], across: _Scale, up: _Scale) -> list[str]:
    parts = []
    # The first line is drawn last, over the others.
    for line in reversed(lines):
        points = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in line.points)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        colour = _colour(line, lines)
        parts.append(f'<polyline class="line" stroke="{colour}"{dash} points="{points}"/>')
    return parts


def _names(lines: Sequence[Line], up: _Scale, right: float) -> list[str]:
    """The lines' names at their ends, moved apart where they would overlap."""
    parts = []
    ends = sorted(lines, key=lambda line: up(line.points[-1][1]))
    places: list[float] = []
    for line in ends:
        wanted = up(line.points[-1][1]) + 4
        places.append(max(wanted, places[-1] + _APART) if places else wanted)
    # What was pushed below the chart goes up again, with all that is in its way.
    for k in range(len(places) - 1, -1, -1):
        limit = places[k + 1] - _APART if k + 1 < len(places) else _HEIGHT - _BOTTOM + 4
        places[k] = min(places[k], limit)
    for line, place in zip(ends, places, strict=True):
        colour = _colour(line, lines)
        name = escape(line.name)
        parts.append(f'<text x="{right + 8}" y="{place:.1f}" style="fill:{colour}">{name}</text>')
    return parts
