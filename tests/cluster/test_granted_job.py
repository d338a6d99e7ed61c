"""A job of an agent whose table another node takes: it ends, and goes on with a higher epoch."""

from __future__ import annotations

from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import pytest

from polynya.cluster.messages import JobObserved, RunEnded, UnitCommandEnded
from polynya.cluster.unit import JobKey
from polynya.cluster.work import EngineWorkers
from polynya.engine.backlog import Backlog
from polynya.engine.commands.unit_command import UnitCommand, execute
from polynya.engine.dataset import WorkingDataset
from polynya.lake.copy import reload as steps
from polynya.model.errors import FencedError
from polynya.observe.cluster import UnitFenced
from polynya.observe.engine import BatchCopied, ReloadLoaded
from polynya.observe.events import Event
from polynya.store.clock import SystemClock
from tests.lab.lab import Feed, Lab, put


class Job:
    """One job of a node that shares its work, and what it says."""

    def __init__(self, users: Feed) -> None:
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        engine = replace(users.lab.context("never"), clock=SystemClock(), owner="node-1")
        self._workers = EngineWorkers(engine, self._inbox)
        self._key, self._task = JobKey(users.task.name, users.view), users.task
        self._runs = 0

    def start(self, epoch: int) -> Any:
        """Start it with a grant."""
        self._runs += 1
        return self._workers.start(self._key, self._task, self._runs, Backlog(), epoch)

    def send(self, epoch: int, errand: UnitCommand) -> Any:
        """Do what is asked under a grant; what became of it, None when it has to be done again."""
        self._runs += 1
        self._workers.send(self._key, self._task, self._runs, errand, epoch)
        told = None
        while not isinstance(message := self._inbox.get(timeout=120), RunEnded):
            told = message if isinstance(message, UnitCommandEnded) else told
        assert message.run == self._runs
        assert (told is None) == (message.error is not None)
        return told if told is not None else message.error

    def until(self, kind: type[Event]) -> Any:
        """The next event of a kind."""
        while True:
            message = self._inbox.get(timeout=120)
            assert not isinstance(message, RunEnded), message
            if isinstance(message, JobObserved) and isinstance(message.event, kind):
                return message.event

    def ended(self) -> Any:
        """How the run ended that was started last."""
        while not isinstance(message := self._inbox.get(timeout=120), RunEnded):
            pass
        assert message.run == self._runs
        return message.error


@pytest.mark.slow
def test_a_job_ends_with_its_table_and_goes_on_with_a_higher_epoch(lab: Lab) -> None:
    users = lab.feed(maintenance={"enabled": False})
    users.land(put(1, 1, name="Ann"))
    job = Job(users)
    job.start(epoch=5)
    job.until(BatchCopied)
    assert users.table().state.ownership.owner == "node-1"

    other = users.table("node-2")
    other.granted = 6
    other.take_over()
    users.land(put(2, 2, name="Ben"))

    told = job.until(UnitFenced)
    error = job.ended()
    assert isinstance(error, FencedError)
    assert (told.epoch, told.error.epoch, error.epoch) == (5, 6, 6)
    # Neither the grant that it had nor that of the other node is enough.
    for epoch in (5, 6):
        job.start(epoch)
        error = job.ended()
        assert (error.code, error.epoch, error.owner) == ("POLYNYA-LAKE-060", 6, "node-2")
    assert users.table().state.epoch == 6
    # It has the work all the same: nobody waits until the other one has been silent.
    run = job.start(epoch=7)
    job.until(BatchCopied)
    run.stop()
    assert job.ended() is None
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]
    assert users.table().state.ownership.owner == "node-1"
    assert users.table().state.epoch == 7


class _Killed(BaseException):
    """Nothing after it happens."""


def _die_when_gathered(event: Event) -> None:
    if isinstance(event, ReloadLoaded):
        raise _Killed


@pytest.mark.slow
def test_a_reload_whose_node_died_in_the_middle_is_done_by_the_next_owner(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json", maintenance={"enabled": False})
    users.land({"id": 1, "name": "Ann"}, {"id": 2, "name": "Ben"}, file="load/1.json")
    users.apply()
    users.land({"id": 1, "name": "Anna"}, {"id": 3, "name": "Cid"}, file="load/1.json")
    dying = replace(lab.context(), owner="n1", epoch=5, sink=_die_when_gathered)
    with pytest.raises(_Killed):
        execute(dying, users.task, users.view, UnitCommand("reload"))
    dead = WorkingDataset.open(dying, users.dataset).table
    dead.take_over()

    told = Job(users).send(6, UnitCommand("reload"))

    assert told.done, told.text
    assert users.current("id", "name") == [(1, "Anna"), (3, "Cid")]
    # The node that was taken for dead goes on: its commit is refused.
    with pytest.raises(FencedError):
        steps.finish(dead, lab.context().applier, now=lab.clock.now())
    # It had died after its last commit and before it could say so: it is done again.
    assert Job(users).send(7, UnitCommand("reload")).done
    assert users.current("id", "name") == [(1, "Anna"), (3, "Cid")]
    assert Job(users).send(6, UnitCommand("reload")).code == "POLYNYA-LAKE-060"
    refused = Job(users).send(8, UnitCommand("reload", files="none/*.json"))
    assert (refused.done, refused.text[:16]) == (False, "POLYNYA-LAKE-014")
