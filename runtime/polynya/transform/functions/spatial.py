"""Functions of shapes in OGC's text form (WKT): whether a point is in an area.

The algorithm is ray casting: the edges that a ray from the point crosses are counted, and the point
is inside where their number is odd. Edges of a literal area are computed when the call is compiled.
Edges of any other area are read for each row, by the same pattern and with the same result.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from polynya.model.names import literal
from polynya.model.types import BOOLEAN, DOUBLE, INT, STRING, Array, Struct
from polynya.transform.functions.coerce import text
from polynya.transform.functions.core import (
    Build,
    ExpressionContext,
    Value,
    function,
    item,
    let,
    null,
)

#: x and y of the first end, x and y of the second.
Edge: TypeAlias = tuple[float, float, float, float]
_EDGES: Final = Array(Struct(tuple((name, DOUBLE) for name in "abcd")))

_NUMBER: Final = r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_POINT: Final = rf"(?i)^\s*POINT\s*\(\s*({_NUMBER})\s+({_NUMBER})\s*\)\s*$"
#: Nothing is tried twice, which is quick and takes no stack, however long an area is.
_PAIR: Final = rf"\s*+{_NUMBER}\s++{_NUMBER}\s*+"
_RING: Final = rf"\s*+\({_PAIR}(?:,{_PAIR})*+\)\s*+"
_RINGS: Final = rf"\s*+\({_RING}(?:,{_RING})*+\)\s*+"
_AREA: Final = rf"(?i)^\s*+(?:POLYGON{_RINGS}|MULTIPOLYGON\s*+\({_RINGS}(?:,{_RINGS})*+\)\s*+)$"
_IS_AREA: Final = re.compile(_AREA, re.ASCII)
#: A ring in one: it has no brackets inside.
_IN_BRACKETS: Final = r"\(([^()]*)\)"
_HIGHEST: Final = f"{sys.float_info.max!r}D"


def edges_of(area: str) -> list[Edge] | None:
    """The edges of a polygon or of several, holes among them; None for anything but an area."""
    if not _IS_AREA.fullmatch(area):
        return None
    edges: list[Edge] = []
    for ring in re.findall(_IN_BRACKETS, area):
        numbers = [float(number) for number in re.split(r"[\s,]+", ring.strip())]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        if len(points) < 4 or points[0] != points[-1] or not all(map(math.isfinite, numbers)):
            return None
        edges += _between(points)
    return edges


def _between(points: Sequence[tuple[float, float]]) -> Iterator[Edge]:
    for (x, y), (to_x, to_y) in pairwise(points):
        yield x, y, to_x, to_y


def _judged(judge: Callable[[str, str], str]) -> Build:
    """A function of whether a point is inside of an area, and whether it is on its edge."""

    def build(values: Sequence[Value], _: ExpressionContext) -> Value:
        area, point = values[0], text(values[1])
        if area.constant is None:
            edges = let("g", text(area), _edges_in_rows)
            return Value(
                let("s", Value(edges, _EDGES), lambda one: _verdict(judge, one, point)), BOOLEAN
            )
        constant_edges = edges_of(area.constant)
        if constant_edges is None:
            return null(BOOLEAN)
        listed = ", ".join(
            f"named_struct('a', {a!r}D, 'b', {b!r}D, 'c', {c!r}D, 'd', {d!r}D)"
            for a, b, c, d in constant_edges
        )
        return Value(_verdict(judge, Value(f"array({listed})", _EDGES), point), BOOLEAN)

    return build


def _verdict(judge: Callable[[str, str], str], edges: Value, point: Value) -> str:
    """The verdict on a point, NULL where there is no point or no area."""

    def of_place(x: Value, y: Value) -> str:
        answer = judge(*_inside_and_edge(edges.sql, x.sql, y.sql))
        return f"IF({x.sql} IS NULL OR {y.sql} IS NULL, NULL, {answer})"

    def of_point(point: Value) -> str:
        x, y = (
            Value(
                f"TRY_CAST(regexp_extract({point.sql}, {literal(_POINT)}, {n}) AS DOUBLE)",
                DOUBLE,
            )
            for n in (1, 2)
        )
        return let("x", x, lambda one: let("y", y, lambda two: of_place(one, two)))

    return let("p", point, of_point)


def _edges_in_rows(area: Value) -> str:
    """SQL of what `edges_of` gives, of an area that is not known here."""
    ring, numbers, at = item("r", STRING).sql, item("n", Array(DOUBLE)), item("i", INT).sql
    coordinate = item("v", DOUBLE).sql

    def number(index: str) -> str:
        return f"get({numbers.sql}, {index})"

    points = f"(array_size({numbers.sql}) DIV 2)"
    first_is_last = " AND ".join(
        f"{number(str(axis))} = {number(f'2 * {points} - {2 - axis}')}" for axis in (0, 1)
    )
    is_finite = f"forall({numbers.sql}, {coordinate} -> abs({coordinate}) <= {_HIGHEST})"
    ends = ", ".join(f"'{name}', {number(f'2 * {at} + {n}')}" for n, name in enumerate("abcd"))
    edges = f"transform(sequence(0, {points} - 2), {at} -> named_struct({ends}))"
    of_ring = f"IF({points} >= 4 AND {first_is_last} AND {is_finite}, {edges}, NULL)"
    sides = (
        f"transform(regexp_extract_all({ring}, {literal(_NUMBER)}, 0), "
        f"{coordinate} -> TRY_CAST({coordinate} AS DOUBLE))"
    )
    rings = f"regexp_extract_all({area.sql}, {literal(_IN_BRACKETS)}, 1)"
    read = let("n", Value(sides, numbers.kind), lambda _: of_ring)
    whole = f"flatten(transform({rings}, {ring} -> {read}))"
    return f"IF({area.sql} RLIKE {literal(_AREA)}, {whole}, NULL)"


def _inside_and_edge(edges: str, x: str, y: str) -> tuple[str, str]:
    e = item("e", DOUBLE).sql
    crossed = (
        f"({e}.b > {y}) <> ({e}.d > {y}) "
        f"AND {x} < ({e}.c - {e}.a) * ({y} - {e}.b) / ({e}.d - {e}.b) + {e}.a"
    )
    touched = (
        f"({e}.c - {e}.a) * ({y} - {e}.b) = ({e}.d - {e}.b) * ({x} - {e}.a) "
        f"AND {x} BETWEEN least({e}.a, {e}.c) AND greatest({e}.a, {e}.c) "
        f"AND {y} BETWEEN least({e}.b, {e}.d) AND greatest({e}.b, {e}.d)"
    )
    inside = f"array_size(filter({edges}, {e} -> {crossed})) % 2 = 1"
    return inside, f"array_size(filter({edges}, {e} -> {touched})) > 0"


FUNCTIONS = (
    function(
        "wkt_spatial_contains", "area point",
        _judged(lambda inside, edge: f"{inside} AND NOT {edge}"),
        """Whether a point is in an area and not on its edge. The area is a `POLYGON` or
        `MULTIPOLYGON`, with holes if it has some; anything else gives NULL. A
        literal is read once, a column in each row.""",
        "wkt_spatial_contains('POLYGON((-10 30, -40 40, -10 -20, 40 20, 0 0, -10 30))',"
        " 'POINT(10 0)') -> true",
        "wkt_spatial_contains('POLYGON((-10 30, -40 40, -10 -20, 40 20, 0 0, -10 30))',"
        " 'POINT(15 0)') -> false",
        "wkt_spatial_contains('POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (2 2, 4 2, 4 4, 2 4, 2 2))',"
        " 'POINT(3 3)') -> false",
        "wkt_spatial_contains('POLYGON((0 0, 9 0, 9 9, 0 0))', 'LINESTRING(0 0, 1 1)') -> null",
        "wkt_spatial_contains(concat('POLYGON', '((0 0, 9 0, 9 9, 0 0))'), 'POINT(8 1)')"
        " -> true",
        "wkt_spatial_contains(concat('POLYGON', '((0 0, 9 0, 9 9))'), 'POINT(8 1)') -> null",
    ),
    function(
        "wkt_spatial_intersect", "area point",
        _judged(lambda inside, edge: f"({inside} OR {edge})"),
        "Whether a point is in an area or on its edge; see `wkt_spatial_contains`.",
        "wkt_spatial_intersect('POLYGON((-10 30, -40 40, -10 -20, 40 20, 0 0, -10 30))',"
        " 'POINT(10 0)') -> true",
        "wkt_spatial_intersect('POLYGON((0 0, 9 0, 9 9, 0 0))', 'POINT(9 5)') -> true",
        "wkt_spatial_intersect('POLYGON((0 0, 9 0, 9 9, 0 0))', 'POINT(0 9)') -> false",
    ),
)  # fmt: skip
