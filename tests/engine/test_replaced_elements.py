"""A newer record of an exploded array deletes the elements that it lacks (`replace_elements`)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from polynya.engine.commands.rebuild import rebuild
from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.lake.read.verify import verify
from polynya.model.config.dataset import DELETING
from polynya.model.config.task import StorageTask, resolved
from tests.lab.lab import STARTED, Lab, next_schema
from tests.lab.landed import LandedTable
from tests.oracle.elements import Record, current, history

ORDERS: dict[str, Any] = {
    "mode": "merge",
    "columns": [
        {"name": "order_id", "expression": "order_id", "type": "int", "key": 1},
        {"name": "line", "expression": "lines[].name", "type": "string", "key": 2},
        {"name": "value", "expression": "lines[].value", "type": "int"},
    ],
    "except_columns": ["lines", "place", "at", "gone"],
    "optional_columns": ["lines"],
    "replace_elements": True,
    "sequence_by": ["place"],
    "timestamp": "at",
    "partition_by": [],
}


def message(record: Record) -> dict[str, Any]:
    """A record as its message says it."""
    made: dict[str, Any] = {
        "order_id": record.order,
        "place": record.place,
        "at": (STARTED + timedelta(seconds=record.time)).isoformat(),
        "gone": record.gone,
    }
    if record.lines is not None:
        made["lines"] = [{"name": name, "value": value} for name, value in record.lines]
    return made


def seconds(moment: Any) -> int | None:
    return None if moment is None else round((moment - STARTED).total_seconds())


def seen_history(table: LandedTable) -> list[tuple[Any, ...]]:
    """The versions as the History view shows them."""
    columns = ("order_id", "line", "value", "hdr__deleted", "hdr__from_timestamp")
    rows = table.look.history(*columns, "hdr__to_timestamp")
    return sorted(
        ((*row[:4], seconds(row[4]), seconds(row[5])) for row in rows),
        key=lambda row: (row[0], row[1], row[4], row[5] is None, row[5], row[3]),
    )


def in_order(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: (row[0], row[1], row[4], row[5] is None, row[5], row[3]))


FIRST = [
    Record(1, 10, 10, [("a", 1), ("b", 2)]),
    Record(2, 10, 10, [("a", 5)]),
    Record(3, 10, 10, [("a", 7), ("b", 8)]),
]


def test_elements_that_the_newer_record_lacks_are_deleted(lab: Lab) -> None:
    orders = LandedTable(lab, {**ORDERS, "history": True})
    newer = [
        Record(1, 20, 20, [("a", 3), ("c", 4)]),
        Record(2, 20, 20, []),
        Record(3, 20, 20, None),
    ]
    late = [Record(1, 15, 15, [("b", 6), ("d", 9)]), Record(2, 5, 5, [("z", 1)])]
    orders.take(*map(message, FIRST))
    orders.land(*map(message, newer))
    orders.run("never")
    assert orders.look.current("order_id", "line", "value") == current([*FIRST, *newer])
    assert seen_history(orders) == in_order(history([*FIRST, *newer]))

    orders.take(*map(message, late))

    landed = [*FIRST, *newer, *late]
    assert orders.look.current("order_id", "line", "value") == [(1, "a", 3), (1, "c", 4)]
    assert seen_history(orders) == in_order(history(landed))
    assert orders.look.rejected() == []
    assert verify(orders.look.table()).findings == []


def random_records(chance: random.Random, orders: int, *, soft: bool) -> list[Record]:
    """Records of some orders in any order, some of them twice or with the place of another."""
    records = []
    for order in range(orders):
        for _ in range(chance.randint(1, 5)):
            place = chance.randint(1, 6)
            lines = [
                (chance.choice("abcd"), chance.randint(0, 3)) for _ in range(chance.randint(0, 3))
            ]
            made = Record(
                order,
                place,
                # Mostly along the places: times may go back.
                place * 10 + chance.choice([0, 0, 0, -25]),
                chance.choice([lines, lines, lines, lines, None]),
                soft and chance.random() < 0.15,
            )
            records += [made] * chance.choice([1, 1, 1, 2])
    chance.shuffle(records)
    return records


def parts_of(chance: random.Random, records: Sequence[Record]) -> list[Sequence[Record]]:
    cuts = sorted(chance.sample(range(len(records) + 1), 3))
    return [records[a:b] for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True)]


def seen_current(table: LandedTable) -> list[tuple[Any, ...]]:
    """The rows that are not deleted."""
    if table.transform.get("soft_delete"):
        marked = table.look.current("order_id", "line", "value", "hdr__deleted")
        return sorted(row[:3] for row in marked if not row[3])
    return sorted(table.look.current("order_id", "line", "value"))


def assert_any_split_agrees(lab: Lab, seed: int, how: dict[str, Any], *, orders: int = 25) -> None:
    """Land random records in parts, applied or not, and compare the views after each."""
    chance = random.Random(seed)
    table = LandedTable(lab, {**ORDERS, **how})
    landed: list[Record] = []
    records = random_records(chance, orders, soft="soft_delete" in how)
    for part in parts_of(chance, records):
        landed += part
        table.land(*map(message, part))
        table.run(chance.choice(["always", "never"]))
        assert seen_current(table) == current(landed)
        if how.get("history"):
            assert seen_history(table) == in_order(history(landed))
    table.run("always")
    assert seen_current(table) == current(landed)
    assert table.look.rejected() == []
    assert verify(table.look.table()).findings == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {"history": True},
        {"history": False},
        {"history": True, "soft_delete": "gone"},
        {"history": False, "soft_delete": "gone"},
    ],
)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_any_order_and_split_gives_what_the_records_say(
    module_lab: Lab, seed: int, how: dict[str, Any]
) -> None:
    lab = Lab(
        module_lab.spark, module_lab.project, module_lab.landing / next_schema(), next_schema()
    )
    assert_any_split_agrees(lab, seed, how)


class KeptOrders(LandedTable):
    """The same with all applied events."""

    @property
    def task(self) -> StorageTask:
        task = super().task
        kept = task.datasets[0].model_copy(update={"changes_retention": "keep"})
        return task.model_copy(update={"datasets": (kept,)})


LANDED = [
    *FIRST,
    Record(1, 20, 20, [("a", 3), ("c", 4)]),
    Record(2, 20, 20, []),
    Record(1, 15, 15, [("b", 6), ("d", 9)]),
]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
def test_a_reload_and_a_rebuild_find_what_the_records_say(lab: Lab, *, kept: bool) -> None:
    orders = (KeptOrders if kept else LandedTable)(lab, {**ORDERS, "history": True})
    for part in (LANDED[:3], LANDED[3:]):
        orders.take(*map(message, part))
    before, dataset = seen_history(orders), resolved(orders.task, orders.task.datasets[0])

    request = ReloadRequest(orders.task, dataset, mode=DELETING)
    reload(lab.context("never"), request)
    after_reload = seen_history(orders)
    if kept:
        rebuilt = rebuild(lab.context("never"), dataset)
        assert (rebuilt.restored, rebuilt.surplus, rebuilt.corrected) == (0, 0, 0)

    assert before == after_reload == seen_history(orders) == in_order(history(LANDED))
    assert verify(orders.look.table()).findings == []
