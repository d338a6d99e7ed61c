"""Batches of native datasets: schema, order, time, limits and accounting."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polynya.formats.batch import NO_ORDER, BatchLimits, FileProgress
from tests.formats.helpers import a_dataset, column, json_lines, read, rules, schema, types


def test_the_example_of_the_contract() -> None:
    raw = (
        b'{"userId":124,"name":"Raul","city":"Oaxaca","operation":"INSERT","sequenceNum":1,'
        b'"eventTime":"2026-01-01T00:00:01Z"}'
    )
    dataset = a_dataset(
        keys=("userId",),
        sequence_by=("sequenceNum",),
        timestamp="eventTime",
        except_columns=("operation",),
    )

    batch = read(raw, dataset)

    assert batch.keys == ("userId",)
    assert column(batch, "operation") == ["INSERT"]
    assert column(batch, "__ci") == [f"{2**63 + 1:035d}"]
    assert column(batch, "__ts") == [datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)]
    assert column(batch, "__op") == column(batch, "__old") == column(batch, "__unsent") == [None]


def test_known_columns_come_first_and_missing_ones_as_null() -> None:
    batch = read(
        json_lines({"new": 1, "id": 1, "n": 1}), known=types(id="bigint", gone="date", v="void")
    )

    assert list(schema(batch).items()) == [
        ("id", "bigint"),
        ("gone", "date"),
        ("v", "void"),
        ("new", "bigint"),
        ("n", "bigint"),
    ]
    assert column(batch, "gone") == column(batch, "v") == [None]


def test_a_declared_column_exists_before_it_is_seen() -> None:
    batch = read(json_lines({"id": 1, "n": 1}), a_dataset(columns={"price": "decimal(9,2)"}))

    assert schema(batch)["price"] == "decimal(9,2)"


def test_the_table_type_wins_over_a_declaration_that_it_cannot_reach() -> None:
    dataset = a_dataset(columns={"x": "int"})

    batch = read(json_lines({"id": 1, "n": 1, "x": "7"}), dataset, types(x="bigint"))

    assert (schema(batch)["x"], column(batch, "x")) == ("bigint", [7])


def test_keys_are_columns_even_when_no_record_has_them() -> None:
    assert schema(read(b"garbage")) == {"id": "void"}


@pytest.mark.parametrize(
    ("value", "rule"),
    [(None, "null_sequence"), ({"a": 1}, "bad_sequence"), ([1], "bad_sequence")],
)
def test_a_record_without_a_place_is_refused(value: object, rule: str) -> None:
    assert rules(read(json_lines({"id": 1, "n": value}))) == [(0, rule)]


def test_a_missing_sequence_is_null() -> None:
    assert rules(read(json_lines({"id": 1}, {"id": 2, "n": 1}))) == [(0, "null_sequence")]


def test_the_type_of_a_sequence_is_sticky() -> None:
    batch = read(json_lines({"id": 1, "n": 2}), known=types(n="decimal(38,0)"))

    assert len(column(batch, "__ci")[0]) == 39


def test_first_load_rows_may_lack_a_sequence() -> None:
    batch = read(json_lines({"id": 1}, {"id": 2, "n": 5}), load=True)

    assert column(batch, "__op") == ["L", "L"]
    assert column(batch, "__ci") == [NO_ORDER, f"{2**63 + 5:035d}"]


def test_append_only_without_a_sequence_has_no_order() -> None:
    assert column(read(json_lines({"a": 1}), a_dataset(keys=(), sequence_by=())), "__ci") == [
        NO_ORDER
    ]


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-01T00:00:01Z",
        "2026-01-01 00:00:01.000000999",
        1767225601,
        1767225601000,
        1767225601000000,
        1767225601000000000,
        1767225601.0,
    ],
)
def test_the_timestamp_column_takes_text_and_epochs(value: object) -> None:
    batch = read(json_lines({"id": 1, "n": 1, "at": value}), a_dataset(timestamp="at"))

    assert column(batch, "__ts") == [datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)]


@pytest.mark.parametrize("value", ["soon", "10000-01-01T00:00:00Z", 10**22, True])
def test_a_bad_timestamp_is_refused(value: object) -> None:
    batch = read(json_lines({"id": 1, "n": 1, "at": value}), a_dataset(timestamp="at"))

    assert rules(batch) == [(0, "bad_timestamp")]


def test_a_null_timestamp_leaves_the_copy_time() -> None:
    batch = read(json_lines({"id": 1, "n": 1, "at": None}), a_dataset(timestamp="at"))

    assert column(batch, "__ts") == [None]


def test_a_sequence_that_is_a_time_is_also_the_timestamp() -> None:
    batch = read(json_lines({"id": 1, "n": "2026-01-01T00:00:01Z"}, {"id": 1, "n": "a"}))

    assert column(batch, "__ts") == [datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC), None]


def test_a_batch_ends_between_records_and_goes_on_there() -> None:
    lines = json_lines(*({"id": i, "n": i} for i in range(5)))
    files = {"a": lines, "b": lines}

    first = read(files, limits=BatchLimits(max_rows=3))
    second = read(files, limits=BatchLimits(max_rows=3), starts={"a": 3})

    assert first.files == {"a": FileProgress(len(lines), 3, complete=False)}
    assert second.files == {
        "a": FileProgress(len(lines), 5, complete=True),
        "b": FileProgress(len(lines), 1, complete=False),
    }
    assert column(second, "__offset") == [3, 4, 0]


def test_a_file_that_ends_with_the_batch_is_complete() -> None:
    batch = read(json_lines({"id": 1, "n": 1}), limits=BatchLimits(max_rows=1))

    assert batch.files["f"].complete


def test_bytes_limit_a_batch_too() -> None:
    lines = json_lines({"id": 1, "n": 1}, {"id": 2, "n": 2})

    assert read(lines, limits=BatchLimits(max_bytes=1)).rows.num_rows == 1


def test_one_record_is_refused_once() -> None:
    batch = read(json_lines({"id": 1, "n": None, "at": "x", "": 1}), a_dataset(timestamp="at"))

    assert len(batch.rejected) == batch.rows_in == 1


def test_rejected_records_come_in_the_order_of_the_files() -> None:
    batch = read({"a": json_lines({"id": 1}, b"x"), "b": json_lines(b"y", {"id": 1})})

    assert [(one.file, one.offset) for one in batch.rejected] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]


def test_an_empty_file_is_read() -> None:
    batch = read(b"")

    assert (batch.rows_in, batch.files["f"].complete) == (0, True)


@pytest.mark.parametrize(
    "broken",
    [
        [{"id": "x", "n": None}],
        [{"id": "x"}],
        [{"id": "x", "n": 1, "": 1}],
        [{"id": "x", "n": [1]}, {"id": True, "n": {"a": 1}}],
        [{"id": "x", "n": 1, "at": "soon"}],
    ],
)
def test_a_refused_record_does_not_settle_the_types(broken: list[object]) -> None:
    good = {"id": 1, "n": 1, "at": 1767225601}

    batch = read(json_lines(*broken, good, good), a_dataset(timestamp="at"))

    assert [offset for offset, _ in rules(batch)] == list(range(len(broken)))
    assert column(batch, "id") == [1, 1]
    assert schema(batch)["n"] == "bigint"


def test_a_batch_of_refused_records_brings_no_columns() -> None:
    assert schema(read(json_lines({"id": 1, "n": [1], "x": 1}))) == {"id": "void"}
