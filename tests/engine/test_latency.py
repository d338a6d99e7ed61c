"""The table of latencies: written in batches, kept for days, maintained, without a JVM."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from polynya.engine.backlog import Backlog
from polynya.engine.latency import LatencyRecorder
from polynya.formats.batch import FilePart
from polynya.lake.warehouse.latency_table import NAME, LatencyTable
from polynya.model.loader import LoadedProject, load_project
from polynya.observe.events import Event
from polynya.observe.latency import LatencySample
from polynya.testing.fakes import FakeClock
from tests.observe.test_latency import copied
from tests.projects import PROJECT, USERS, write_project

# Snapshots have the time of this machine.
NOW = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
DAY = timedelta(days=1)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    warehouse = tmp_path / "tables"
    warehouse.mkdir()
    return SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(warehouse))


def sample(days: float, total: float = 1.0) -> LatencySample:
    return LatencySample(NOW - days * DAY, "users", "shop.users", 1, 10, total=total)


def files(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "tables").rglob("*.parquet")]


@pytest.mark.slow
def test_old_days_go_a_day_becomes_one_file_and_no_file_stays_that_nothing_has(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = LatencyTable(catalog, "shop_internal")
    for one in (sample(40), sample(1.0, 2.0), sample(1.01, 3.0), sample(0), sample(0.01)):
        table.append([one])
    everything = NOW - 100 * DAY

    table.maintain(keep=30 * DAY, now=NOW)
    kept = sorted(one.total or 0.0 for one in table.read(everything))
    # Two hours later the snapshots from before are over.
    table.maintain(keep=30 * DAY, now=datetime.now(UTC) + timedelta(hours=2))

    assert kept == sorted(one.total or 0.0 for one in table.read(everything)) == [1, 1, 2, 3]
    assert len(files(tmp_path)) == 3
    loaded = catalog.load_table(("shop_internal", NAME))
    assert len(loaded.metadata.snapshots) == 1


def test_only_samples_of_the_window_are_read(catalog: Catalog) -> None:
    table = LatencyTable(catalog, "shop_internal")
    assert table.read(NOW) == []

    table.append([sample(2), sample(0.5), sample(0)])
    assert table.read(NOW - DAY) == [sample(0.5), sample(0)]


def test_a_commit_that_another_node_was_faster_with_is_repeated(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = LatencyTable(catalog, "shop_internal")
    table.append([sample(1)])
    commit, lost = SqlCatalog.commit_table, iter([True, True, False])

    def losing(self: Any, *given: Any) -> Any:
        if next(lost):
            raise CommitFailedException("another one was faster")
        return commit(self, *given)

    monkeypatch.setattr(SqlCatalog, "commit_table", losing)
    table.append([sample(0)])
    monkeypatch.undo()

    assert len(table.read(NOW - 2 * DAY)) == 2


def project(tmp_path: Path, settings: str = "latency: {}\n") -> LoadedProject:
    folder = write_project(tmp_path, users=USERS)
    (folder / "polynya.yml").write_text(PROJECT + settings)
    return load_project(folder)


def recorder(folder: Path, told: list[Event], clock: FakeClock, **more: Any) -> LatencyRecorder:
    return LatencyRecorder(project(folder), clock=clock, tell=told.append, **more)


def test_what_was_measured_is_written_in_few_commits(catalog: Catalog, tmp_path: Path) -> None:
    clock, told = FakeClock(NOW), list[Event]()
    one = recorder(tmp_path, told, clock, open_catalog=lambda: catalog)
    for _ in range(60):
        clock.advance(timedelta(minutes=1))
        one.take(copied(1.0, age=5.0))
        one.write_if_due()

    written = LatencyTable(catalog, "shop_internal").read(NOW)
    assert (len(written), sum(each.rows for each in written)) == (12, 590)
    table = catalog.load_table(("shop_internal", NAME))
    assert len(table.metadata.snapshots) == 4 and told == []


def test_what_a_catalog_does_not_take_waits_and_is_told_once(
    catalog: Catalog, tmp_path: Path
) -> None:
    clock, told, down = FakeClock(NOW), list[Event](), [True]

    def opened() -> Catalog:
        if down[0]:
            raise OSError("no way")
        return catalog

    one = recorder(tmp_path, told, clock, open_catalog=opened)
    for minutes in (5, 20, 20):
        one.take(copied(1.0))
        clock.advance(timedelta(minutes=minutes))
        one.write_if_due()
    assert [event.type for event in told] == ["latency.failed"]

    down[0] = False
    with one.running():
        pass
    assert len(LatencyTable(catalog, "shop_internal").read(NOW - DAY)) == 3


def test_nothing_is_measured_or_written_without_the_setting(tmp_path: Path) -> None:
    def refusing() -> Catalog:
        raise AssertionError("nothing may be opened")

    clock = FakeClock(NOW)
    one = LatencyRecorder(
        project(tmp_path, ""), clock=clock, tell=lambda _: None, open_catalog=refusing
    )
    one.take(copied(1.0))
    clock.advance(DAY)
    one.write_if_due()
    with one.running():
        pass


def test_a_backlog_is_kept_while_nothing_is_copied(catalog: Catalog, tmp_path: Path) -> None:
    clock, told = FakeClock(NOW), list[Event]()
    one = recorder(tmp_path, told, clock, open_catalog=lambda: catalog)
    backlog = Backlog()
    one.look = lambda: backlog.datasets(clock.monotonic())
    backlog.listed("shop.users", [FilePart("a.json", 700)], clock.monotonic())
    backlog.listed("landing/of/a/stream", [FilePart("b", 1)], clock.monotonic())
    backlog.pending("shop.users", 12)
    for _ in range(4):
        clock.advance(timedelta(minutes=5))
        one.see_backlog()
    one.write_if_due()

    kept = LatencyTable(catalog, "shop_internal").read(NOW)
    assert [(each.dataset, each.waiting_bytes, each.pending_rows) for each in kept] == [
        ("shop.users", 700, 12)
    ] * 3
    assert kept[-1].waiting_seconds == 900.0 and told == []


def test_a_table_of_an_earlier_version_is_read_and_gets_the_columns_of_the_backlog(
    catalog: Catalog,
) -> None:
    table = LatencyTable(catalog, "shop_internal")
    table.append([sample(1)])
    with catalog.load_table(("shop_internal", NAME)).update_schema() as change:
        for column in ("waiting_bytes", "waiting_seconds", "pending_rows"):
            change.delete_column(column)
    assert table.read(NOW - 2 * DAY) == [sample(1)]
    table.maintain(keep=30 * DAY, now=NOW)

    table.append([replace(sample(0), pending_rows=5)])
    assert [one.pending_rows for one in table.read(NOW - 2 * DAY)] == [5, None]
