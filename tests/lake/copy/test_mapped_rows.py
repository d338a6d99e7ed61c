"""The rows that a mapping makes of records, against a fold that a reader can follow; no Spark."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.formats.batch import DatasetBatch
from polynya.lake.copy.mapped_values import elements_of
from polynya.model.types import BIGINT, Array
from polynya.transform.mapping import ArrayPath
from tests.lake.copy.batches import FILE, dataset, mapped, read


def rows(batch: DatasetBatch, *names: str) -> list[tuple[Any, ...]]:
    """Values of columns, row by row."""
    there = batch.rows.column_names
    columns = [
        batch.rows.column(name).to_pylist() if name in there else [None] * batch.rows.num_rows
        for name in names
    ]
    return list(zip(*columns, strict=True))


LINES = [
    {"name": "user", "expression": "user.id"},
    {"name": "order", "expression": "orders[].no"},
    {"name": "order_nth", "expression": "ordinal(orders[])"},
    {"name": "sku", "expression": "orders[].lines[].sku"},
    {"name": "nth", "expression": "ordinal(orders[].lines[])"},
]

skus = st.none() | st.builds(lambda sku: {"sku": sku}, st.none() | st.text("ab", max_size=2))
orders = st.none() | st.fixed_dictionaries(
    {"no": st.integers(0, 9)}, optional={"lines": st.none() | st.lists(skus, max_size=3)}
)
records = st.fixed_dictionaries(
    {"user": st.none() | st.fixed_dictionaries({"id": st.integers(0, 9)})},
    optional={"orders": st.none() | st.lists(orders, max_size=3)},
)


def expected(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What the mapping LINES is to give for a record."""
    user = (record.get("user") or {}).get("id")
    found = []
    for nth, order in list(enumerate(record.get("orders") or [], 1)) or [(None, None)]:
        lines = (order or {}).get("lines") or []
        for number, line in list(enumerate(lines, 1)) or [(None, None)]:
            sku = (line or {}).get("sku")
            found.append((user, (order or {}).get("no"), nth, sku, number))
    return found


@settings(max_examples=40, deadline=None)
@given(st.lists(records, min_size=1, max_size=6), st.integers(1, 6))
def test_rows_are_those_of_the_fold_however_the_file_is_cut(
    landed: list[dict[str, Any]], cut: int
) -> None:
    one = dataset(LINES)
    whole = mapped(one, read(one, landed))
    names = [column["name"] for column in LINES]
    assert rows(whole, *names) == [row for record in landed for row in expected(record)]
    places = list(zip(*rows(whole, "__file", "__offset", "__tail"), strict=True))
    assert len(set(zip(*places, strict=True))) == whole.rows.num_rows

    first = read(one, landed, rows=cut)
    parts = [mapped(one, first)]
    done = first.files[FILE].records
    if done < len(landed):
        parts.append(mapped(one, read(one, landed, start=done)))
    together = [row for part in parts for row in rows(part, *names, "__offset", "__tail")]
    assert together == rows(whole, *names, "__offset", "__tail")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3), max_size=6))
def test_elements_keep_their_records_and_their_order(values: list[Any]) -> None:
    table = pa.table({"a": pa.array(values, pa.list_(pa.field("element", pa.int64())))})
    found = elements_of(table, {"a": Array(BIGINT)}, ArrayPath((("a",),)))
    assert found.records is not None
    assert found.numbers is not None
    wanted = [
        (record, number, element)
        for record, value in enumerate(values)
        for number, element in enumerate(value or [None])
    ]
    elements = found.columns["|element1"].array.to_pylist()
    got = list(zip(found.records.to_pylist(), found.numbers.to_pylist(), elements, strict=True))
    assert got == wanted


def test_a_value_that_is_no_array_is_its_own_only_element() -> None:
    one = dataset(
        [
            {"name": "sku", "expression": "item[].sku"},
            {"name": "n", "expression": "ordinal(item[])"},
        ]
    )
    batch = mapped(one, read(one, [{"item": {"sku": "a"}}, {"item": None}]))
    assert rows(batch, "sku", "n") == [("a", 1), (None, None)]


def test_columns_that_are_not_mapped_are_kept_once() -> None:
    one = dataset([{"name": "who", "expression": "user"}, {"name": "id", "expression": "user.id"}])
    batch = mapped(one, read(one, [{"user": {"id": 1, "n": "x"}, "other": 2}]))
    assert list(batch.schema) == ["who", "id", "other"]
    assert batch.met == {"user", "other", "who", "id"}


def test_structs_expand_but_for_what_is_mapped() -> None:
    one = dataset(
        [{"name": "id", "expression": "user.id"}], nested="expand", except_columns=["secret"]
    )
    record = {
        "user": {"id": 1, "home": {"zip": "x", "none": None}},
        "tags": [1],
        "secret": {"a": 1},
    }
    batch = mapped(one, read(one, [record]))
    assert {name: str(kind) for name, kind in batch.schema.items()} == {
        "id": "bigint",
        "user_home_zip": "string",
        "tags": "array<bigint>",
    }


def test_what_the_table_has_stays_with_its_type() -> None:
    one = dataset([{"name": "a", "expression": "a"}])
    batch = mapped(one, read(one, [{"a": 1}]), old=BIGINT, a=BIGINT)
    assert {name: str(kind) for name, kind in batch.schema.items()} == {
        "old": "bigint",
        "a": "bigint",
    }
    assert rows(batch, "old", "a") == [(None, 1)]


def test_without_a_mapping_nothing_is_touched() -> None:
    one = dataset([])
    batch = read(one, [{"a": 1}])
    assert mapped(one, batch) is batch


def test_raw_bytes_are_not_repeated_for_each_element() -> None:
    one = dataset([{"name": "n", "expression": "a[]"}])
    record = {"a": [1, 2, 3]}
    batch = mapped(one, read(one, [record, record]))
    assert batch.rows.column("__raw").null_count == 6
    wanted = pa.array([True] * 6)
    assert {json.dumps(record).encode()} == set(batch.with_raw(wanted).column("__raw").to_pylist())


REPLACED = [
    {"name": "id", "expression": "id", "key": 1},
    {"name": "line", "expression": "lines[].name", "key": 2},
    {"name": "amount", "expression": "lines[].amount"},
]


def replaced(*records: dict[str, Any], **more: Any) -> DatasetBatch:
    """Records whose elements are replaced by newer ones, as they are mapped."""
    one = dataset(REPLACED, mode="merge", replace_elements=True, **more)
    return mapped(one, read(one, records))


def test_a_record_that_replaces_its_elements_is_a_delete_without_their_keys() -> None:
    lines = [{"name": "a", "amount": 1}, {"name": "b", "amount": 2}]
    batch = replaced({"id": 1, "lines": lines}, {"id": 2, "lines": []}, {"id": 3, "lines": None})

    assert rows(batch, "id", "line", "amount", "__op") == [
        (1, "a", 1, None),
        (1, "b", 2, None),
        (1, None, None, "D"),
        (2, None, None, "D"),
        (3, None, None, "D"),
    ]
    assert len(set(rows(batch, "__ci", "__tail", "__offset"))) == 3
    assert batch.rows_in == 5


def test_of_elements_with_one_key_in_one_record_the_last_one_counts() -> None:
    lines = [{"name": "a", "amount": number} for number in (1, 2, 3)]
    batch = replaced({"id": 1, "lines": lines}, {"id": 2, "lines": lines[:1]})

    assert rows(batch, "id", "line", "amount")[:2] == [(1, "a", 3), (2, "a", 1)]
    assert batch.counters == {"repeated": 2}
    assert batch.rows_filtered == 2


def test_a_record_with_an_element_without_a_key_replaces_nothing() -> None:
    lines = [{"name": "a", "amount": 1}, {"amount": 2}]
    batch = replaced({"id": 1, "lines": lines}, {"lines": lines[:1]}, {"id": 3, "lines": []})

    assert rows(batch, "id", "line", "__op") == [(3, None, "D")]
    assert [(record.offset, record.rule) for record in batch.rejected] == [
        (0, "null_key"),
        (1, "null_key"),
    ]


def test_a_batch_without_records_has_no_elements() -> None:
    one = dataset(REPLACED, mode="merge", replace_elements=True)
    batch = mapped(one, read(one, []), id=BIGINT, line=BIGINT, amount=BIGINT)

    assert (batch.rows.num_rows, batch.rows_in) == (0, 0)
