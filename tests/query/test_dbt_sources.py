"""Sources of dbt: columns, types, tests and freshness; hostile names become nothing that runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from polynya.lake.fold.shape import Shape
from polynya.model.names import Dialect
from polynya.query.dbt_sources import DbtView, Staleness, source_tables
from tests.formats.helpers import a_dataset, types


def sources(
    engine: Dialect = Dialect.TRINO,
    *,
    view: str = "u",
    keys: tuple[str, ...] = ("id",),
    staleness: Staleness | None = None,
    **columns: str,
) -> list[DbtView]:
    dataset = a_dataset()
    dataset = replace(dataset, relations=replace(dataset.relations, view=view))
    shape = Shape(keys, types(**columns), history=True)
    return list(source_tables(dataset, shape, engine, staleness or Staleness()))


def column(table: DbtView, name: str) -> dict[str, Any]:
    (found,) = (one for one in table.document["columns"] if one["name"] == name)
    return dict(found)


def test_keys_of_current_are_tested_and_those_of_history_are_not() -> None:
    current, history, changes = sources(id="bigint", n="int")

    assert [one.document["name"] for one in (current, history, changes)] == [
        "u", "u__history", "u__changes",
    ]  # fmt: skip
    assert column(current, "id") == {
        "name": "id",
        "description": "Key.",
        "data_type": "bigint",
        "data_tests": ["unique", "not_null"],
    }
    assert "data_tests" not in column(history, "id")
    assert "data_tests" not in column(current, "n")


def test_no_column_of_a_key_of_several_is_unique_by_itself() -> None:
    current, *_ = sources(keys=("id", "part"), id="bigint", part="string")

    assert column(current, "part")["data_tests"] == ["not_null"]


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        (Dialect.ATHENA, "timestamp(6)"),
        (Dialect.DUCKDB, "TIMESTAMPTZ"),
        (Dialect.SNOWFLAKE, "TIMESTAMP_LTZ(6)"),
        (Dialect.SPARK, "timestamp"),
    ],
)
def test_types_are_those_of_the_engine(engine: Dialect, kind: str) -> None:
    current, *_ = sources(engine, id="bigint", at="timestamp")

    assert column(current, "at")["data_type"] == kind


def test_freshness_is_asked_of_views_that_hold_a_time_of_the_source() -> None:
    age = Staleness(timedelta(minutes=90), timedelta(days=2))
    current, history, changes = sources(staleness=age, id="bigint")

    assert "freshness" not in current.document
    assert history.document["loaded_at_field"] == "hdr__from_timestamp"
    assert changes.document["loaded_at_field"] == "hdr__timestamp"
    assert history.document["freshness"] == {
        "warn_after": {"count": 90, "period": "minute"},
        "error_after": {"count": 2, "period": "day"},
    }


def test_what_dbt_would_run_as_a_template_is_left_out_and_told() -> None:
    hostile = {"{{ env_var('X') }}": "string", "a b": "string", "{% do x %}": "string"}
    current, *_ = sources(id="bigint", **hostile)

    assert [one["name"] for one in current.document["columns"]] == ["id", "a b"]
    assert column(current, "a b")["quote"] is True
    assert len(current.left_out) == 2
    (whole, *_) = sources(view="{{ x }}", id="bigint")
    assert (whole.document, len(whole.left_out)) == ({}, 1)
    (whole, *_) = sources(Dialect.DUCKDB, view='u"; drop table x; --', id="bigint")
    assert whole.document == {}
