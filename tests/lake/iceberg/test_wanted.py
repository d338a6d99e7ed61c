"""Whether a table has the layout that its dataset asks for, from plain metadata."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.lake.iceberg.wanted import TargetLayout
from polynya.model.config.layout import parse_sort


def field(source: int, direction: str, **more: str) -> dict[str, Any]:
    nulls = "nulls-first" if direction == "asc" else "nulls-last"
    return {"source-id": source, "direction": direction, "transform": "identity",
            "null-order": nulls, **more}  # fmt: skip


def metadata(*fields: dict[str, Any]) -> dict[str, Any]:
    """Of a table that is sorted by these fields now."""
    return {
        "default-spec-id": 2,
        "current-schema-id": 5,
        "schemas": [
            {"schema-id": 4, "fields": []},
            {"schema-id": 5, "fields": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]},
        ],
        "default-sort-order-id": 1,
        "sort-orders": [
            {"order-id": 0, "fields": []},
            {"order-id": 1, "fields": list(fields)},
        ],
    }


def wanted(found: dict[str, Any], *terms: str) -> TargetLayout:
    return TargetLayout.of(found, [parse_sort(term) for term in terms])


def test_files_are_to_have_the_order_that_the_table_has_and_its_dataset_asks_for() -> None:
    table = metadata(field(1, "asc"), field(2, "desc"))

    assert wanted(table, "a", "b desc") == TargetLayout(2, 1)
    for other in [["a"], ["b desc", "a"], ["a", "b"], ["a", "missing desc"], ["zorder(a, b)"], []]:
        assert wanted(table, *other) == TargetLayout(2)


@pytest.mark.parametrize("other", [{"transform": "bucket[4]"}, {"null-order": "nulls-last"}])
def test_an_order_that_is_none_of_ours_is_never_asked_for(other: dict[str, str]) -> None:
    assert wanted(metadata({**field(1, "asc"), **other}), "a") == TargetLayout(2)


def test_no_order_is_asked_for_where_there_is_none() -> None:
    assert wanted(metadata()) == TargetLayout(2)
    assert TargetLayout(2).is_sorted("current", None)
    assert not TargetLayout(2, 1).is_sorted("current", None)
    assert TargetLayout(2, 1).is_sorted("changes", None)
