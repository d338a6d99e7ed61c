"""What the engine says of its steps: once, and with the time that they took."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.landing import TaskLanding, listing_of, reader_of
from polynya.engine.policy import StepSpeeds
from polynya.engine.unit import TimeSlice
from polynya.formats.base import KnownTable
from polynya.formats.batch import DatasetBatch, FileProgress
from polynya.formats.files import ChangedFile, Discovery
from polynya.lake.table.state import CopyState
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.loader import load_project
from polynya.observe.engine import FileChanged
from polynya.observe.events import Event
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.lab.lab import STARTED
from tests.projects import USERS, write_project


def test_changed_file_is_reported_once() -> None:
    told: list[Event] = []
    spark: Any = None
    context = EngineContext(spark, MemoryObjectStore(), sink=told.append)
    table: Any = SimpleNamespace(
        dataset=SimpleNamespace(relations=SimpleNamespace(current="shop.users"))
    )
    one = WorkingDataset(context, table)

    for size in (9, 9, 9, 12):
        one.report_discovery(Discovery((), (ChangedFile("users/1.json", size=size, was=7),)))

    assert [event.size_bytes for event in told if isinstance(event, FileChanged)] == [9, 12]


def test_an_apply_takes_as_long_for_a_byte_as_the_one_before() -> None:
    speeds = StepSpeeds()
    assert speeds.seconds_for("a.b", 100) is None
    speeds.took("a.b", 1000, 5.0)
    speeds.took("a.b", 0, 1.0)

    assert speeds.seconds_for("a.b", 100) == 0.5
    assert speeds.seconds_for("a.c", 100) is None


@dataclass
class FakeTable:
    """A table that takes note of when its batch was begun; reading it needs nothing else."""

    dataset: ResolvedDataset
    context: EngineContext
    name: str = "shop.users"
    waited: list[float] = field(default_factory=list)
    progress: dict[str, FileProgress] = field(default_factory=dict)
    reloading: None = None
    state: Any = field(default_factory=lambda: SimpleNamespace(copy=CopyState()))

    @property
    def table(self) -> FakeTable:
        return self

    @property
    def known_table(self) -> KnownTable:
        return KnownTable(self.dataset, {})

    def report_discovery(self, discovery: Discovery) -> None:
        assert len(discovery.files) == 1

    def copying(self, found: Discovery) -> AbstractContextManager[None]:
        return WorkingDataset.copying(self, found)  # type: ignore[arg-type]

    def copy(
        self, batch: DatasetBatch, *, began: float, live_files: object, before: object, policy: Any
    ) -> None:
        assert batch.rows.num_rows == 1
        self.waited.append(self.context.clock.monotonic() - began)


class SlowStore(MemoryObjectStore):
    """Takes fourteen seconds for each file."""

    def __init__(self, clock: FakeClock, objects: dict[str, bytes]) -> None:
        super().__init__(objects)
        self._clock = clock

    def open(self, path: str) -> BinaryIO:
        self._clock.sleep(14)
        return super().open(path)


def test_the_time_of_a_copy_counts_from_the_first_byte(tmp_path: Path) -> None:
    told: list[Event] = []
    spark: Any = None
    clock = FakeClock(STARTED)
    record = b'{"userId": 1, "sequenceNum": 1, "operation": "INSERT"}\n'
    store = SlowStore(clock, {"users/1.json": record})
    context = EngineContext(spark, store, clock=clock, sink=told.append)
    project = load_project(write_project(tmp_path, users=USERS))
    table: Any = FakeTable(next(project.datasets()), context)
    landing = TaskLanding(context, project.tasks[0])
    listed = reader_of(context, listing_of(context, project.tasks[0]))

    ended = landing.copy_next(table, TimeSlice(), listed)

    assert ended.more
    assert table.waited[0] >= 14
    assert [event.type for event in told] == ["step.progress", "step.ended"]
    assert told[0].as_json()["files_left"] == 1
