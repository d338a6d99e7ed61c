"""The supervisor of a node that shares work: it runs what it was granted, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from polynya.cluster.configuration import WantedTask
from polynya.cluster.jobs import JobSupervisor
from polynya.cluster.membership import Rights
from polynya.cluster.messages import RunEnded
from polynya.cluster.unit import JobKey
from polynya.model.errors import FencedError, OperationError, PolynyaError
from polynya.observe.events import Event
from polynya.testing.fakes import FakeClock
from tests.cluster.fakes import FakeRun, FakeWorkers, wanted

X, Y = JobKey("a", "shop.x"), JobKey("a", "shop.y")


class Node:
    """A supervisor, what it was granted, and what a test says to it."""

    def __init__(self) -> None:
        self.workers = FakeWorkers()
        self.clock = FakeClock()
        self.told: list[Event] = []
        self.rights = Rights()
        self.supervisor = JobSupervisor(self.workers, self.clock, self.told.append, lambda: 0.0)

    def wants(self, *tasks: WantedTask) -> None:
        self.supervisor.configure({one.task.name: one for one in tasks})
        self.acts()

    def acts(self, *, draining: bool = False) -> None:
        self.supervisor.act(draining=draining, rights=self.rights)

    def gets(self, **rights: object) -> None:
        self.rights = Rights(**rights)  # type: ignore[arg-type]
        self.acts()

    def ends(self, run: FakeRun, error: PolynyaError | None = None) -> None:
        self.supervisor.take(RunEnded(run.job, run.number, error))
        self.acts()

    def states(self) -> dict[str, str]:
        return {key.name: job.state for key, job in self.supervisor.jobs.items()}

    def reason(self, key: JobKey) -> str:
        return self.supervisor.jobs[key].reason


@pytest.fixture
def node() -> Node:
    node = Node()
    node.wants(wanted("a", "x", "y"))
    return node


def overtaken(epoch: int) -> FencedError:
    return FencedError("POLYNYA-LAKE-060", "n2 owns it", epoch=epoch, owner="n2")


def test_only_what_was_granted_starts_and_with_its_epoch(node: Node) -> None:
    assert node.workers.runs == []

    node.gets(grants={X: 7}, reasons={X: "nobody had it"}, owners={Y: "n2"})

    assert [(run.job, run.epoch) for run in node.workers.runs] == [(X, 7)]
    assert node.states() == {"shop.x": "running", "shop.y": "elsewhere"}
    assert node.reason(Y) == "node n2 has it"
    assert [(one.type, one.as_json()["reason"]) for one in node.told] == [
        ("job.start", "nobody had it")
    ]


def test_a_revoked_job_ends_after_its_step_and_is_elsewhere_then(node: Node) -> None:
    node.gets(grants={X: 7})
    run = node.workers.runs[0]

    node.gets(owners={X: "n2"})

    assert run.stopped
    assert node.states()["shop.x"] == "stopping"
    node.ends(run)
    assert node.states()["shop.x"] == "elsewhere"
    assert node.told[-1].as_json()["reason"] == "node n2 has it"


def test_a_job_that_comes_back_begins_as_new_whatever_failed_here_before(node: Node) -> None:
    node.gets(grants={X: 7})
    for _ in range(5):
        node.ends(node.workers.runs[-1], OperationError("POLYNYA-LAKE-001", "no such column"))
        node.clock.advance(timedelta(seconds=30))
        node.acts()
    assert node.states()["shop.x"] == "suspended"

    node.gets(owners={X: "n2"})
    assert node.states()["shop.x"] == "elsewhere"
    node.gets(grants={X: 9})

    assert node.states()["shop.x"] == "running"
    assert node.workers.runs[-1].epoch == 9


def test_a_suspended_job_is_tried_again_when_somebody_asks(node: Node) -> None:
    node.gets(grants={X: 7})
    for _ in range(5):
        node.ends(node.workers.runs[-1], OperationError("POLYNYA-LAKE-001", "no such column"))
        node.clock.advance(timedelta(seconds=30))
        node.acts()
    node.supervisor.forgive({"b"})
    node.acts()
    assert node.states()["shop.x"] == "suspended"

    node.supervisor.forgive({"a"})
    node.acts()

    assert node.states()["shop.x"] == "running"


def test_a_fenced_job_waits_for_a_higher_epoch_and_has_not_failed(node: Node) -> None:
    node.gets(grants={X: 7})
    node.ends(node.workers.runs[0], overtaken(8))
    node.clock.advance(timedelta(seconds=300))
    node.acts()

    job = node.supervisor.jobs[X]
    assert (job.state, job.fenced, job.fences, job.failed) == ("waiting", 8, 1, 0)
    assert len(node.workers.runs) == 1
    node.gets(grants={X: 8})
    assert len(node.workers.runs) == 1
    node.gets(grants={X: 9})
    assert [run.epoch for run in node.workers.runs] == [7, 9]
    assert node.told[-1].as_json()["reason"] == "it continues in epoch 9"
    assert job.fenced is None


def test_a_fenced_job_whose_grant_is_gone_is_elsewhere(node: Node) -> None:
    node.gets(grants={X: 7})
    node.ends(node.workers.runs[0], overtaken(8))

    node.gets(owners={X: "n2"})

    assert node.states()["shop.x"] == "elsewhere"


def test_a_job_that_runs_in_an_older_epoch_starts_again_in_the_newer_one(node: Node) -> None:
    node.gets(grants={X: 7})
    node.gets(grants={X: 8})
    run = node.workers.runs[0]
    assert run.stopped

    node.ends(run)

    assert [run.epoch for run in node.workers.runs] == [7, 8]
    assert node.told[-1].as_json()["reason"] == "it continues in epoch 8"


def test_without_a_lease_everything_stops_and_goes_on_after(node: Node) -> None:
    node.gets(grants={X: 7, Y: 3})
    node.gets(lapsed="the lease could not be renewed")

    assert all(run.stopped for run in node.workers.runs)
    for run in node.workers.runs[:2]:
        node.ends(run)
    assert node.states() == {"shop.x": "waiting", "shop.y": "waiting"}
    assert node.reason(X) == "the lease could not be renewed"
    node.gets(grants={X: 7, Y: 3})
    assert node.states() == {"shop.x": "running", "shop.y": "running"}


def test_a_task_that_an_operator_stopped_stays_stopped_although_it_is_granted(node: Node) -> None:
    node.gets(grants={X: 7})
    node.gets(grants={X: 7}, stopped={"a": "stopped by kim: month end"})
    node.ends(node.workers.runs[0])

    assert node.states() == {"shop.x": "stopped", "shop.y": "stopped"}
    assert node.reason(X) == "stopped by kim: month end"


def test_an_edit_and_a_drain_mean_what_they_mean_without_others(node: Node) -> None:
    node.gets(grants={X: 7})
    node.wants(wanted("a", "x", "y", version="v2"))
    node.ends(node.workers.runs[0])
    assert node.told[-1].as_json()["reason"] == "its file changed"
    assert node.workers.runs[-1].epoch == 7

    node.acts(draining=True)
    assert node.workers.runs[-1].stopped
    node.supervisor.take(RunEnded(X, node.workers.runs[-1].number))
    node.acts(draining=True)
    assert node.supervisor.idle
