"""Datasets whose files are parted by columns of the user's choice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.lake.maintenance import rewrite_data_files
from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.rewrite_data_files import rewrite_layout
from polynya.lake.read.verify import verify
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from polynya.model.errors import ConfigError
from polynya.model.headers import Partition
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.twins import NEVER_AGAIN, WRITERS, written_by
from tests.oracle.packs.read_back import READERS

BY = ["day(day)", "bucket(4, id)"]
TYPES = {"day": "date", "name": "string"}


def on(day: int | None, **more: Any) -> Any:
    return {"day": None if day is None else f"2026-01-{day:02}", **more}


def named(name: str, value: str) -> Any:
    return {name: value}


VERSIONS = [pytest.param(2, id="v2"), pytest.param(3, id="v3", marks=pytest.mark.slow)]


@pytest.fixture(params=VERSIONS)
def users(lab: Lab, request: pytest.FixtureRequest) -> Feed:
    return lab.feed(
        history=True, columns=TYPES, partition_by=["day(day)"], format_version=request.param
    )


def values(table: DatasetTable, partition: Partition) -> list[Any]:
    """Values of the added fields of the live files of a partition."""
    files = table.table.files(partition, table.state.snapshot)
    return sorted((json.loads(file.values)[1:] if file.values else None for file in files), key=str)


def test_rows_move_with_their_partition(users: Feed) -> None:
    users.apply(put(1, 1, **on(1)), put(2, 2, **on(1)), put(3, 3, **on(2)), put(4, 4, **on(None)))
    users.apply(put(1, 5, **on(2)), drop(2, 6), put(4, 7, **on(3)), put(5, 8, **on(9)))
    users.copy(put(3, 9, **on(7)))

    table = users.table()
    rows = [(k, f"2026-01-{d:02}") for k, d in [(1, 2), (3, 7), (4, 3), (5, 9)]]
    assert [(k, str(d)) for k, d in users.current("id", "day")] == rows
    assert len(users.history("id")) == 9
    assert {tuple(one) for one in values(table, Partition.CURRENT)} >= {
        ("2026-01-02",), ("2026-01-03",), ("2026-01-09",),
    }  # fmt: skip
    # What is found by its partition alone has no values of other columns.
    assert values(table, Partition.CHANGES) == [None]
    assert values(table, Partition.ASSET_STATE) == [None, None]
    users.apply()
    assert [(k, str(d)) for k, d in users.current("id", "day")] == rows


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_other_readers_see_the_same_rows(users: Feed, reader: str) -> None:
    users.apply(put(1, 1, **on(1)), put(2, 2, **on(1)), put(3, 3, **on(2)), put(4, 4, **on(None)))
    users.apply(put(1, 5, **on(2)), drop(2, 6), put(4, 7, **on(3)))
    namespace, _, name = users.internal.partition(".")
    names = ("id", "day", "hdr__operation")

    for partition in ("current", "prior"):
        here = f"hdr__partition = '{partition}'"
        rows = READERS[reader](users.lab.project, namespace, name, names, here)
        found = sorted((tuple(row[one] for one in names) for row in rows), key=repr)
        assert found == users.stored(partition, *names)


def test_a_query_that_asks_for_a_day_plans_only_its_files(users: Feed) -> None:
    users.apply(*(put(key, key, **on(1 + key % 5)) for key in range(1, 21)))

    assert planned(users, "day = DATE '2026-01-03'") == 1
    assert planned(users, "true") == 5


def planned(users: Feed, condition: str) -> int:
    """Data files that a query of Current reads."""
    rows = users.lab.spark.sql(
        f"SELECT DISTINCT _file FROM {users.relation} "
        f"WHERE hdr__partition = 'current' AND {condition}"
    )
    scanned = rows.toArrow().num_rows
    table = users.table().table
    made = table.iceberg.expressions.Expressions
    scan = table.java.newScan().filter(made.equal("hdr__partition", "current"))
    if condition != "true":
        scan = scan.filter(made.equal("day", "2026-01-03"))
    tasks = scan.planFiles()
    each, count = tasks.iterator(), 0
    while each.hasNext():
        each.next()
        count += 1
    assert scanned == count
    return count


@pytest.mark.slow
def test_a_filled_table_gets_another_layout(lab: Lab) -> None:
    users = lab.feed(history=True, columns=TYPES)
    users.apply(*(put(key, key, **on(1 + key % 3)) for key in range(1, 10)))
    users.copy(put(1, 21, **on(8)), drop(2, 22))
    users.configure(partition_by=BY)

    users.run("always")
    users.apply(put(3, 31, **on(8)), put(4, 32, **on(8)), put(40, 33, **on(None)))

    assert len(users.current("id")) == 9
    table = users.table()
    found = values(table, Partition.CURRENT)
    assert None in found and any(found)
    users.configure(partition_by=["truncate(2, name)"])
    users.apply(put(5, 41, name="Eva"), put(6, 42, name="Evelyn"), put(7, 43))
    found = values(users.table(), Partition.CURRENT)
    assert ["Ev"] in found and [None] in found
    users.configure(partition_by=[])
    users.apply(put(8, 51, name="Hal"), drop(5, 52))
    assert len(users.current("id")) == 8
    assert users.table().table.java_files().newest.is_plain
    assert len(users.history("id")) == 9 + 2 + 3 + 3 + 2


@pytest.mark.slow
def test_a_column_that_comes_later_parts_from_then_on(lab: Lab) -> None:
    users = lab.feed(history=False, partition_by=["day"], optional_columns=["day"])
    users.apply(put(1, 1, name="Ann"))
    assert users.table().table.java_files().newest.is_plain

    users.apply(put(2, 2, **on(4)), put(1, 3, name="Anna"))

    assert values(users.table(), Partition.CURRENT) != [None]
    assert users.current("id", "name", "day") == [
        (1, "Anna", None), (2, None, "2026-01-04"),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_type_that_the_transform_is_not_for_is_refused(lab: Lab) -> None:
    users = lab.feed(history=False, partition_by=["day(name)"])

    with pytest.raises(ConfigError) as caught:
        users.apply(put(1, 1, name="Ann"))

    assert caught.value.code == "POLYNYA-CFG-042"
    assert "`day` is for date, timestamp, timestamp_ntz, not for string" in str(caught.value)


def test_hostile_names_and_values_part_files(lab: Lab) -> None:
    odd = "a/b=`c` %2F.d,(e)"
    by = "`" + odd.replace("`", "``") + "`"
    users = lab.feed(history=True, partition_by=[by])
    texts = ["../../x", "a=b/c", "__HIVE_DEFAULT_PARTITION__", "null", '"', "\n", "日本", ""]
    users.apply(*(put(key, key, **named(odd, text)) for key, text in enumerate(texts)))
    users.apply(
        *(put(key, 20 + key, **named(odd, text)) for key, text in enumerate(reversed(texts)))
    )

    name = "`" + odd.replace("`", "``") + "`"
    assert [row[1] for row in users.current("id", name)] == texts[::-1]
    assert all("/../" not in str(path) for path in users.files())


@pytest.mark.slow
def test_a_column_that_parts_files_is_not_dropped(lab: Lab) -> None:
    orders = lab.parquet_feed(
        "orders", partition_by=["bucket(2, amount)"], schema_evolution={"drop_column": "propagate"}
    )
    orders.land_table(id=[1, 2, 3], seq=[1, 2, 3], amount=[10, 20, 30], note=["a", "b", "c"])
    orders.run("always")
    orders.land_table(id=[1, 4], seq=[4, 5])
    orders.run("always")

    assert orders.columns() == ["id", "amount"]
    assert orders.current("id", "amount") == [(1, None), (2, 20), (3, 30), (4, None)]
    assert not verify(orders.table()).findings


@pytest.mark.parametrize("by", WRITERS)
def test_maintenance_writes_old_files_again_in_the_new_layout(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    written_by(by, monkeypatch)
    users = lab.feed(history=True, columns=TYPES)
    users.apply(*(put(key, key, **on(1 + key % 3)) for key in range(1, 10)))
    users.apply(put(1, 21, **on(8)), drop(2, 22))
    before = users.current("*"), users.history("*")
    users.configure(partition_by=["day(day)"], sort_by=["id desc"])
    table = users.table("owner")
    enter(table)

    done = rewrite_layout(table, ActionLimits(STARTED))

    assert (users.current("*"), users.history("*")) == before
    assert done.commits == 1 and done.whole
    days = [["2026-01-01"], ["2026-01-02"], ["2026-01-03"], ["2026-01-08"]]
    assert values(table, Partition.CURRENT) == values(users.table(), Partition.CURRENT) == days
    in_order = users.lab.spark.sql(
        f"SELECT id FROM {users.relation} WHERE hdr__partition = 'current' "
        "AND day = DATE '2026-01-01' ORDER BY _pos"
    )
    assert [row[0] for row in in_order.collect()] == [9, 6, 3]
    assert not verify(users.table()).findings
    assert rewrite_layout(table, ActionLimits(STARTED)).commits == 0
    users.apply(put(3, 31, **on(2)), drop(9, 32))
    assert (3,) in users.current("id") and (9,) not in users.current("id")


@pytest.mark.slow
@pytest.mark.parametrize("by", WRITERS)
def test_what_an_apply_deletes_meanwhile_is_deleted_in_the_new_partitions(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    written_by(by, monkeypatch)
    users = lab.feed(history=False, columns=TYPES)
    users.apply(*(put(key, key, **on(1 + key % 3)) for key in range(1, 40)))
    users.configure(partition_by=["day(day)"])
    table = users.table("owner")
    enter(table)
    real = rewrite_data_files.land

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(rewrite_data_files, "land", real)
        copy_batch(table, users.batch(put(3, 50, **on(9)), drop(4, 51)), FastApplier(), now=STARTED)
        FastApplier(rewriting=NEVER_AGAIN).apply(table, reason="a test", now=STARTED)
        return real(*arguments)

    monkeypatch.setattr(rewrite_data_files, "land", late)
    done = rewrite_layout(table, ActionLimits(STARTED))

    assert done.commits == 1
    assert len(users.current("id")) == 38
    assert (4,) not in users.current("id")
    assert ("2026-01-09",) in {tuple(one) for one in values(users.table(), Partition.CURRENT)}
    assert not verify(users.table()).findings
