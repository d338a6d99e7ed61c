"""The supervisor with workers that do as they are told and a clock that stands still."""

from __future__ import annotations

from datetime import timedelta

import pytest

from polynya.cluster.configuration import WantedTask
from polynya.cluster.jobs import JobRules, JobSupervisor
from polynya.cluster.messages import JobObserved, RoundEnded, RunEnded
from polynya.engine.backlog import BacklogSize
from polynya.formats.batch import FilePart
from polynya.model.errors import DependencyError, OperationError, PolynyaError, TaskStoppedError
from polynya.observe.engine import ApplySkipped
from polynya.observe.events import Event
from polynya.testing.fakes import FakeClock
from tests.cluster.fakes import FakeRun, FakeWorkers, a_batch_of, wanted


class Node:
    """A supervisor, and what a test says to it."""

    def __init__(self) -> None:
        self.workers = FakeWorkers()
        self.clock = FakeClock()
        self.told: list[Event] = []
        self.supervisor = JobSupervisor(
            self.workers, self.clock, self.told.append, lambda: 0.0, JobRules(3, 600.0)
        )

    def wants(self, *tasks: WantedTask) -> None:
        self.supervisor.configure({one.task.name: one for one in tasks})
        self.acts()

    def acts(self, *, draining: bool = False) -> None:
        self.supervisor.act(draining=draining)

    def ends(self, run: FakeRun, error: PolynyaError | None = None) -> None:
        self.supervisor.take(RunEnded(run.job, run.number, error))
        self.acts()

    def passes(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))
        self.acts()

    def news(self) -> list[tuple[str, str, str]]:
        told = [(one.type, one.subject, one.as_json()["reason"]) for one in self.told]
        self.told.clear()
        return told

    def states(self) -> dict[str, str]:
        return {key.name: job.state for key, job in self.supervisor.jobs.items()}


@pytest.fixture
def node() -> Node:
    return Node()


def broken(text: str = "no such column") -> OperationError:
    return OperationError("POLYNYA-LAKE-001", text)


def test_every_dataset_of_every_task_runs(node: Node) -> None:
    node.wants(wanted("a", "x", "y"), wanted("b"))

    assert node.states() == {"shop.x": "running", "shop.y": "running", "shop.b": "running"}
    assert {reason for _, _, reason in node.news()} == {"new"}
    node.acts()
    assert node.news() == []


def test_only_the_task_whose_file_changed_starts_again_and_not_before_its_step_ends(
    node: Node,
) -> None:
    node.wants(wanted("a"), wanted("b"))
    first = node.workers.runs[0]

    node.wants(wanted("a", version="v2"), wanted("b"))
    node.passes(1.0)

    assert first.stopped
    assert len(node.workers.runs) == 2
    assert node.states() == {"shop.a": "stopping", "shop.b": "running"}
    node.ends(first)
    assert [run.job.name for run in node.workers.runs[2:]] == ["shop.a"]
    assert node.news()[-2:] == [
        ("job.stop", "shop.a", "its file changed"),
        ("job.start", "shop.a", "its file changed"),
    ]


def test_a_task_that_left_the_configuration_ends_and_is_forgotten(node: Node) -> None:
    node.wants(wanted("a"), wanted("b"))
    node.wants(wanted("b"))
    node.ends(node.workers.runs[0])

    assert node.states() == {"shop.b": "running"}


def test_a_failed_job_starts_again_after_growing_pauses(node: Node) -> None:
    node.wants(wanted("a"), wanted("b"))
    node.supervisor.take(RoundEnded(node.workers.runs[0].job, 1))
    for pause in (1.0, 2.0, 4.0, 8.0):
        node.ends(node.workers.runs[-1], DependencyError("POLYNYA-AWS-003", "no answer"))
        node.passes(pause - 0.1)
        started = len(node.workers.runs)
        node.passes(0.1)
        assert len(node.workers.runs) == started + 1


def test_a_round_that_went_well_forgives_what_failed_before(node: Node) -> None:
    node.wants(wanted("a"))
    for _ in range(9):
        node.ends(node.workers.runs[-1], broken())
        node.passes(2.0)
        node.supervisor.take(RoundEnded(node.workers.runs[-1].job, node.workers.runs[-1].number))

    assert node.states() == {"shop.a": "running"}


def test_a_job_that_keeps_failing_is_suspended_until_its_file_changes(node: Node) -> None:
    node.wants(wanted("a", "x", "y"), wanted("b"))
    for _ in range(3):
        run = next(one for one in reversed(node.workers.runs) if one.job.name == "shop.x")
        node.ends(run, broken())
        node.passes(10.0)
    node.passes(1e6)

    suspended = {"shop.x": "suspended", "shop.y": "running", "shop.b": "running"}
    assert node.states() == suspended
    said = "failed 3 times in 20 s, last: POLYNYA-LAKE-001: no such column"
    assert node.news()[-1] == ("job.suspend", "shop.x", said)
    node.wants(wanted("a", "x", "y", version="v2"), wanted("b"))
    assert node.states()["shop.x"] == "running"


def test_what_waits_for_a_suspended_job_is_no_work_but_gets_older(node: Node) -> None:
    node.wants(wanted("a"))
    for _ in range(3):
        run = node.workers.runs[-1]
        run.backlog.listed("shop.a", [FilePart("1", 9)], node.clock.monotonic())
        node.ends(run, broken())
        node.passes(10.0)

    job = node.supervisor.jobs[run.job]
    assert job.waiting(1000.0) == BacklogSize(1, 9, seconds=0.0, oldest_seconds=1000.0)
    node.wants(wanted("a", version="v2"))
    assert job.waiting(1000.0) == BacklogSize()


def test_an_outage_suspends_nothing(node: Node) -> None:
    node.wants(wanted("a"))
    for _ in range(20):
        node.ends(node.workers.runs[-1], DependencyError("POLYNYA-AWS-003", "no answer"))
        assert node.states() == {"shop.a": "waiting"}
        node.passes(300.0)

    assert node.states() == {"shop.a": "running"}


def test_a_policy_that_ends_a_task_ends_all_its_datasets_and_no_other_task(node: Node) -> None:
    node.wants(wanted("a", "x", "y"), wanted("b"))
    x, y, b = node.workers.runs
    node.ends(x, TaskStoppedError("POLYNYA-LAKE-018", "on_bad_record: stop"))

    assert y.stopped
    assert not b.stopped
    node.ends(y)
    node.passes(1e6)
    assert node.states() == {"shop.x": "suspended", "shop.y": "suspended", "shop.b": "running"}


def test_what_an_earlier_run_says_late_changes_nothing(node: Node) -> None:
    node.wants(wanted("a"))
    first = node.workers.runs[0]
    node.ends(first, broken())
    node.passes(1.0)
    node.ends(first, broken())

    assert node.states() == {"shop.a": "running"}


def test_a_drain_ends_everything_and_starts_nothing(node: Node) -> None:
    node.wants(wanted("a"), wanted("b"))
    node.acts(draining=True)

    assert all(run.stopped for run in node.workers.runs)
    assert not node.supervisor.idle
    for run in node.workers.runs[:2]:
        node.supervisor.take(RunEnded(run.job, run.number))
    node.acts(draining=True)
    assert node.supervisor.idle
    assert len(node.workers.runs) == 2


def test_a_job_knows_its_last_step_and_its_records(node: Node) -> None:
    node.wants(wanted("a"))
    job = node.workers.runs[0].job
    for event in (
        a_batch_of(7),
        ApplySkipped(subject="shop.a", reason="few"),
    ):
        node.supervisor.take(JobObserved(job, event))

    found = node.supervisor.jobs[job]
    assert found.records == 7
    assert found.step is not None
    assert (found.step.type, found.step.at) == ("batch.copied", node.clock.now())
