"""A table of large clean files gets another layout by the rule of maintenance alone."""

from __future__ import annotations

import base64
import json
import random
from datetime import UTC, datetime, timedelta

import pytest

from polynya.engine.dataset import WorkingDataset
from polynya.engine.maintenance import MaintenanceUnit
from polynya.engine.unit import IDLE, TimeSlice
from polynya.lake.iceberg.files import DataFile
from polynya.lake.maintenance.health import MaintenanceRecord, remember
from polynya.lake.read.verify import verify
from polynya.model.headers import Partition
from polynya.observe.maintenance import MaintenanceDone
from polynya.testing.fakes import FakeClock
from tests.lab.lab import Feed, Lab
from tests.lab.owned import owned

HOUR = 3600.0


def filled(lab: Lab, target_file_size: str, *loads: int) -> Feed:
    """A table in no order, maintained for a week: a file for so many rows of 0.35 KB each."""
    any_of, rows = random.Random(15), sum(loads)
    ids = any_of.sample(range(rows), rows)
    orders = lab.parquet_feed("orders", history=False, target_file_size=target_file_size)
    for count in loads:
        some = [ids.pop() for _ in range(count)]
        notes = [base64.b64encode(any_of.randbytes(300)).decode() for _ in some]
        customer = [key * 7919 % rows for key in some]
        orders.land_table(id=some, seq=some, customer=customer, note=notes)
        orders.run("always")
    lab.clock = FakeClock(datetime.now(UTC) + timedelta(hours=20))
    remember(owned(orders), MaintenanceRecord(began=lab.clock.now() - timedelta(days=8)))
    return orders


class Maintained:
    """The maintenance of a dataset in a run that goes on, which copies nothing."""

    def __init__(self, orders: Feed) -> None:
        self.orders = orders
        self.table = WorkingDataset.existing(orders.lab.context(), orders.dataset)
        self.beside = MaintenanceUnit(orders.dataset)

    def rewrites(self) -> list[MaintenanceDone]:
        """Give it turns until nothing pays; what it did to data files."""
        self.orders.lab.events.clear()
        while self.beside.request_if_due(self.table, IDLE).ready_units:
            self.beside.unit.step(TimeSlice(at_once=False))
            self.orders.lab.clock.sleep(1)
        done = [one for one in self.orders.lab.events if isinstance(one, MaintenanceDone)]
        return [one for one in done if one.action.startswith("rewrite_")]


def files(orders: Feed) -> tuple[DataFile, ...]:
    table = orders.table()
    return table.table.files(Partition.CURRENT, table.state.snapshot)


def customers(orders: Feed, file: DataFile) -> list[int]:
    """Those of a file, in the order in which its rows are stored."""
    rows = orders.lab.spark.sql(
        f"SELECT customer FROM {orders.relation} WHERE _file = '{file.path}' ORDER BY _pos"
    )
    return [row[0] for row in rows.collect()]


def test_old_files_are_parted_and_sorted_when_it_pays_and_only_once(lab: Lab) -> None:
    orders = filled(lab, "4MB", 10_000)
    before = sorted(orders.current("id", "customer"))
    orders.configure(partition_by=["truncate(5000, id)"], sort_by=["customer desc"])
    maintenance = Maintained(orders)

    (done,) = maintenance.rewrites()

    assert done.action == "rewrite_layout"
    assert done.reason.startswith("1 file of another layout, 3.")
    assert done.whole and done.gain_bytes == done.expected_gain_bytes > 0
    assert sorted(orders.current("id", "customer")) == before
    found = sorted((json.loads(one.values or "[]")[1], one.sort_order) for one in files(orders))
    assert found == [(0, 1), (5000, 1)]
    for file in files(orders):
        assert customers(orders, file) == sorted(customers(orders, file), reverse=True)
    assert not verify(orders.table()).findings

    # All files have the layout: none is written again for it, however long it waits.
    lab.clock.sleep(3 * HOUR)
    assert maintenance.rewrites() == []


@pytest.mark.slow
def test_large_files_are_sorted_a_part_at_a_time_within_the_budget(lab: Lab) -> None:
    orders = filled(lab, "1MB", *[3500] * 6)
    before = sorted(orders.current("id", "customer"))
    orders.configure(sort_by=["customer"], maintenance={"budget": {"bytes_per_hour": "5MB"}})
    maintenance = Maintained(orders)

    first = maintenance.rewrites()
    lab.clock.sleep(HOUR)
    second = maintenance.rewrites()

    assert [one.action for one in (*first, *second)] == ["rewrite_layout"] * 2
    assert [one.whole for one in (*first, *second)] == [False, True]
    assert "the budget is used up" in first[0].ended
    assert all(2 * 2**20 < one.written_bytes < 5 * 2**20 for one in (*first, *second))
    assert [one.sort_order for one in files(orders)] == [1] * len(files(orders))
    for file in files(orders):
        assert customers(orders, file) == sorted(customers(orders, file))
    assert sorted(orders.current("id", "customer")) == before
    lab.clock.sleep(HOUR)
    assert maintenance.rewrites() == []
