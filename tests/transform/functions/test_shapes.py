"""Areas as text: which are read, and which are none."""

from __future__ import annotations

import pytest

from polynya.transform.functions.spatial import edges_of


def test_the_edges_of_all_rings_are_read() -> None:
    hole = "(5.5 5.2,5.6 5.2,5.6 5.3,5.5 5.2)"
    area = f"multipolygon (((0 0, 1 0, 1 1, 0 0)), ((5 5,6 5,6 6,5 5),{hole}))"

    edges = edges_of(area)

    assert edges is not None
    assert len(edges) == 9
    assert edges[:2] == [(0, 0, 1, 0), (1, 0, 1, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "POINT(1 1)",
        "POLYGON EMPTY",
        "POLYGON((0 0, 1 0, 0 0))",
        "POLYGON((0 0, 1 0, 1 1, 0 1))",
        "POLYGON((0 0, 1e999 0, 1 1, 0 0))",
        "POLYGON((0 0, 1 0, 1 1, 0 0)",
        "POLYGON((0 0 0, 1 0 0, 1 1 0, 0 0 0))",
        "POLYGON(((0 0, 1 0, 1 1, 0 0)))",
    ],
)
def test_what_is_no_area_has_no_edges(text: str) -> None:
    assert edges_of(text) is None
