"""Columns that get types which Iceberg cannot give them: every row is written again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from polynya.engine.commands.replay import replay
from polynya.engine.dataset import WorkingDataset
from polynya.engine.inventory import ProjectTable
from polynya.lake.apply.apply import Applier
from polynya.lake.apply.fast import FastApplier
from polynya.lake.read.verify import verify
from polynya.lake.table import retyping
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import CopyState
from polynya.model.errors import InternalError, OperationError
from polynya.model.types import parse_type
from tests.lab.lab import Feed, Lab, Row, drop, put
from tests.lab.plans import migrate, plan
from tests.lake.apply.plain import PlainApplier

EXACT = {"columns": {"price": "decimal(18,2)"}}


class KilledError(BaseException):
    """The process ends here."""


def priced(lab: Lab, **how: Any) -> Feed:
    """Whole prices: in Current, in history, deleted, kept as events, and pending; one is not whole,
    and waits in quarantine.
    """
    how = {"changes_retention": "keep", **how}
    if not how.get("history", True):
        del how["changes_retention"]
    orders = lab.feed("orders", **how)
    orders.apply(put(1, 1, price=10), put(2, 2, price=20), put(3, 3, price=None))
    # Two events of one place: the hash of their content decides, of each record otherwise.
    tied = [put(key, key, price=price) for key in range(11, 17) for price in (key, key + 100)]
    orders.apply(put(1, 4, price=11), drop(2, 5), *tied)
    pending = [put(1, 6, price=12), put(4, 7, price=40), drop(3, 8), put(2, 4, price=21)]
    orders.copy(*pending, put(5, 9, price=10.5))
    return orders


def seen(orders: Feed) -> list[list[Row]]:
    """What the views show; prices as numbers that are equal in any type."""
    price = "CAST(price AS decimal(38,10))"
    found = [orders.current("id", price), orders.changes("id", price, "hdr__operation")]
    return [*found, orders.history("id", price)] if orders.dataset.kept.history else found


def is_clean(orders: Feed) -> bool:
    """Whether `verify` finds nothing."""
    return not verify(orders.table()).findings


@contextmanager
def killed_at(patch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool) -> Iterator[None]:
    """The process ends before, or after, it calls something for the first time."""
    real: Callable[..., Any] = getattr(owner, name)

    def dying(*given: Any, **named: Any) -> Any:
        if after:
            real(*given, **named)
        raise KilledError

    with patch.context() as scope, pytest.raises(KilledError):
        scope.setattr(owner, name, dying)
        yield


# Its short form is the session of docs/schema-changes.md.
@pytest.mark.slow
@pytest.mark.parametrize("applier", [FastApplier(), PlainApplier()], ids=["fast", "plain"])
def test_a_declared_type_is_reached_by_a_rewrite(lab: Lab, applier: Applier) -> None:
    orders = priced(lab)
    orders.applier = {"applier": applier}
    before, snapshot = seen(orders), orders.table().state.snapshot
    orders.configure(**EXACT)

    (change,) = (one for one in plan(lab, orders.task).changes() if one.kind == "type_rewritten")
    assert change.action == "apply"
    assert "with decimal(18,2), in one commit" in change.means
    migrate(lab, orders.task)

    assert not plan(lab, orders.task).has_changes
    assert orders.types()["price"] == "decimal(18,2)"
    assert seen(orders) == before
    assert is_clean(orders)
    # What was quarantined for the old type is read again.
    replay(lab.context(), ProjectTable(orders.task, orders.dataset, None), None)
    assert not orders.rejected()
    orders.apply()
    assert (5, Decimal("10.50")) in orders.current("id", "price")
    assert is_clean(orders)
    # Earlier snapshots have the old column.
    old = lab.spark.sql(f"SELECT price FROM {orders.relation} VERSION AS OF {snapshot}")
    assert dict(old.dtypes)["price"] == "bigint"


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{"history": False}, {"format_version": 3}, {"delete_mode": "soft"}]
)
def test_tables_of_other_settings_are_rewritten_likewise(lab: Lab, how: dict[str, Any]) -> None:
    orders = priced(lab, **how)
    before = seen(orders)
    orders.configure(columns={"price": "double"})

    migrate(lab, orders.task)

    assert orders.types()["price"] == "double"
    assert seen(orders) == before
    orders.apply()
    # The same records once more change nothing.
    after = seen(orders)
    orders.apply(put(1, 6, price=12), put(4, 7, price=40), put(12, 12, price=12), drop(3, 8))
    assert seen(orders)[0] == after[0]
    assert is_clean(orders)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "after"),
    [
        (retyping, "stage", True),
        (WorkingDataset, "publish", False),
        (WorkingDataset, "publish", True),
        (DatasetTable, "commit", True),
    ],
    ids=["staged", "before the views", "after the views", "committed"],
)
def test_a_rewrite_that_is_killed_goes_on(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool
) -> None:
    orders = priced(lab)
    before = seen(orders)
    orders.configure(**EXACT)

    with killed_at(monkeypatch, owner, name, after=after):
        migrate(lab, orders.task)

    assert seen(orders) == before
    assert is_clean(orders)
    # A run in between works with the table as it is.
    orders.run("always")
    assert seen(orders)[0] == before[0]
    migrate(lab, orders.task)
    assert orders.types()["price"] == "decimal(18,2)"
    assert seen(orders)[0] == before[0]
    assert seen(orders)[2] == before[2]
    assert is_clean(orders)


@pytest.mark.slow
def test_ties_would_turn_over_if_former_types_were_forgotten(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = priced(lab)
    orders.configure(**EXACT)
    real = retyping._state_after

    def forgetful(*given: Any) -> CopyState:
        state = real(*given)
        return replace(state, columns=replace(state.columns, former={}))

    monkeypatch.setattr(retyping, "_state_after", forgetful)
    migrate(lab, orders.task)

    assert {one.rule for one in verify(orders.table()).findings} == {"changed_version"}


@pytest.mark.slow
def test_other_settings_may_change_with_a_type(lab: Lab) -> None:
    orders = lab.feed("orders", history=False, except_columns=["op", "seq", "at", "city"])
    orders.apply(put(1, 1, price=10, city="Leon"))
    orders.configure(history=True, except_columns=["op", "seq", "at"], **EXACT)

    migrate(lab, orders.task)

    orders.apply(put(1, 2, price=10.5, city="Tula"))
    assert orders.history("price", "city") == [
        (Decimal("10.00"), None, "I", 1.0, 2.0),
        (Decimal("10.50"), "Tula", "U", 2.0, None),
    ]


def test_values_that_the_new_type_does_not_hold_stop_it(lab: Lab) -> None:
    orders = lab.feed("orders")
    orders.apply(put(1, 1, price=2**53 + 1, name="Ann"), put(2, 2, price=7, name="8"))
    orders.copy(put(1, 3, price=2**60 + 1, name="9"))
    before, state = orders.current("*"), orders.table().state
    orders.configure(columns={"price": "double"})

    with pytest.raises(OperationError) as told:
        migrate(lab, orders.task)

    assert told.value.code == "POLYNYA-LAKE-024"
    assert "2 stored values of the type bigint" in str(told.value)
    assert "'1152921504606846977', '9007199254740993'" in str(told.value)
    assert orders.current("*") == before
    assert orders.table().state.copy.settings == state.copy.settings
    orders.configure(columns={"name": "bigint"})
    with pytest.raises(OperationError, match=r"1 stored value of the type string .* 'Ann'"):
        migrate(lab, orders.task)


@pytest.mark.slow
def test_a_row_that_got_lost_on_the_way_is_noticed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = priced(lab)
    before = seen(orders)
    orders.configure(**EXACT)
    real = retyping._converted_rows
    monkeypatch.setattr(
        retyping, "_converted_rows", lambda *given: real(*given).where("id IS NULL OR id <> 4")
    )

    with pytest.raises(InternalError, match="had to be rewritten"):
        migrate(lab, orders.task)

    assert seen(orders) == before


def test_numbers_widen_when_a_fraction_comes(lab: Lab) -> None:
    orders = lab.feed("orders", schema_evolution={"widen_numbers": "decimal"})
    orders.apply(put(1, 1, price=10, pieces=1))
    orders.copy(put(2, 2, price=20, pieces=2))

    orders.copy(put(1, 3, price=10.5, pieces=1), put(3, 4, price=30, pieces=3))

    kinds = {"id": "bigint", "price": "decimal(38,10)", "pieces": "bigint"}
    assert orders.types() == kinds
    prices = [(1, Decimal("10.5")), (2, Decimal(20)), (3, Decimal(30))]
    assert orders.current("id", "price") == prices
    orders.apply()
    assert orders.current("id", "price") == prices
    assert len(orders.history("id")) == 4
    assert not orders.rejected()
    told = [event.text() for event in lab.events if event.type == "columns.rewritten"]
    assert told[0].startswith(f"rewrote  {orders.view}: price bigint → decimal(38,10), 2 rows in ")


@pytest.mark.slow
def test_numbers_that_widen_to_a_type_too_small_change_nothing(lab: Lab) -> None:
    orders = lab.feed("orders", schema_evolution={"widen_numbers": "double"})
    orders.apply(put(1, 1, price=2**53 + 1))

    with pytest.raises(OperationError, match="such as '9007199254740993'"):
        orders.copy(put(2, 2, price=0.5))

    orders.configure(schema_evolution={"widen_numbers": "decimal"})
    orders.apply()
    assert orders.current("id", "price") == [(1, Decimal(2**53 + 1)), (2, Decimal("0.5"))]


def test_the_type_of_a_column_that_files_are_or_were_sorted_by_stays(lab: Lab) -> None:
    orders = lab.feed("orders", sort_by=["price"])
    orders.copy(put(1, 1, price=10))

    for layout in (["price"], ["id"]):
        orders.configure(sort_by=layout)
        table = orders.table("an owner")
        table.take_over()
        with pytest.raises(OperationError) as told:
            retyping.retype(table, {"price": parse_type("string")}, lambda _: None)
        assert told.value.code == "POLYNYA-LAKE-055"
        assert "sorted by price" in told.value.message

    assert orders.types()["price"] == "bigint"
