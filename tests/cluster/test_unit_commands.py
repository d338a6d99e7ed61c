"""What is asked of a unit in the hands of its owner: done once, before its work goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from polynya.cluster.control.requests import PendingRequest
from polynya.cluster.messages import RunEnded, UnitCommandEnded
from polynya.engine.commands.unit_command import UnitCommand
from polynya.model.errors import DependencyError, OperationError, PolynyaError
from tests.cluster.fakes import FakeRun, wanted
from tests.cluster.test_supervisor_with_grants import Node as Granted
from tests.cluster.test_supervisor_with_grants import X, Y, overtaken

RELOAD = PendingRequest("1f", UnitCommand("reload"), "kim", datetime(2026, 1, 1, tzinfo=UTC))


class Node(Granted):
    """A supervisor of which something is asked."""

    held: str | None = None

    def acts(self, *, draining: bool = False) -> None:
        self.supervisor.act(draining=draining, rights=self.rights, held=self.held)

    def asks(self, asked: PendingRequest | None) -> None:
        self.supervisor.ask({X: asked} if asked is not None else {})
        self.acts()

    def freezes(self, why: str | None) -> None:
        self.held = why
        self.acts()

    @property
    def run(self) -> FakeRun:
        return self.workers.runs[-1]

    def did(self, *, done: bool = True, text: str = "3 rows loaded") -> None:
        """What is asked is done, or cannot be; the run ends after that."""
        run = self.run
        self.supervisor.take(UnitCommandEnded(run.job, run.number, done, text))
        self.ends(run)

    def fails(self, error: PolynyaError) -> None:
        self.ends(self.run, error)


@pytest.fixture
def node() -> Node:
    node = Node()
    node.wants(wanted("a", "x", "y"))
    return node


def test_the_work_stops_after_its_step_the_request_is_done_and_the_work_continues(
    node: Node,
) -> None:
    node.gets(grants={X: 7})
    work = node.run

    node.asks(RELOAD)
    assert work.stopped
    assert node.workers.runs == [work]
    node.ends(work)

    assert (node.run.command, node.run.epoch) == (RELOAD.command, 7)
    assert node.reason(X) == "reload, asked by kim"
    node.did()
    # Others hear of it a turn later.
    node.asks(RELOAD)
    assert [run.command for run in node.workers.runs] == [None, RELOAD.command, None]
    (settled,) = node.supervisor.settled()
    assert (settled.unit, settled.done, settled.text, settled.epoch) == (
        X,
        True,
        "3 rows loaded",
        7,
    )
    assert node.supervisor.settled() == []


def test_only_the_owner_does_it(node: Node) -> None:
    node.gets(grants={Y: 3}, owners={X: "n2"})

    node.asks(RELOAD)

    assert [(run.job, run.command) for run in node.workers.runs] == [(Y, None)]
    assert not node.run.stopped


def test_a_unit_that_comes_from_a_dead_node_begins_with_the_request(node: Node) -> None:
    node.asks(RELOAD)
    node.gets(grants={X: 8})

    assert (node.run.command, node.run.epoch) == (RELOAD.command, 8)


def test_in_a_frozen_cluster_it_waits_and_work_continues(node: Node) -> None:
    node.gets(grants={X: 7})
    node.freezes("the cluster is frozen")

    node.asks(RELOAD)

    assert not node.run.stopped
    node.fails(DependencyError("POLYNYA-AWS-003", "no answer"))
    node.clock.advance(timedelta(seconds=10))
    node.acts()
    assert node.run.command is None
    node.freezes(None)
    node.ends(node.run)
    assert node.run.command == RELOAD.command


def test_what_had_begun_when_the_cluster_was_frozen_is_ended(node: Node) -> None:
    node.asks(RELOAD)
    node.gets(grants={X: 7})

    node.freezes("the cluster is frozen")

    assert not node.run.stopped


def test_of_a_stopped_task_it_waits(node: Node) -> None:
    node.gets(grants={X: 7}, stopped={"a": "stopped by kim"})

    node.asks(RELOAD)
    assert node.workers.runs == []
    node.gets(grants={X: 7})

    assert node.run.command == RELOAD.command


def test_what_cannot_be_done_is_settled_and_the_work_continues(node: Node) -> None:
    node.asks(RELOAD)
    node.gets(grants={X: 7})

    node.did(done=False, text="POLYNYA-LAKE-014: no file")

    assert node.run.command is None
    assert [one.done for one in node.supervisor.settled()] == [False]


def test_what_may_pass_is_tried_again_after_a_pause(node: Node) -> None:
    node.asks(RELOAD)
    node.gets(grants={X: 7})

    node.fails(DependencyError("POLYNYA-AWS-003", "no answer"))
    assert len(node.workers.runs) == 1
    node.clock.advance(timedelta(seconds=10))
    node.acts()

    assert [run.command for run in node.workers.runs] == [RELOAD.command] * 2
    assert node.supervisor.settled() == []


def test_who_is_overtaken_meanwhile_does_it_again_in_a_higher_epoch_or_not_at_all(
    node: Node,
) -> None:
    node.asks(RELOAD)
    node.gets(grants={X: 7})
    node.fails(overtaken(8))
    assert node.states()["shop.x"] == "waiting"

    node.gets(grants={X: 9})

    assert [(run.command, run.epoch) for run in node.workers.runs] == [
        (RELOAD.command, 7),
        (RELOAD.command, 9),
    ]
    node.fails(overtaken(10))
    node.gets(owners={X: "n2"})
    assert len(node.workers.runs) == 2
    assert node.supervisor.settled() == []


def test_a_drain_leaves_it_to_the_next_owner(node: Node) -> None:
    node.asks(RELOAD)
    node.gets(grants={X: 7})

    node.acts(draining=True)
    assert node.run.stopped
    node.supervisor.take(RunEnded(X, node.run.number))
    node.acts(draining=True)

    assert node.supervisor.idle
    assert node.supervisor.settled() == []


def test_what_is_withdrawn_stops_and_the_work_continues(node: Node) -> None:
    node.asks(RELOAD)
    node.gets(grants={X: 7})

    node.asks(None)
    assert node.run.stopped
    node.ends(node.run)

    assert node.run.command is None


def test_a_suspended_job_begins_again_with_the_request(node: Node) -> None:
    node.gets(grants={X: 7})
    for _ in range(5):
        node.fails(OperationError("POLYNYA-LAKE-001", "no such column"))
        node.clock.advance(timedelta(seconds=30))
        node.acts()
    assert node.states()["shop.x"] == "suspended"

    node.asks(RELOAD)

    assert node.run.command == RELOAD.command
