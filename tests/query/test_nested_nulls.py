"""NULL, empty and full of every nested type are told apart by every engine, pending and applied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from polynya.engine.answers import Answers
from polynya.lake.read.query import Statement, run_query
from polynya.lake.read.values import json_rows
from tests.lab.lab import Feed, Lab, put
from tests.query.test_answers import project_of
from tests.query.test_duckdb import shown_by_duckdb

pytestmark = pytest.mark.spark

TYPES = {
    "l": "array<int>",
    "ll": "array<array<int>>",
    "ls": "array<struct<x:int,l:array<int>>>",
    "s": "struct<x:int,l:array<int>,m:map<string,int>>",
    "sl": "struct<l:array<struct<x:int>>>",
    "m": "map<string,int>",
    "ml": "map<string,array<int>>",
    "ms": "map<string,struct<x:int>>",
}
#: By column: empty, with NULL inside, full.
VALUES = {
    "l": ([], [None], [1]),
    "ll": ([], [None, []], [[1]]),
    "ls": ([], [None, {"x": None, "l": None}, {"x": 1, "l": []}], [{"x": 1, "l": [1]}]),
    "s": ({"x": None, "l": None, "m": None}, {"x": 1, "l": [], "m": {}},
          {"x": 1, "l": [1], "m": {"k": 1}}),
    "sl": ({"l": None}, {"l": []}, {"l": [{"x": 1}]}),
    "m": ({}, {"k": None}, {"k": 1}),
    "ml": ({}, {"k": None, "e": []}, {"k": [1]}),
    "ms": ({}, {"k": None}, {"k": {"x": 1}}),
}  # fmt: skip


@pytest.mark.slow
def test_every_engine_tells_null_empty_and_full_apart(lab: Lab) -> None:
    users = lab.feed(columns={**{"id": "bigint", "seq": "int"}, **TYPES})
    wanted = {1: dict.fromkeys(TYPES)}
    for number in range(3):
        wanted[number + 2] = {name: values[number] for name, values in VALUES.items()}
    events = [put(key, key, **row) for key, row in wanted.items()]

    users.copy(*events)
    assert _shown(lab, users) == wanted, "pending"
    users.apply()
    assert _shown(lab, users) == wanted, "applied"


def _shown(lab: Lab, users: Feed) -> dict[int, dict[str, Any]]:
    """The rows by their key, on which Spark, the engine that suffices and DuckDB agree."""
    view = f"{lab.schema}.users"
    columns = ", ".join(TYPES)
    nulls = ", ".join(f"{name} IS NULL AS {name}" for name in TYPES)
    said: list[str] = []
    answers = Answers(project_of(users), lambda: lab.spark, tell=said.append)
    shown = []
    for listed in (columns, nulls):
        statement = f"SELECT id, {listed} FROM {view}"
        batches = answers.answer(Statement(statement)).batches
        found = by_key(row for batch in batches for row in json_rows(batch))
        assert found == by_key(run_query(lab.spark, statement))
        shown.append(found)
    rows, are_null = shown
    assert are_null == {
        key: {name: value is None for name, value in row.items()} for key, row in rows.items()
    }
    assert said == [], "nothing of it is left to Spark"
    names, found = shown_by_duckdb(users, "users")
    in_duckdb = by_key(dict(zip(names, row, strict=True)) for row in found)
    assert rows == {key: {name: row[name] for name in TYPES} for key, row in in_duckdb.items()}
    return rows


def by_key(rows: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Rows by their `id`, without it."""
    return {row.pop("id"): row for row in rows}
