"""Columns appear and types grow while rows are stored and pending."""

from __future__ import annotations

from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from polynya.lake.read.verify import verify
from polynya.lake.table.dataset import DatasetTable
from tests.lab.events import land, upsert
from tests.lab.lab import Lab, drop, put


def test_new_columns_are_null_in_old_rows(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    users.copy(put(2, 2, name="Ben"))

    users.copy(put(3, 3, name="Cid", city="Rome"))
    before = users.current("id", "name", "city")
    users.apply()

    expected = [(1, "Ann", None), (2, "Ben", None), (3, "Cid", "Rome")]
    assert before == users.current("id", "name", "city") == expected
    assert len(users.history("city")) == 3


def test_a_new_nested_field_is_null_in_old_rows(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, home={"city": "Rome"}, tags=[{"a": 1}]))

    users.copy(put(2, 2, home={"city": "Oslo", "zip": 5}, tags=[{"a": 2, "b": "x"}]))
    before = users.current("id", "home.city", "home.zip", "tags[0].b")
    users.apply()

    after = users.current("id", "home.city", "home.zip", "tags[0].b")
    assert before == after == [(1, "Rome", None, None), (2, "Oslo", 5, "x")]


def test_a_column_of_nothing_but_nulls_gets_the_type_of_its_first_value(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, home=None, size=None))
    users.copy(put(2, 2, home=None, size=None))
    assert users.columns() == ["id", "home", "size"]

    users.copy(put(3, 3, home={"city": "Rome"}, size=7))
    users.apply()

    assert users.types() == {"id": "bigint", "home": "struct<city:string>", "size": "bigint"}
    assert users.current("id", "home.city", "size") == [
        (1, None, None),
        (2, None, None),
        (3, "Rome", 7),
    ]


def test_parquet_types_widen_in_place(lab: Lab) -> None:
    users = lab.parquet_feed()

    def land(key: int, count: pa.Scalar, share: pa.Scalar) -> None:
        inner = pa.StructArray.from_arrays([pa.array([count])], names=["n"])
        users.land_table(id=[key], seq=[key], count=[count], share=[share], inner=inner)

    land(1, pa.scalar(1, pa.int32()), pa.scalar(0.5, pa.float32()))
    users.run("always")
    land(2, pa.scalar(2, pa.int32()), pa.scalar(0.25, pa.float32()))
    users.run("never")
    land(3, pa.scalar(2**40, pa.int64()), pa.scalar(0.1, pa.float64()))
    users.run("never")
    before = users.current("id", "count", "share", "inner.n")
    users.run("always")

    kinds = {"count": "bigint", "share": "double", "inner": "struct<n:bigint>"}
    assert users.types() == {"id": "bigint", **kinds}
    expected = [(1, 1, 0.5, 1), (2, 2, 0.25, 2), (3, 2**40, 0.1, 2**40)]
    assert before == users.current("id", "count", "share", "inner.n") == expected


def test_a_table_of_deletes_only_has_its_keys(lab: Lab) -> None:
    users = lab.feed()
    users.apply(drop(1, 5))

    users.apply(put(1, 3, name="late"), put(2, 6, name="Ben"))

    assert users.current("id", "name") == [(2, "Ben")]


def test_a_value_of_another_type_is_in_quarantine_and_the_column_stays(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, size=7))

    users.apply(put(2, 2, size="large"), put(3, 3, size=8))

    assert users.current("id", "size") == [(1, 7), (3, 8)]
    assert [rule for *_, rule in users.rejected()] == ["type_mismatch"]


#: A value that is NULL or empty inside, and the first one of its type, with the type.
LATER: list[tuple[Any, Any, str]] = [
    (
        {"f": 1, "g": None, "h": "x"},
        {"f": 2, "g": 5, "h": "y"},
        "struct<f:bigint,g:bigint,h:string>",
    ),
    (
        {"g": None, "h": "x"},
        {"g": {"k": 1}, "h": "y"},
        "struct<g:struct<k:bigint>,h:string>",
    ),
    ([], [1], "array<bigint>"),
    ([None], ["s"], "array<string>"),
    ([[], [None]], [[2], []], "array<array<bigint>>"),
    (
        {"l": [], "n": 1},
        {"l": [{"a": 1}], "n": 2},
        "struct<l:array<struct<a:bigint>>,n:bigint>",
    ),
    (
        [{"a": None, "b": 1}],
        [{"a": 2.5, "b": 2}],
        "array<struct<a:double,b:bigint>>",
    ),
    (
        [{"a": [], "b": 1}],
        [{"a": [True], "b": 2}],
        "array<struct<a:array<boolean>,b:bigint>>",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("applied", [True, False], ids=["applied", "pending"])
def test_a_nested_null_or_an_empty_list_gets_the_type_of_its_first_value(
    lab: Lab, *, applied: bool
) -> None:
    users = lab.feed(changes_retention="keep")
    empty = {f"c{number}": value for number, (value, _, _) in enumerate(LATER)}
    full = {f"c{number}": value for number, (_, value, _) in enumerate(LATER)}
    kinds = {f"c{number}": kind for number, (_, _, kind) in enumerate(LATER)}
    users.apply(put(1, 1, **empty), put(2, 1, **empty))
    (users.apply if applied else users.copy)(put(2, 2, **empty))

    users.copy(put(3, 3, **full), put(1, 3, **full))
    before, past = users.current("id", *empty), users.history("id", *empty)
    users.apply()

    assert users.types() == {"id": "bigint", **kinds}
    expected = [(1, *full.values()), (2, *empty.values()), (3, *full.values())]
    assert before == users.current("id", *empty) == expected
    assert past == users.history("id", *empty)
    assert not verify(users.table()).findings


@pytest.mark.slow
def test_parquet_gives_nested_nulls_their_type_later(lab: Lab) -> None:
    parquet = lab.parquet_feed()
    void = pa.array([[], [None], None], pa.list_(pa.null()))
    held = pa.StructArray.from_arrays([pa.nulls(3), void], names=["n", "l"])
    pairs = pa.array([[("k", None)], [], None], pa.map_(pa.string(), pa.null()))
    parquet.land_table(id=[1, 2, 3], seq=[1, 1, 1], v=held, m=pairs)
    parquet.run("always")
    kind = pa.struct([("n", pa.date32()), ("l", pa.list_(pa.struct([("a", pa.int32())])))])
    value = {"n": date(2026, 1, 1), "l": [{"a": 7}]}
    counts = pa.array([[("j", 2)]], pa.map_(pa.string(), pa.int64()))
    parquet.land_table(id=[4], seq=[2], v=pa.array([value], kind), m=counts)
    parquet.run("always")

    found = parquet.current("id", "v", "m")
    empties = [{"n": None, "l": []}, {"n": None, "l": [None]}, {"n": None, "l": None}]
    assert [row[1] for row in found] == [*empties, value]
    assert [row[2] for row in found] == [[("k", None)], [], None, [("j", 2)]]
    assert not verify(parquet.table()).findings


@pytest.mark.slow
def test_debezium_gives_nested_nulls_their_type_later(lab: Lab) -> None:
    captured = lab.capture()
    values = [{"g": None, "l": []}, {"g": {"h": 1}, "l": [1]}]
    for number, inner in enumerate(values, start=1):
        land(captured, upsert(number, number, v=inner))
        captured.run("always")
    assert captured["users"].current("id", "v.g.h", "v.l") == [(1, None, []), (2, 1, [1])]


def test_a_nested_field_of_a_killed_step_is_added_by_the_next_one(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed()
    users.apply(put(1, 1, home={"city": "Rome", "zip": None}))
    users.land(put(2, 2, home={"city": "Oslo", "zip": 5, "street": "x"}))

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as scope, pytest.raises(KeyboardInterrupt):
        scope.setattr(DatasetTable, "_record_schema", killed)
        users.run()
    users.apply()

    assert users.current("id", "home.city", "home.zip", "home.street") == [
        (1, "Rome", None, None),
        (2, "Oslo", 5, "x"),
    ]


#: Values with empty objects, the first ones with a field, the type then, and the former values.
OBJECTS: list[tuple[Any, Any, str, Any]] = [
    ({}, {"x": 1}, "struct<x:bigint>", {"x": None}),
    ([{}, None], [{"x": 1}], "array<struct<x:bigint>>", [{"x": None}, None]),
    ([[{}], []], [[{"x": "s"}]], "array<array<struct<x:string>>>", [[{"x": None}], []]),
    (
        {"g": {}, "n": 1},
        {"g": {"h": {"k": 1}}, "n": 2},
        "struct<g:struct<h:struct<k:bigint>>,n:bigint>",
        {"g": {"h": None}, "n": 1},
    ),
    (
        [{"a": {}, "b": 1}],
        [{"a": {"l": []}, "b": 2}],
        "array<struct<a:struct<l:array<string>>,b:bigint>>",
        [{"a": {"l": None}, "b": 1}],
    ),
    ({}, "text", "string", "{}"),
    ([{}], ["text"], "array<string>", ["{}"]),
]


@pytest.mark.parametrize(
    "applied", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["applied", "pending"]
)
def test_an_empty_object_becomes_one_with_the_fields_of_later_ones(
    lab: Lab, *, applied: bool
) -> None:
    users = lab.feed(changes_retention="keep")
    columns = [f"c{number}" for number in range(len(OBJECTS))]
    empty = dict(zip(columns, (one[0] for one in OBJECTS), strict=True))
    full = dict(zip(columns, (one[1] for one in OBJECTS), strict=True))
    (users.apply if applied else users.copy)(put(1, 1, **empty), put(2, 1, **empty))
    held = users.current("id", "c0", "c1", "c3.g")

    users.copy(put(3, 3, **full), put(1, 3, **full))
    before, past = users.current("id", *empty), users.history("id", *empty)
    users.apply()

    assert held == [(key, "{}", ["{}", None], "{}") for key in (1, 2)]
    assert users.rejected() == []
    assert users.types() == {
        "id": "bigint",
        **dict(zip(columns, (o[2] for o in OBJECTS), strict=True)),
    }
    former = [one[3] for one in OBJECTS]
    expected = [(1, *full.values()), (2, *former), (3, *full.values())]
    assert before == users.current("id", *empty) == expected
    assert past == users.history("id", *empty)
    assert not verify(users.table()).findings
