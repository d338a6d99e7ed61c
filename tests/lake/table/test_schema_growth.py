"""Columns appear and types grow while rows are stored and pending."""

from __future__ import annotations

import pyarrow as pa

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
