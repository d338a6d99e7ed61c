"""An idle task on S3 is listed rarely, whatever kind it is, and copies what lands nevertheless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from typing_extensions import override

from polynya.engine.context import EngineContext
from polynya.engine.runner import units
from polynya.engine.scheduler import POLL_SECONDS, TaskGroup, UnitQueue
from polynya.engine.unit import StepResult, Unit
from polynya.model.config.target import ResolvedTarget
from polynya.model.config.task import StorageTask
from polynya.model.names import S3Location
from polynya.observe.engine import BatchCopied, ExtractApplied
from polynya.store.object_store import LocalObjectStore, ObjectInfo
from tests.engine.test_dms_replicate import FIRST, LOAD, Service
from tests.engine.test_extracts import land as land_extract
from tests.engine.test_extracts import row, source
from tests.lab.events import land as land_events
from tests.lab.events import upsert
from tests.lab.lab import Lab, put

ON_S3 = ResolvedTarget("prod", S3Location("landing"), S3Location("lake"), "glue", "")


class Listed(LocalObjectStore):
    """The landing zone of a lab; counts how often it is listed."""

    lists = 0

    @override
    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        self.lists += 1
        return super().list(prefix)


class Running:
    """An agent with one task, one step after the other on the lab's clock."""

    def __init__(self, lab: Lab, task: StorageTask) -> None:
        self.lab, self.store = lab, Listed(lab.landing)
        context: EngineContext = replace(lab.context(), landing=self.store, target=ON_S3)
        self._queue, self.failures = UnitQueue(), list[Any]()
        group = TaskGroup(context, goes_on=True, report=self._report)
        self._queue.add(group, units(context, [task]), lab.clock.monotonic())

    def work(self, seconds: float) -> int:
        """Let it work for so long; returns how often it listed."""
        clock, before = self.lab.clock, self.store.lists
        end = clock.monotonic() + seconds
        while (now := clock.monotonic()) < end:
            taken = self._queue.take(now)
            if taken is None:
                wait = min(self._queue.seconds_to_next(now), end - now)
                clock.advance(timedelta(seconds=wait))
                continue
            entry, time_slice = taken
            self._queue.put_back(entry, entry.unit.step(time_slice), now)
        assert self.failures == []
        return self.store.lists - before

    def copied(self) -> int:
        """How many batches and extracts it has committed."""
        return sum(isinstance(event, BatchCopied | ExtractApplied) for event in self.lab.events)

    def _report(self, _unit: Unit, result: StepResult) -> None:
        self.failures += [result.error] if result.error is not None else []


def declared(lab: Lab) -> tuple[StorageTask, Callable[[int], object]]:
    users = lab.feed()
    return users.task, lambda number: users.land(put(number, number))


def extracts(lab: Lab) -> tuple[StorageTask, Callable[[int], object]]:
    users = source(lab)
    return users.task, lambda number: land_extract(users, number, row(number, "Ann"))


def shared(lab: Lab) -> tuple[StorageTask, Callable[[int], object]]:
    capture = lab.capture()
    return capture.task, lambda number: land_events(capture, upsert(number, number))


def folders(lab: Lab) -> tuple[StorageTask, Callable[[int], object]]:
    dms = Service(lab, "dms", defaults={"keys": ["id"]})
    dms.land(f"s/users/{LOAD}.csv", "id,name", "1,Ann")

    def land(number: int) -> None:
        name = FIRST.replace("000010000", f"0000{number}0000")
        dms.land(f"s/users/{name}.csv", "Op,id,name", f"I,{number + 10},Ben")

    return dms.task, land


@pytest.mark.parametrize("kind", [declared, extracts, shared, folders])
def test_idle_task_on_s3_is_listed_rarely_and_copies_what_lands(
    lab: Lab, kind: Callable[[Lab], tuple[StorageTask, Callable[[int], object]]]
) -> None:
    task, land = kind(lab)
    land(1)
    running = Running(lab, task)
    running.work(70)
    before = running.copied()

    lists = running.work(120)
    land(2)
    running.work(30 + 2 * POLL_SECONDS)

    assert before >= 1
    assert lists <= 5
    assert running.copied() > before
