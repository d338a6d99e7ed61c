"""Landed batches that a table has not copied outlive `folder_retention`, within a bound."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from polynya.engine.backlog import LandedReader, LandedReaders
from polynya.formats.batch import FileProgress
from polynya.formats.landed import batch_name
from polynya.lake.table.state import CopyState, Membership, SourcePosition
from polynya.model.config.task import StorageTask
from polynya.observe.streams import StreamExpired, StreamKept
from polynya.streams.landing import LandedLog
from tests.engine.tasks.test_streams import Zone
from tests.streams.kafka.fake import FakeKafka

KEPT = {"folder_retention": {"keep": "2d", "keep_unread": "10d"}}


def reader(name: str, path: str = "clicks/*", **landing: Any) -> StorageTask:
    return StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": name,
            "schema": "web",
            "landing": {"path": "in", "format": "stream", **landing},
            **({"datasets": [{"name": name, "keys": ["id"], "path": path}]} if not landing else {}),
        }
    )


def copied(number: int, *, whole: bool = True, **parts: Any) -> CopyState:
    path = f"in/clicks/{batch_name(number)}"
    position = SourcePosition(files={path: FileProgress(9, 1, complete=whole)}, **parts)
    return CopyState(position=position)


def zone_of(batches: int) -> tuple[Zone, LandedLog]:
    """A zone with so many batches, one a day; the newest is of today."""
    source = FakeKafka("clicks")
    [partition] = source.topic("clicks").partitions
    zone = Zone(source, KEPT)
    zone.tasks = None
    for number in range(batches):
        partition.add(b"x")
        zone.run()
        zone.clock.advance(timedelta(days=1 if number + 1 < batches else 0))
    zone.events.clear()
    return zone, LandedLog(zone.store, "in", "clicks")


@pytest.mark.parametrize(
    ("state", "left"),
    [
        pytest.param(copied(6), [5, 6], id="all was copied"),
        pytest.param(copied(2), [3, 4, 5, 6], id="two were copied"),
        pytest.param(copied(3, whole=False), [3, 4, 5, 6], id="a part of the third was"),
        pytest.param(None, [1, 2, 3, 4, 5, 6], id="the table is not there yet"),
    ],
)
def test_what_a_table_has_not_copied_stays(state: CopyState | None, left: list[int]) -> None:
    zone, log = zone_of(6)
    zone.tasks = [reader("ahead"), reader("late"), reader("others", "elsewhere/*")]
    zone.states["web.ahead"] = copied(6)
    if state is not None:
        zone.states["web.late"] = state

    zone.run()

    assert log.numbers() == left
    kept = [(one.number, one.tables) for one in zone.told(StreamKept)]
    assert kept == ([] if left[0] == 5 else [(left[0], ("web.late",))])


def test_an_unread_batch_goes_at_the_end_of_its_bound_and_that_is_told() -> None:
    zone, log = zone_of(6)
    zone.tasks, zone.states["web.late"] = [reader("late")], copied(1)
    zone.clock.advance(timedelta(days=7))

    zone.run()

    # The first three were written ten days ago or earlier; the first of them was copied.
    assert log.numbers() == [4, 5, 6]
    [expired] = zone.told(StreamExpired)
    assert (expired.files, expired.unread_files) == (3, 2)


def test_nothing_counts_as_copied_where_nobody_knows_who_reads() -> None:
    zone, log = zone_of(6)

    zone.run()

    assert log.numbers() == [1, 2, 3, 4, 5, 6]
    [kept] = zone.told(StreamKept)
    assert "it is unknown which tables lack them" in kept.text()


def test_without_a_table_that_reads_it_age_alone_decides() -> None:
    zone, log = zone_of(6)
    zone.tasks = [reader("others", "elsewhere/*")]

    zone.run()

    assert log.numbers() == [5, 6]
    assert zone.told(StreamKept) == []


def test_a_task_whose_tables_share_files_has_its_own_position_and_that_of_tables_behind() -> None:
    tables = reader("shop", path="in", format="debezium")
    ledger = copied(5)
    ledger = CopyState(
        position=ledger.position, membership=Membership(members=["shop.a", "shop.b"])
    )
    states = {
        "web.shop__landing": ledger,
        "web.a": copied(2, behind=True),
        "web.b": copied(3),
    }
    readers = LandedReaders(lambda one: states.get(one.relations.current))
    readers.know([tables])

    assert readers.of("in/clicks") == (
        LandedReader("the tables of shop", 6),
        LandedReader("web.a", 3),
    )
    assert readers.of("elsewhere/clicks") == ()


def test_who_cannot_be_asked_is_not_known() -> None:
    def gone(_: object) -> CopyState:
        raise ConnectionError

    readers = LandedReaders(gone)
    readers.know([reader("late")])

    assert readers.of("in/clicks") is None
