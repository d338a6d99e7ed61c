"""Processors over random tables: what they say of themselves, computed here in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.derived.flow import compile_flow
from polynya.derived.schema import DerivedInput
from polynya.model.config.flow import FlowStep
from tests.derived.flow_tables import Table, answered

SMALL = st.one_of(st.none(), st.integers(0, 3))
QUICK = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def result(steps: list[dict[str, Any]], tables: Mapping[str, Table]) -> list[tuple[Any, ...]]:
    inputs = {name: DerivedInput(name, table.columns, table.keys) for name, table in tables.items()}
    flow = compile_flow([FlowStep.model_validate(step) for step in steps], inputs, str)
    return answered(flow.sql, tables)


def bag(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(rows)


@QUICK
@given(
    rows=st.lists(st.tuples(SMALL, SMALL), max_size=8),
    keep=st.sampled_from(["latest", "first"]),
)
def test_dedupe_keeps_the_extreme_row_of_each_key(
    rows: list[tuple[int | None, int | None]], keep: str
) -> None:
    numbered = [(number, *row) for number, row in enumerate(rows)]
    table = Table({"id": "int", "k": "int", "at": "int"}, numbered, ("id",))
    dedupe = {"input": "t", "keys": ["k"], "keep": keep, "order": ["at", "id"]}

    found = result([{"dedupe": dedupe}], {"t": table})

    def place(row: tuple[Any, ...]) -> tuple[bool, int, int]:
        """NULL after all others, then by the order; the smallest is kept."""
        sign = -1 if keep == "latest" else 1
        return row[2] is None, sign * (row[2] or 0), sign * row[0]

    kept: dict[Any, tuple[Any, ...]] = {}
    for row in numbered:
        kept[row[1]] = min(kept.get(row[1], row), row, key=place)
    assert bag(found) == bag(list(kept.values()))


@QUICK
@given(
    one=st.lists(st.tuples(SMALL, SMALL), max_size=6),
    other=st.lists(st.tuples(SMALL, st.sampled_from(["x", None])), max_size=6),
)
def test_a_union_keeps_each_row_as_often_as_it_occurs(
    one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]
) -> None:
    tables = {
        "one": Table({"a": "int", "b": "int"}, one),
        "other": Table({"B": "bigint", "c": "string"}, other),
    }

    found = result([{"union": {"inputs": ["one", "other", "one"]}}], tables)

    assert bag(found) == bag([(a, b, None) for a, b in one] * 2 + [(None, b, c) for b, c in other])


@QUICK
@given(
    cells=st.dictionaries(
        st.tuples(st.integers(0, 3), st.sampled_from(["x", "y"])), st.integers(-5, 5), max_size=8
    )
)
def test_an_unpivot_undoes_a_pivot(cells: dict[tuple[int, str], int]) -> None:
    rows = [(key, name, value) for (key, name), value in cells.items()]
    table = Table({"k": "int", "n": "string", "v": "int"}, rows, ("k", "n"))
    pivot = {"input": "t", "by": ["k"], "column": "n", "values": ["x", "y"], "value": {"max": "v"}}
    unpivot = {"columns": ["x", "y"], "name": "n", "value": "v", "missing": "drop"}

    wide = result([{"pivot": pivot}], {"t": table})
    long = result([{"pivot": pivot}, {"unpivot": unpivot}], {"t": table})

    groups = {key for key, _ in cells}
    assert bag(wide) == bag([(k, cells.get((k, "x")), cells.get((k, "y"))) for k in groups])
    assert bag(long) == bag(rows)


@QUICK
@given(rows=st.lists(st.tuples(st.integers(0, 1), SMALL), max_size=8), constant=st.booleans())
def test_fill_missing_carries_the_last_value_of_the_group(
    rows: list[tuple[int, int | None]], constant: bool
) -> None:
    numbered = [(number, *row) for number, row in enumerate(rows)]
    table = Table({"id": "int", "k": "int", "v": "int"}, numbered, ("id",))
    fill: dict[str, Any] = {"input": "t", "last": ["v"], "by": ["k"], "order": ["id"]}
    if constant:
        fill["values"] = {"v": 9}

    found = result([{"fill_missing": fill}], {"t": table})

    last: dict[int, int] = {}
    expected = []
    for number, key, value in numbered:
        if value is not None:
            last[key] = value
        expected.append((number, key, last.get(key, 9 if constant else None)))
    assert bag(found) == bag(expected)


@QUICK
@given(
    left=st.lists(st.sampled_from([None, 1, 2]), max_size=5),
    right=st.lists(st.sampled_from([1, 2, None]), max_size=5),
    kind=st.sampled_from(["inner", "left", "right", "full", "semi", "anti"]),
)
def test_the_keys_of_a_join_tell_its_rows_apart(
    left: list[int | None], right: list[int | None], kind: str
) -> None:
    tables = {
        "a": Table({"a": "int", "x": "int"}, list(enumerate(left)), ("a",)),
        "b": Table({"b": "int", "x": "int"}, list(enumerate(right)), ("b",)),
        "c": Table({"x": "int", "c": "int"}, [(1, 5), (2, 5)], ("x",)),
    }
    steps = [
        {"join": {"input": "a", "with": "b", "on": ["x"], "type": kind}},
        {"join": {"with": "c", "on": ["x"], "type": "left"}},
    ]
    inputs = {name: DerivedInput(name, table.columns, table.keys) for name, table in tables.items()}

    flow = compile_flow([FlowStep.model_validate(step) for step in steps], inputs, str)

    found = answered(flow.sql, tables)
    names = list(flow.columns)
    for key in flow.steps[-1].keys:
        places = [names.index(name) for name in key]
        assert len({tuple(row[place] for place in places) for row in found}) == len(found)
    # A join of many to many has the keys of both sides; a full one none.
    assert bool(flow.steps[-1].keys) == (kind != "full")
