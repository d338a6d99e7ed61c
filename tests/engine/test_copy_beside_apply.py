"""A dataset is copied while it is applied: both are committed, and neither does its work twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from polynya.engine.runner import run_until_stopped, units
from polynya.lake.apply.apply import ApplyOutcome, StagedApply
from polynya.lake.apply.collected import Collected
from polynya.lake.apply.fast import FastApplier
from polynya.lake.apply.run import ApplyLaterError, ApplyRun, Folded
from polynya.lake.copy.copy import copy_batch
from polynya.lake.fold.fold import TruncateEvent
from polynya.lake.read.verify import verify
from polynya.lake.table.ownership import enter
from polynya.observe.events import Event
from polynya.store.clock import SystemClock
from tests.lab.lab import STARTED, Lab, clear, drop, put

PATIENCE = 60.0


@dataclass
class Meanwhile(FastApplier):
    """An applier that lets something happen between its fold and its commit, once each."""

    happens: list[Callable[[ApplyRun], None]] = field(default_factory=list)
    folds: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def with_stored(
        self, run: ApplyRun, truncates: Sequence[TruncateEvent], now: datetime
    ) -> Folded | Collected:
        if run.fresh is not None and run.fresh.may_wait:
            raise ApplyLaterError("nothing is copied beside an apply that comes with its copy")
        self.folds += 1
        return super().with_stored(run, truncates, now)

    def stage(self, run: ApplyRun, outcome: ApplyOutcome) -> StagedApply:
        staged = super().stage(run, outcome)
        if self.happens:
            self.happens.pop(0)(run)
        return staged


def test_copies_go_on_while_a_dataset_is_applied(lab: Lab) -> None:
    users = lab.feed(task={"batch": {"freshness": "0s"}})
    users.apply(put(1, 1, name="Ann"), put(2, 1, name="Ben"))
    told: list[str] = []
    copied, over = threading.Event(), threading.Event()
    applier = Meanwhile()
    context = lab.context("always", applier=applier)
    context.clock = SystemClock()

    def tell(event: Event) -> None:
        told.append(event.type)
        if event.type == "batch.copied":
            copied.set()
        if told.count("dataset.applied") == 3:
            context.stop.set()
            over.set()

    def append(run: ApplyRun) -> None:
        """What only appends is copied."""
        copied.clear()
        users.land(put(1, 3, name="Anna"), put(3, 3, name="Cid"))
        assert copied.wait(PATIENCE)
        assert run.target.is_applied
        assert users.current("id", "name") == [(1, "Anna"), (2, "Benny"), (3, "Cid")]

    def truncate(run: ApplyRun) -> None:
        """What is applied with its copy waits for its end."""
        copied.clear()
        users.land(clear(4), put(4, 5, name="Dot"))
        while not run.target.is_awaited:
            assert not over.wait(0.05)
        assert not copied.is_set()

    context.sink = tell
    applier.happens += [append, truncate]
    users.land(put(2, 2, name="Benny"))
    watch = threading.Timer(PATIENCE, context.stop.set)
    watch.start()

    outcome = run_until_stopped(context, units(context, [users.task]), poll_seconds=0.05)
    watch.cancel()

    assert not outcome.failures
    assert "unit.failed" not in told
    assert users.current("id", "name") == [(4, "Dot")]
    assert [line[:3] for line in users.history("id", "name") if line[0] == 1] == [
        (1, "Ann", "I"), (1, "Anna", "D"), (1, "Anna", "U"),
    ]  # fmt: skip
    assert applier.folds == 2, "the third apply is the truncate's own, of every version"
    assert users.changes("id") == []
    assert verify(users.table()).findings == []
    assert users.totals() == {"in": 7, "out": 7, "filtered": 0, "quarantined": 0}


@pytest.mark.slow
def test_a_tombstone_outlives_an_older_event_that_was_copied_meanwhile(lab: Lab) -> None:
    users = lab.feed(history=False, tombstone_retention="1d")
    users.apply(put(1, 5, name="Ann"), put(2, 5, name="Ben"))
    users.apply(drop(1, 10), drop(2, 10))
    target, now = users.table(), STARTED + timedelta(days=2)
    enter(target)
    copy_batch(target, users.batch(put(3, 20, name="Cid")), FastApplier(), now=now)

    def late(run: ApplyRun) -> None:
        batch = users.batch(put(1, 7, name="late"), file="late.json")
        copy_batch(run.target, batch, FastApplier(), now=now)

    applier = Meanwhile(happens=[late])
    applier.apply(target, reason="a test", now=now)
    tombstones = users.stored("prior", "id")
    applier.apply(target, reason="a test", now=now)

    assert tombstones == [(1,), (2,)]
    assert users.current("id", "name") == [(3, "Cid")]
    assert users.stored("prior", "id") == []
