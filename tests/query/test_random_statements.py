"""Random statements have in the embedded engine the columns, types and rows that Spark gives them.

Steps of transforms over few rows rely on it: which engine computes a row must not change it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from polynya.derived.tables import ParsedQuery, parsed_query
from polynya.engine.tasks.embedded_rows import InputRows
from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.spark.arrow import spark_schema
from polynya.model.names import quote
from polynya.model.types import parse_type
from polynya.query import sources
from polynya.query.embedded import STATEMENT_LIMITS, answer_here
from polynya.query.translate import NotEmbeddedError
from tests.derived.queries import Statements
from tests.derived.shop import INPUTS, first_data
from tests.lab.lab import Lab

pytestmark = pytest.mark.usefixtures("sliced_batches")


def tables(random: Random) -> dict[str, pa.Table]:
    """Some rows of each table of the shop."""
    found = {}
    for name, rows in first_data(random).items():
        kinds = {column: parse_type(kind) for column, kind in INPUTS[name].columns.items()}
        columns = zip(*rows.values(), strict=True) if rows else ([] for _ in kinds)
        found[name] = pa.table(
            [pa.array(list(values), arrow_type(kind))
             for values, kind in zip(columns, kinds.values(), strict=True)],
            names=list(kinds),
        )  # fmt: skip
    return found


def embedded(query: ParsedQuery, data: Mapping[str, pa.Table]) -> pa.Table:
    """The answer of the embedded engine. Raises NotEmbeddedError."""
    names = {name: f"inputs.i{number}" for number, name in enumerate(query.names)}
    types = {
        name: {column: parse_type(kind) for column, kind in INPUTS[full(name)].columns.items()}
        for name in names
    }
    views = {
        called: InputRows(called, types[name], data[full(name)]) for name, called in names.items()
    }
    schema, batches = answer_here(
        query.over(names), views.__getitem__, limit=None, limits=STATEMENT_LIMITS, has_cases=True
    )
    return pa.Table.from_batches(batches, schema=schema)


def by_spark(lab: Lab, query: ParsedQuery, data: Mapping[str, pa.Table]) -> pa.Table:
    """The answer of Spark."""
    names = {}
    for number, name in enumerate(query.names):
        rows = data[full(name)]
        names[name] = f"{lab.schema}_{number}"
        frame = lab.spark.createDataFrame(rows, schema=spark_schema(rows.schema))
        frame.createOrReplaceTempView(names[name])
    return lab.spark.sql(query.over({name: quote(view) for name, view in names.items()})).toArrow()


def full(name: str) -> str:
    """`schema.table` of a table that a statement may call by its own name."""
    return name if name in INPUTS else f"shop.{name}"


def rows_of(table: pa.Table) -> Counter[tuple[str, ...]]:
    # By number: two columns may have one name.
    numbered = table.rename_columns([str(number) for number in range(table.num_columns)])
    return Counter(tuple(map(repr, row.values())) for row in numbered.to_pylist())


def answered(seeds: range) -> Iterator[tuple[str, ParsedQuery, dict[str, pa.Table], pa.Table]]:
    """The statements that the embedded engine answers, with its answers."""
    for seed in seeds:
        random = Random(seed)
        sql = Statements(random).statement()
        query, data = parsed_query(sql, "random"), tables(random)
        try:
            yield f"{seed}: {sql}", query, data, embedded(query, data)
        except NotEmbeddedError:
            continue


def compare(lab: Lab, seeds: range) -> int:
    """How many statements both engines have answered alike."""
    number = 0
    for shown, query, data, found in answered(seeds):
        wanted = by_spark(lab, query, data)
        assert found.schema.names == wanted.schema.names, shown
        assert found.schema.types == wanted.schema.types, shown
        assert rows_of(found) == rows_of(wanted), shown
        number += 1
    return number


def test_random_statements_are_answered_as_by_spark(lab: Lab) -> None:
    assert compare(lab, range(40)) > 8


@pytest.mark.slow
def test_many_random_statements_are_answered_as_by_spark(lab: Lab) -> None:
    assert compare(lab, range(1000, 4000)) > 500


def test_a_join_of_another_kind_is_seen(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    planted: dict[tuple[str, str], Any] = {**sources._JOINS, ("LEFT", ""): "JOIN"}
    monkeypatch.setattr(sources, "_JOINS", planted)

    with pytest.raises(AssertionError):
        compare(lab, range(300))
