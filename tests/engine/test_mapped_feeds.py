"""Columns that settings map: what a task makes of its records, from the file to the view."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.engine.commands.replay import replay
from polynya.engine.inventory import ProjectTable
from polynya.model.errors import ConfigError
from tests.lab.lab import Feed, Lab, drop, put

ORDERS = [
    {"name": "id", "expression": "user.id", "type": "bigint", "key": 1},
    {"name": "city", "expression": "to_upper(trim(user.address.city))"},
    {"name": "items", "expression": "size(items)", "type": "bigint"},
]
LINES = [
    {"name": "id", "expression": "user.id", "type": "bigint", "key": 1},
    {"name": "nth", "expression": "ordinal(items[])", "key": 2},
    {"name": "sku", "expression": "lower(items[].sku)"},
    {"name": "qty", "expression": "items[].qty", "type": "int"},
]


def mapped(lab: Lab, columns: Any, name: str = "orders", **how: Any) -> Feed:
    """A feed of orders whose columns are mapped."""
    return lab.feed(name, **{"columns": columns, "keys": None, **how})


def order(
    user: int, seq: int, *skus: str, city: str | None = " Rome", **more: Any
) -> dict[str, Any]:
    """An order of a user; the second item has two pieces."""
    items = [{"sku": sku, "qty": index} for index, sku in enumerate(skus, start=1)]
    person = {"id": user, "address": {"city": city}}
    event = put(user, seq, user=person, items=items, **more)
    del event["id"]
    return event


def test_columns_are_made_by_expressions_and_others_are_kept(lab: Lab) -> None:
    orders = mapped(lab, ORDERS)
    orders.copy(order(1, 1, "A", note="first"), order(2, 2))
    orders.apply(order(1, 3, "A", "B", city="Paris", note=None))

    assert orders.columns()[:3] == ["id", "city", "items"]
    assert orders.current("id", "city", "items", "note") == [
        (1, "PARIS", 2, None),
        (2, "ROME", 0, None),
    ]
    assert orders.types()["items"] == "bigint"
    assert orders.types()["user"] == "struct<id:bigint,address:struct<city:string>>"
    assert len(orders.history("id")) == 3
    deleted = {**order(1, 4), "op": "D"}
    orders.apply(deleted)
    assert orders.current("id") == [(2,)]


@pytest.mark.slow
def test_elements_become_rows_with_keys_of_their_own(lab: Lab) -> None:
    """Redelivered files and two splits of the records give the same table."""
    once, split = mapped(lab, LINES), mapped(lab, LINES, "split")
    records = [order(1, 1, "A", "B"), order(2, 2, "C"), order(1, 3, "B", "A", "D")]
    once.apply(*records)
    once.apply(*records)
    for record in records:
        split.copy(record)
    split.apply()

    expected = [(1, 1, "b", 1), (1, 2, "a", 2), (1, 3, "d", 3), (2, 1, "c", 1)]
    assert once.current("id", "nth", "sku", "qty") == expected
    assert split.current("id", "nth", "sku", "qty") == expected
    assert split.history("id", "nth", "sku") == once.history("id", "nth", "sku")
    assert once.totals() == {"in": 12, "out": 12, "filtered": 0, "quarantined": 0}
    assert "items" not in once.columns()


def test_where_filters_and_structs_expand(lab: Lab) -> None:
    orders = mapped(lab, ORDERS[:1], nested="expand", where="not_equal_to(type, 'ping')")
    orders.apply(order(1, 1, type="order"), order(2, 2, type="ping"), order(3, 3, type=None))

    assert orders.current("id", "user_address_city", "type") == [(1, " Rome", "order")]
    assert "user" not in orders.columns()
    assert orders.totals() == {"in": 3, "out": 1, "filtered": 2, "quarantined": 0}
    assert orders.table().state.copy.books.counters == {"where": 2}


def test_what_a_type_cannot_hold_is_set_aside_and_read_again(lab: Lab) -> None:
    columns = [*ORDERS[:1], {"name": "code", "expression": "code", "type": "int"}]
    orders = mapped(lab, columns)
    orders.apply(order(1, 1, code="7"), order(2, 2, code="seven"), order(3, 3, code="1.5"))
    assert orders.current("id", "code") == [(1, 7)]
    assert [row[1:] for row in orders.rejected()] == [(1, "mapping"), (2, "mapping")]

    orders.configure(columns=[*ORDERS[:1], {"name": "code", "expression": "to_int(code)"}])
    result = replay(lab.context("never"), ProjectTable(orders.task, orders.dataset, None), None)
    orders.apply()

    assert (result.records, result.copied, result.quarantined) == (2, 2, 0)
    assert orders.current("id", "code") == [(1, 7), (2, None), (3, 1)]
    assert orders.totals() == {"in": 3, "out": 3, "filtered": 0, "quarantined": 0}


@pytest.mark.slow
def test_an_expression_that_spark_refuses_stops_the_dataset_and_loses_nothing(lab: Lab) -> None:
    orders = mapped(lab, [*ORDERS[:1], {"name": "broken", "expression": "user + 1"}])
    with pytest.raises(ConfigError, match="column broken: ") as caught:
        orders.copy(order(1, 1))
    assert caught.value.code == "POLYNYA-MAP-005"

    orders.configure(columns=ORDERS[:1])
    orders.run()
    assert orders.current("id") == [(1,)]


@pytest.mark.slow
def test_a_name_that_no_record_has_is_found_in_an_expression(lab: Lab) -> None:
    orders = mapped(lab, [*ORDERS[:1], {"name": "city", "expression": "upper(usr.city)"}])
    with pytest.raises(ConfigError, match="`columns` names `usr`"):
        orders.copy(order(1, 1))


@pytest.mark.slow
def test_types_of_the_source_may_grow(lab: Lab) -> None:
    """The table keeps the types that it has, and the source its own."""
    columns = [*ORDERS[:1], {"name": "n", "expression": "coalesce(a, b)"}]
    orders = mapped(lab, columns)
    orders.copy(order(1, 1, a=None, b=None))
    orders.copy(order(2, 2, a=5, b=None, extra={"x": 1}))
    orders.copy(order(3, 3, a=None, b=6, extra={"x": 2, "y": "z"}))
    orders.apply()

    assert orders.current("id", "n", "extra.x") == [(1, None, None), (2, 5, 1), (3, 6, 2)]
    source = orders.table().state.copy.columns.source
    assert source is not None
    assert source["extra"] == "struct<x:bigint,y:string>"
    assert "user" in source


@pytest.mark.slow
def test_a_mapping_may_come_later_and_go_again(lab: Lab) -> None:
    users = lab.feed("users")
    users.apply(put(1, 1, name="Ann", size=3))
    users.configure(columns=[{"name": "label", "expression": "upper(name)"}])
    users.apply(put(2, 2, name="Ben", size=4))
    assert users.current("id", "label", "name", "size") == [
        (1, None, "Ann", 3),
        (2, "BEN", "Ben", 4),
    ]

    users.configure(columns=None)
    users.settings.pop("columns")
    users.apply(put(3, 3, name="Cat", size=5), drop(1, 4))
    assert users.current("id", "label", "name") == [(2, "BEN", "Ben"), (3, None, "Cat")]


@pytest.mark.slow
def test_an_append_only_table_has_a_row_for_each_element(lab: Lab) -> None:
    columns = [{"name": "sku", "expression": "items[].sku"}]
    events = mapped(
        lab, columns, mode="append_only", history=None, apply_as_deletes=None,
        apply_as_truncates=None, sequence_by=None, except_columns=["user", "op", "at"],
    )  # fmt: skip
    events.copy(order(1, 1, "A", "B"), order(2, 2))
    assert events.current("seq", "sku") == [(1, "A"), (1, "B"), (2, None)]


@pytest.mark.slow
def test_a_reload_reads_the_load_through_the_mapping(lab: Lab) -> None:
    lines = mapped(lab, LINES)
    lines.apply(order(1, 1, "A", "B"), order(2, 2, "C"))
    name = lines.land(order(1, 0, "A", "X"), file="load-1.json")
    done = reload(
        lab.context("never"),
        ReloadRequest(
            lines.task, lines.dataset, mode="compare_and_apply_with_deleted_rows", files=name
        ),
    )

    assert done is not None
    assert (done.loaded, done.quarantined) == (2, 0)
    assert lines.current("id", "nth", "sku") == [(1, 1, "a"), (1, 2, "x")]


@pytest.mark.slow
def test_raw_records_of_quarantine_are_those_that_landed(lab: Lab) -> None:
    """A record is set aside whole, once, whatever rows its elements would have made."""
    lines = mapped(lab, LINES)
    bad = order(1, 1, "A", "B")
    bad["items"][1]["qty"] = 3_000_000_000
    lines.copy(bad, order(2, 2, "C"))

    assert [row[1:] for row in lines.rejected()] == [(0, "mapping")]
    ((raw,),) = lines.stored("quarantine", "CAST(hdr__quarantine.raw AS STRING)")
    assert json.loads(raw) == bad
    assert lines.totals() == {"in": 2, "out": 1, "filtered": 0, "quarantined": 1}


def test_nested_nulls_and_empty_lists_get_their_type_in_mapped_columns(lab: Lab) -> None:
    columns = [
        {"name": "id", "expression": "user.id", "type": "bigint", "key": 1},
        {"name": "g", "expression": "v.g"},
        {"name": "either", "expression": "coalesce(v.g, v.h)"},
        {"name": "picked", "expression": "distinct_values(items)"},
        {"name": "first", "expression": "try_element_at(items, 1)"},
        {"name": "last", "expression": "last_element(items)"},
        {"name": "list", "expression": "coalesce(items, lists)"},
    ]
    more = {"except_columns": ["op", "seq", "at", "user"], "optional_columns": ["lists", "op"]}
    orders = mapped(lab, columns, **more)
    empty = {"v": {"g": None, "h": None}, "items": []}
    full = {"v": {"g": 5, "h": 6}, "items": [{"a": 1}]}

    for seq, value in enumerate([empty, full, empty], start=1):
        event = put(seq, seq, user={"id": seq}, **value)
        del event["id"]
        orders.copy(event)
    seen = ["g", "either", "picked", "first", "last", "list", "v", "items"]
    before = orders.current("id", *seen)
    orders.apply()

    late = (None, None, [], None, None, [], empty["v"], [])
    full = (5, 5, [{"a": 1}], {"a": 1}, {"a": 1}, [{"a": 1}], full["v"], full["items"])
    # Of a list without any element `distinct_values` knows nothing.
    first = (None, None, None, *late[3:])
    assert before == orders.current("id", *seen) == [(1, *first), (2, *full), (3, *late)]
    assert not orders.rejected()
