"""A chart as SVG: lines through medians, and the range of each. It draws numbers and knows none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import Final

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 230, 50, 90
_LETTER, _LINE = 7, 16
#: Colours that people who do not see all of them can tell apart, the first one for us.
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_INK, _GRID = "#333333", "#dddddd"


class Scale(StrEnum):
    """How values become places; `EVEN` puts all values that occur at the same distance."""

    LINEAR = "linear"
    LOG = "log"
    EVEN = "even"


@dataclass(frozen=True, slots=True)
class Axis:
    """The title of an axis, its scale, and how values are written on it."""

    title: str
    scale: Scale
    text: Callable[[float], str] = "{:g}".format


@dataclass(frozen=True, slots=True)
class Spot:
    """A value at a place of the x-axis, and its range."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Line:
    """The values of one contender, from left to right."""

    name: str
    spots: Sequence[Spot]


@dataclass(frozen=True, slots=True)
class Mark:
    """A value that is drawn across the chart, such as a goal."""

    name: str
    y: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart; `notes` are lines below it."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    marks: Sequence[Mark] = ()
    notes: Sequence[str] = ()

    def svg(self) -> str:
        """The chart as a document in SVG."""
        height = _HEIGHT + _LINE * len(self.notes)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12" '
            f'fill="{_INK}">'
        )
        parts = [
            head,
            f"<title>{escape(self.title)}</title>",
            f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
            _text(_LEFT, 26, self.title, 'font-size="15" font-weight="bold"'),
            *self._grid(),
            *self._drawn_lines(),
        ]
        for number, note in enumerate(self.notes):
            y = _HEIGHT - 14 + _LINE * number
            parts.append(_text(_LEFT, y, note, 'font-size="11" fill="#666666"'))
        return "\n".join([*parts, "</svg>", ""])

    def _xs(self) -> list[float]:
        return sorted({spot.x for line in self.lines for spot in line.spots})

    def _ys(self) -> list[float]:
        spots = [spot for line in self.lines for spot in line.spots]
        return [y for spot in spots for y in (spot.low, spot.high)] + [m.y for m in self.marks]

    def _place_x(self, x: float) -> float:
        width, xs = _WIDTH - _LEFT - _RIGHT, self._xs()
        # A little away from the axis.
        return _LEFT + 14 + _share(x, self.x.scale, xs, xs[0], xs[-1]) * (width - 28)

    def _place_y(self, y: float) -> float:
        ticks = self._ticks()
        share = _share(y, self.y.scale, ticks, ticks[0], ticks[-1])
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def _ticks(self) -> list[float]:
        return ticks(min(self._ys()), max(self._ys()), self.y.scale)

    def _grid(self) -> Iterator[str]:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        for value in self._ticks():
            y = self._place_y(value)
            yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="{_GRID}"/>'
            yield _text(_LEFT - 8, y + 4, self.y.text(value), 'text-anchor="end"')
        yield f'<path d="M{_LEFT} {bottom}H{right}" stroke="{_INK}"/>'
        for value in self._xs():
            x = self._place_x(value)
            yield f'<path d="M{x:.1f} {bottom}v5" stroke="{_INK}"/>'
            yield _text(x, bottom + 19, self.x.text(value), 'text-anchor="middle"')
        middle = (_LEFT + right) / 2
        yield _text(middle, bottom + 40, self.x.title, 'text-anchor="middle"')
        yield _text(_LEFT - 60, _TOP - 10, self.y.title)
        for mark in self.marks:
            y = self._place_y(mark.y)
            yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="{_INK}" stroke-dasharray="5 4"/>'
            yield _text(right - 4, y - 5, mark.name, 'text-anchor="end" fill="#666666"')

    def _drawn_lines(self) -> Iterator[str]:
        names = spread([self._place_y(line.spots[-1].y) for line in self.lines], _LINE)
        for number, (line, name_y) in enumerate(zip(self.lines, names, strict=True)):
            colour = _COLOURS[number % len(_COLOURS)]
            places = [(self._place_x(one.x), self._place_y(one.y)) for one in line.spots]
            path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
            width = 3 if number == 0 else 1.5
            yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
            for spot, (x, y) in zip(line.spots, places, strict=True):
                low, high = self._place_y(spot.low), self._place_y(spot.high)
                yield f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}"/>'
                what = f"{line.name}, {self.x.text(spot.x)}: {self.y.text(spot.y)}"
                yield (
                    f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}">'
                    f"<title>{escape(what)}</title></circle>"
                )
            x, y = places[-1]
            yield (
                f'<path d="M{x + 6:.1f} {y:.1f}L{_WIDTH - _RIGHT + 4} {name_y:.1f}" '
                f'stroke="{colour}" stroke-width="0.5"/>'
            )
            yield _text(_WIDTH - _RIGHT + 8, name_y + 4, line.name, f'fill="{colour}"')


def ticks(low: float, high: float, scale: Scale) -> list[float]:
    """Round values from below the lowest to above the highest one, at least two."""
    if scale is Scale.LOG:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        steps = [m * 10.0**power for power in range(first, last + 1) for m in (1, 2, 5)]
        inside = [one for one in steps if low < one < high]
        below = max(one for one in steps if one <= low)
        above = min((one for one in steps if one >= high), default=10.0 ** (last + 1))
        return sorted({below, *inside, above if above > below else 2 * below})
    size = 10.0 ** math.floor(math.log10(high or 1))
    step = next(size * m for m in (0.1, 0.2, 0.25, 0.5, 1, 2) if high / (size * m) <= 6)
    return [step * number for number in range(max(1, math.ceil(high / step)) + 1)]


def spread(places: Sequence[float], distance: float) -> list[float]:
    """The places, moved downwards where two are nearer to each other than a distance."""
    found = dict.fromkeys(range(len(places)), 0.0)
    last = -math.inf
    for number in sorted(found, key=lambda number: places[number]):
        found[number] = last = max(places[number], last + distance)
    return list(found.values())


def _share(value: float, scale: Scale, known: Sequence[float], low: float, high: float) -> float:
    """Where between the lowest and the highest value one is: 0 to 1."""
    if len(known) < 2:
        return 0.5
    match scale:
        case Scale.EVEN:
            return known.index(value) / (len(known) - 1)
        case Scale.LOG:
            return math.log(value / low) / math.log(high / low)
        case Scale.LINEAR:
            return (value - low) / (high - low)


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'
