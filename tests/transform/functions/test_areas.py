"""Areas in a column: what is said of a point is what is said with the same area as a literal."""

from __future__ import annotations

import random
from collections.abc import Iterator

from polynya.lake.copy.mapped_values import place_of
from polynya.lake.spark.api import SparkSession
from polynya.model.names import literal
from polynya.model.types import STRING
from polynya.transform.expressions import expression_over
from polynya.transform.functions.spatial import edges_of

NAMES = ("wkt_spatial_contains", "wkt_spatial_intersect")
GRID = 4


def number(chance: random.Random) -> str:
    """A number of a small grid, in one of its spellings."""
    value = chance.randint(-GRID, GRID)
    return chance.choice([f"{value}", f"{value}.0", f"{value}e0", f"{value}."])


def ring(chance: random.Random) -> str:
    corners = [f"{number(chance)} {number(chance)}" for _ in range(chance.randint(3, 7))]
    return f"({', '.join([*corners, corners[0]])})"


def rings(chance: random.Random) -> str:
    return f"({' , '.join(ring(chance) for _ in range(chance.randint(1, 3)))})"


def area(chance: random.Random) -> str:
    """An area, which is damaged now and then."""
    if chance.random() < 0.5:
        text = f"polygon {rings(chance)}"
    else:
        text = f"MULTIPOLYGON({','.join(rings(chance) for _ in range(chance.randint(1, 3)))})"
    while chance.random() < 0.3:
        at = chance.randrange(len(text))
        text = (
            text[:at] + chance.choice(["", ",", "(", ")", " ", "x", "\n", "1e999"]) + text[at + 1 :]
        )
    return text


def told(text: str, x: float, y: float) -> tuple[bool | None, bool | None]:
    """Whether a point is inside and not on the edge, and whether it is inside or on the edge."""
    edges = edges_of(text)
    if edges is None:
        return None, None
    crossed = [(b > y) != (d > y) and x < (c - a) * (y - b) / (d - b) + a for a, b, c, d in edges]
    touched = [
        (c - a) * (y - b) == (d - b) * (x - a)
        and min(a, c) <= x <= max(a, c)
        and min(b, d) <= y <= max(b, d)
        for a, b, c, d in edges
    ]
    inside, on_edge = sum(crossed) % 2 == 1, any(touched)
    return inside and not on_edge, inside or on_edge


def given() -> Iterator[tuple[str, float, float]]:
    chance = random.Random(18)
    for _ in range(600):
        yield area(chance), chance.randint(-GRID, GRID), chance.randint(-GRID, GRID) / 2
    corners = ", ".join(f"{at} {at % 7}" for at in range(20_000))
    yield f"POLYGON(({corners}, 0 9, 0 0))", 3, 1
    yield f"POLYGON(({corners}, 0 9, 0 1))", 3, 1


def test_an_area_in_a_column_is_read_as_a_literal_is(spark: SparkSession) -> None:
    cases = list(given())
    rows = spark.createDataFrame(
        [(at, text, f"POINT({x} {y})") for at, (text, x, y) in enumerate(cases)],
        "id INT, shape STRING, point STRING",
    )
    place, types = place_of(rows, row="CAST(id AS STRING)"), {"shape": STRING, "point": STRING}
    calls = [expression_over(f"{name}(shape, point)", types, place=place) for name in NAMES]
    # The first ones as literals, too, each with its own point.
    few = [
        expression_over(f"{name}({literal(cases[at][0])}, point)", types, place=place)
        for at in range(8)
        for name in NAMES
    ]

    found = rows.selectExpr(*calls, *few).orderBy("id").collect()

    expected = [told(*one) for one in cases]
    assert [(row[0], row[1]) for row in found] == expected
    assert [found[at][2 + 2 * at : 4 + 2 * at] for at in range(8)] == expected[:8]
    assert {(None, None), (True, True), (False, True), (False, False)} == set(expected)
