"""How many list requests an idle agent makes: the units of the engine, on a server like S3.

Tables are stand-ins that have read everything: what is counted is how the landing zone is listed.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from polynya.engine.context import EngineContext
from polynya.engine.dataset import OpenTables
from polynya.engine.landing import TaskLanding
from polynya.engine.maintenance import MaintenanceUnit
from polynya.engine.runner import units
from polynya.engine.scheduler import POLL_SECONDS, TaskGroup, UnitQueue
from polynya.engine.tasks import storage
from polynya.engine.unit import StepResult
from polynya.formats.batch import FilePart
from polynya.formats.files import Discovery, start_of
from polynya.model.config.aws import AwsAccess
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.target import ResolvedTarget
from polynya.model.config.task import StorageTask
from polynya.model.names import S3Location
from polynya.store.aws.clients import client
from polynya.store.aws.s3 import S3ObjectStore
from polynya.store.object_store import ObjectInfo
from polynya.testing.fakes import FakeClock
from tests.aws import REGION, aws_server

BUCKET = "landing"
TASKS, DATASETS = 10, 10


class Counted:
    """A client of S3 that counts requests by their name."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3
        self.requests: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._s3, name)

        def counted(**asked: Any) -> Any:
            self.requests[name] += 1
            return call(**asked)

        return counted if callable(call) else call


class Agent:
    """The jobs of an agent, each as its own run, on one thread and a clock of their own."""

    def __init__(self, access: AwsAccess, **target: Any) -> None:
        self.clock = FakeClock()
        self.s3 = Counted(client("s3", access))
        place = S3Location(BUCKET, "in")
        spark: Any = None
        self.context = EngineContext(
            spark,
            S3ObjectStore(place, access, s3=self.s3),
            clock=self.clock,
            epoch=1,
            target=ResolvedTarget("prod", place, S3Location("lake"), "glue", "", **target),
        )
        self.copied: list[tuple[str, float]] = []
        self.tables: dict[str, Any] = {}
        self._queue = UnitQueue()

    def start(self, task: StorageTask) -> None:
        """Start a job for each unit of a task, as `EngineWorkers.start` does."""
        for job in [unit.name for unit in units(self.context, [task])]:
            context = replace(self.context, stop=threading.Event())
            own = [unit for unit in units(context, [task]) if unit.name == job]
            group = TaskGroup(context, goes_on=True, report=lambda _unit, _result: None)
            self._queue.add(group, own, self.clock.monotonic())

    def work(self, seconds: float) -> int:
        """Let the jobs work; returns the list requests."""
        before, end = self.s3.requests["list_objects_v2"], self.clock.monotonic() + seconds
        while True:
            now = self.clock.monotonic()
            if (taken := self._queue.take(now)) is not None:
                entry, time_slice = taken
                self._queue.put_back(entry, entry.unit.step(time_slice), now)
            elif now >= end:
                return self.s3.requests["list_objects_v2"] - before
            else:
                wait = min(self._queue.seconds_to_next(now), end - now)
                self.clock.advance(timedelta(seconds=wait))

    def land(self, path: str) -> float:
        """Put an object; returns when."""
        self.s3.put_object(Bucket=BUCKET, Key=f"in/{path}", Body=b"{}")
        return self.clock.monotonic()


class Table:
    """A table of which only the position counts, as a copy commits it."""

    def __init__(self, agent: Agent, start: str) -> None:
        self.context, self.reloading, self.progress = agent.context, None, dict[str, Any]()
        self.table = SimpleNamespace(is_applied=True)
        self._agent, self._start = agent, start

    def unread(self, landed: Iterable[ObjectInfo]) -> Discovery:
        own = [info for info in landed if info.path.startswith(self._start)]
        return Discovery(
            tuple(FilePart.of(info) for info in own if info.path not in self.progress), ()
        )

    def copying(self, discovery: Discovery) -> AbstractContextManager[None]:
        now = self._agent.clock.monotonic()
        self._agent.copied += [(part.path, now) for part in discovery.files]
        self.progress |= {part.path: SimpleNamespace(complete=True) for part in discovery.files}
        return nullcontext()

    def copy(self, _batch: Any, *, live_files: Collection[str], **_: Any) -> None:
        # A position forgets files that left.
        self.progress = {path: done for path, done in self.progress.items() if path in live_files}

    def copy_if_allowed(self, copy_next: Callable[[], StepResult]) -> StepResult:
        return copy_next()

    def report_discovery(self, discovery: Discovery) -> None:
        pass


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    with aws_server(BUCKET) as endpoint:
        agent = Agent(AwsAccess(region=REGION, endpoint=endpoint))
        _with_stand_ins(monkeypatch, agent)
        yield agent


def _with_stand_ins(monkeypatch: pytest.MonkeyPatch, agent: Agent) -> None:
    """Leave Spark out: tables are stand-ins, and nothing is read."""

    def of(_tables: OpenTables, dataset: ResolvedDataset) -> Any:
        start = start_of(dataset.landing.folder, dataset.landing.glob)
        return agent.tables.setdefault(start, Table(agent, start))

    def unread(_landing: TaskLanding, table: Any, landed: Iterable[ObjectInfo]) -> Discovery:
        found: Discovery = table.unread(landed)
        return found

    monkeypatch.setattr(OpenTables, "of", of)
    monkeypatch.setattr(TaskLanding, "unread", unread)
    monkeypatch.setattr(TaskLanding, "read", lambda *_, **__: SimpleNamespace(files={}))
    monkeypatch.setattr(MaintenanceUnit, "request_if_due", lambda _unit, _table, result: result)
    monkeypatch.setattr(storage, "why_copies_wait", lambda *_: None)
    monkeypatch.setattr("polynya.engine.landing.refuse_direct", lambda _table: None)


def task(number: int) -> StorageTask:
    return StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": f"task{number}",
            "schema": f"shop{number}",
            "landing": {"path": f"task{number}", "format": "json"},
            "datasets": [
                {"name": f"t{number}_{each}", "path": f"t{number}_{each}/*", "keys": ["id"],
                 "sequence_by": ["n"]}
                for each in range(DATASETS)
            ],
        }
    )  # fmt: skip


def test_an_idle_agent_with_ten_tasks_makes_at_most_one_list_request_a_second(
    agent: Agent,
) -> None:
    for number in range(TASKS):
        for each in range(DATASETS):
            agent.land(f"task{number}/t{number}_{each}/1.json")
        agent.start(task(number))
    agent.work(60)

    lists = agent.work(120)

    assert len(agent.copied) == TASKS * DATASETS
    # One listing of each task every 30 seconds.
    assert lists <= 60
    assert set(agent.s3.requests) == {"put_object", "list_objects_v2"}


def test_what_lands_at_an_idle_task_is_copied_within_half_a_minute_and_the_next_file_at_once(
    agent: Agent,
) -> None:
    agent.start(task(0))
    agent.work(100)

    first = agent.land("task0/t0_3/1.json")
    agent.work(34)
    second = agent.land("task0/t0_7/1.json")
    agent.work(10)
    third = agent.land("task0/t0_3/2.json")
    agent.work(20)

    assert [path for path, _ in agent.copied] == [
        "task0/t0_3/1.json", "task0/t0_7/1.json", "task0/t0_3/2.json",
    ]  # fmt: skip
    landed = (first, second, third)
    waited = [at - since for (_, at), since in zip(agent.copied, landed, strict=True)]
    assert waited[0] <= 30 + POLL_SECONDS
    assert waited[1] <= 10
    assert waited[2] <= 10


def test_target_says_how_long_an_idle_task_waits(agent: Agent) -> None:
    assert agent.context.target is not None
    agent.context.target = replace(agent.context.target, idle_poll_seconds=4.0)
    agent.start(task(0))
    agent.work(60)

    assert 14 <= agent.work(60) <= 16


def test_job_that_begins_lists_again_before_it_copies(agent: Agent) -> None:
    """Another node had the table, and has read what landed since the task was listed here."""
    agent.start(task(0))
    agent.work(100)
    agent.land("task0/t0_0/1.json")
    mine = Table(agent, "task0/t0_0/")
    mine.progress["task0/t0_0/1.json"] = SimpleNamespace(complete=True)
    agent.tables["task0/t0_0/"] = mine

    agent.start(task(0))
    agent.work(2)
    agent.land("task0/t0_0/2.json")
    agent.work(60)

    assert [path for path, _ in agent.copied] == ["task0/t0_0/2.json"]
