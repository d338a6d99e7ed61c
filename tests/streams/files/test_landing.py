"""A task lands files by units of work, in one object with its position, whatever is killed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from polynya.engine.context import EngineContext
from polynya.engine.runner import RunOutcome, run_once, units
from polynya.engine.tasks.streams import LandingTask
from polynya.engine.unit import Unit
from polynya.formats.landed import batch_name, opened_batch
from polynya.lake.spark.api import SparkSession
from polynya.model.config.stream_landing import StreamingLanding
from polynya.observe.events import Event
from polynya.observe.streams import StreamLanded, StreamLost
from polynya.store.object_store import LocalObjectStore, ObjectStore
from polynya.streams.files.source import Files
from polynya.streams.landed_status import stream_statuses
from polynya.streams.landing import LandedLog
from polynya.streams.source import LandingLimits, Position
from polynya.testing.fakes import FakeClock, MemoryObjectStore, MemorySourceStore
from tests.streams.files.given import NOW, PATTERN, day
from tests.streams.killing import Killed, KilledError


@dataclass
class Zone:
    """A landing zone in memory, and runs of a task that lands files there."""

    settings: dict[str, Any] = field(default_factory=dict)
    landing: MemoryObjectStore = field(default_factory=MemoryObjectStore)
    source: MemorySourceStore = field(default_factory=MemorySourceStore)
    events: list[Event] = field(default_factory=list)

    def task(self, **more: Any) -> StreamingLanding:
        files = {"url": "in", "pattern": PATTERN, **self.settings}
        return StreamingLanding.model_validate(
            {
                "apiVersion": "polynya/v1",
                "kind": "streaming_landing",
                "name": "exports",
                "source": {"files": files},
                **more,
            }
        )

    def run(self, kill: Callable[[Any], Any] = lambda store: store, **more: Any) -> RunOutcome:
        task, clock = self.task(**more), FakeClock(NOW)
        landing = cast("ObjectStore", kill(self.landing))
        context = EngineContext(cast("SparkSession", None), landing, clock, sink=self.events.append)
        files = task.source.files
        assert files is not None
        source = Files(kill(self.source), clock, task, files)
        unit = Unit("exports", "exports", LandingTask(context, task, source).step, lands=True)
        return run_once(context, [unit])

    def run_killed(self, at: int, *, after: bool) -> bool:
        """Run until a step; whether it came to that."""
        steps = [0]
        with suppress(KilledError):
            self.run(lambda store: Killed(store, steps, at, done=after), batch={"max_records": 2})
        return steps[0] >= at

    def rows(self) -> list[dict[str, Any]]:
        log = LandedLog(self.landing, "exports", "exports")
        tables = [opened_batch(self.landing.open(log.path(one)))[1].read() for one in log.numbers()]
        found: list[dict[str, Any]] = pa.concat_tables(tables).to_pylist() if tables else []
        return found


def test_files_land_in_batches_with_their_names_and_records() -> None:
    zone = Zone()
    zone.source.put(day(1, "a"), b"1\n2\n3\n")
    zone.source.put(day(0, "b"), b"4\n")

    outcome = zone.run(batch={"max_records": 2})

    assert outcome.failures == {}
    assert [
        (row["hdr__file_name"], row["hdr__file_record"], row["value"]) for row in zone.rows()
    ] == [
        (day(1, "a"), 0, b"1"),
        (day(1, "a"), 1, b"2"),
        (day(1, "a"), 2, b"3"),
        (day(0, "b"), 0, b"4"),
    ]
    told = [event for event in zone.events if isinstance(event, StreamLanded)]
    assert [(event.number, event.records) for event in told] == [(1, 2), (2, 2)]
    zone.run()
    assert len(zone.landing.objects) == 2


def test_what_cannot_be_read_any_more_is_told_and_counted() -> None:
    zone = Zone()
    zone.source.put(day(0, "a"), b"1\n")
    zone.run()
    zone.source.put(day(0, "a"), b"1\n2\n")

    zone.run()

    [lost] = [event for event in zone.events if isinstance(event, StreamLost)]
    assert lost.at == day(0, "a")
    assert "changed after it was read" in lost.text()
    log = LandedLog(zone.landing, "exports", "exports")
    assert log.footer(2).totals.lost == 1


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("delete", [False, True])
def test_a_kill_before_or_after_any_step_loses_and_doubles_nothing(
    after: bool, delete: bool
) -> None:
    at, killed = 0, True
    names = ["full/1.json", *(day(age, name) for age in (3, 0) for name in "ab")]
    while killed:
        at += 1
        zone = Zone({"delete_after_load": delete, "initial_load": "full/*.json"})
        for name in names:
            zone.source.put(name, f"{name} 0\n{name} 1\n{name} 2\n".encode())

        killed = zone.run_killed(at, after=after)
        zone.run(batch={"max_records": 2})

        values = [row["value"].decode() for row in zone.rows()]
        assert values == [f"{name} {number}" for name in names for number in range(3)], at
        assert len(zone.source.objects) == (0 if delete else 5)

    assert at > 15, "many steps were killed"


def test_of_two_processes_that_land_one_table_each_record_comes_once() -> None:
    zone = Zone()
    for number in range(6):
        zone.source.put(day(0, str(number)), f"{number}\n".encode())

    class Rival:
        """Before each of our first puts another process lands a batch of its own."""

        def __init__(self) -> None:
            self.left = 2

        def __getattr__(self, name: str) -> Any:
            return getattr(zone.landing, name)

        def put_if_absent(self, path: str, data: bytes) -> bool:
            if self.left:
                self.left -= 1
                zone.run(batch={"max_records": 1})
            return zone.landing.put_if_absent(path, data)

    rival = Rival()
    zone.run(lambda store: rival if store is zone.landing else store, batch={"max_records": 4})

    assert sorted(row["value"] for row in zone.rows()) == [b"%d" % number for number in range(6)]


def test_a_project_lands_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in" / "2026").mkdir(parents=True)
    (tmp_path / "in" / "2026" / "part-1.json").write_bytes(b'{"n":1}\n')
    settings = {"url": str(tmp_path / "in"), "pattern": "<yyyy>/part-*.json"}
    task = Zone(settings).task()
    landing = LocalObjectStore(tmp_path / "landing")
    (tmp_path / "landing").mkdir()
    context = EngineContext(cast("SparkSession", None), landing)

    outcome = run_once(context, units(context, [task]))

    assert outcome.failures == {}
    assert LandedLog(landing, "exports", "exports").footer(1).counts.records == 1


def test_a_folder_that_is_missing_is_a_failure_and_no_empty_source(tmp_path: Path) -> None:
    task = Zone({"url": str(tmp_path / "missing")}).task()
    context = EngineContext(cast("SparkSession", None), MemoryObjectStore())

    outcome = run_once(context, units(context, [task]))

    [error] = outcome.failures.values()
    assert error.code == "POLYNYA-STR-042"


def test_the_status_tells_how_far_files_were_read() -> None:
    zone = Zone()
    zone.source.put(day(0, "a"), b"1\n2\n3\n")
    zone.source.put(day(0, "b"), b"4\n5\n")
    zone.run(batch={"max_records": 2})
    zone.landing.delete(f"exports/exports/{batch_name(3)}")

    [status] = stream_statuses(zone.landing, zone.task(), NOW)

    assert (status.records, status.behind_records) == (4, None)
    assert status.positions == {
        "all before": "2026-11-22T00:00:00+00:00",
        day(0, "b"): "record 1",
        "files since then": "1",
    }


def test_what_was_read_in_vain_is_read_again_also_by_a_run_that_ends() -> None:
    zone = Zone()
    zone.source.put(day(0, "a"), b"1\n")
    task = zone.task()
    files = task.source.files
    assert files is not None
    stream = Files(zone.source, FakeClock(NOW), task, files).stream("exports")
    limits = LandingLimits(100, 1000)

    def read() -> tuple[int, Position]:
        wanted = stream.next((), {**begin}, limits, once=True)
        return stream.read(wanted, limits).rows.num_rows, wanted.end

    begin = stream.next((), None, LandingLimits(0, 0), once=True).end
    read()
    rows, end = read()

    assert rows == 1
    assert stream.next((), end, limits, once=True).is_nothing
