"""Work that no node has is counted by the leader, and by it alone; more nodes than work is said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.cluster.coordination.member_state import MemberState, ObservedNode
from polynya.cluster.gossip.messages import (
    Heartbeat,
    Picture,
    ReceivedHeartbeat,
    Sender,
    UnitReport,
)
from polynya.cluster.membership import IdleNodes
from polynya.cluster.unit import JobKey
from tests.cluster.test_membership import Node, X, Y

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def seen(incarnation: str, *, dead: bool = False, **more: Any) -> ObservedNode:
    node = incarnation.partition(".")[0]
    return ObservedNode(incarnation, node, "ready", dead=dead, silent_seconds=0.0, **more)


def heard(
    incarnation: str, *units: tuple[JobKey, float], age: float = 0.0, left_out: int = 0
) -> ReceivedHeartbeat:
    node = incarnation.partition(".")[0]
    told = tuple(UnitReport(unit, 3, 0.5, backlog / 2, backlog) for unit, backlog in units)
    sender = Sender("c", node, incarnation)
    beat = Heartbeat(sender, 1, NOW, "running", None, None, told, left_out=left_out)
    return ReceivedHeartbeat(beat, age)


LEADS = MemberState(
    "n1.aa",
    state="ready",
    grants={X: 7},
    grants_until=1e9,
    leading=True,
    nodes={"n1.aa": seen("n1.aa"), "n2.bb": seen("n2.bb")},
)
N2_HAS_Y = Picture({"n2.bb": heard("n2.bb", (Y, 80.0))})
N2_DIED = replace(LEADS, nodes={"n1.aa": seen("n1.aa"), "n2.bb": seen("n2.bb", dead=True)})


@pytest.fixture
def node() -> Node:
    """It has X; n2 told that it has Y, and that 80 s of work wait there for 40 s."""
    node = Node()
    node.hears(LEADS, N2_HAS_Y)
    node.shows()
    return node


def unowned(node: Node) -> Any:
    return node.membership.report()["unowned"]


def test_what_a_living_node_has_is_not_counted_by_another(node: Node) -> None:
    assert unowned(node) == {"units": 0, "seconds": 0.0, "oldest_seconds": 0.0}


def test_the_leader_counts_the_work_of_a_node_that_died_and_it_gets_older(node: Node) -> None:
    node.clock.advance(timedelta(seconds=35))
    node.hears(N2_DIED, Picture({"n2.bb": heard("n2.bb", (Y, 80.0), age=35.0)}))

    assert unowned(node) == {"units": 1, "seconds": 80.0, "oldest_seconds": 75.0}
    # A frozen cluster stays so for longer than the picture remembers a node.
    node.clock.advance(timedelta(seconds=1000))
    node.hears(N2_DIED, Picture())
    assert unowned(node) == {"units": 1, "seconds": 80.0, "oldest_seconds": 1075.0}


def test_who_has_a_unit_counts_it_from_then_on(node: Node) -> None:
    node.hears(replace(N2_DIED, grants={X: 7, Y: 4}), N2_HAS_Y)
    assert unowned(node) == {"units": 0, "seconds": 0.0, "oldest_seconds": 0.0}

    third = replace(N2_DIED, nodes={**N2_DIED.nodes, "n3.cc": seen("n3.cc")})
    node.hears(third, Picture({**N2_HAS_Y.nodes, "n3.cc": heard("n3.cc", (Y, 0.0))}))
    assert unowned(node) == {"units": 0, "seconds": 0.0, "oldest_seconds": 0.0}


def test_only_the_leader_counts_it_and_nobody_counts_what_is_stopped(node: Node) -> None:
    node.hears(replace(N2_DIED, leading=False), N2_HAS_Y)
    assert unowned(node) is None

    node.hears(N2_DIED, N2_HAS_Y, a="stopped by kim")
    node.shows()
    assert unowned(node) == {"units": 0, "seconds": 0.0, "oldest_seconds": 0.0}


@pytest.mark.parametrize(
    "picture",
    [
        Picture(),
        Picture({"n2.bb": heard("n2.bb", left_out=9)}),
        Picture(N2_HAS_Y.nodes, trouble="it is throttled"),
    ],
    ids=["a node was never heard", "it had no room for all", "the stream is gone"],
)
def test_who_does_not_know_what_others_have_counts_nothing(node: Node, picture: Picture) -> None:
    """Counted twice is worse: the group would grow for work that somebody has."""
    node.hears(LEADS, picture)

    assert unowned(node) is None


def test_a_unit_whose_job_waits_after_a_failure_has_an_owner(node: Node) -> None:
    assert node.jobs[X].running is None

    assert [one.unit for one in node.peers.told[-1].units] == [X]


def test_more_nodes_than_units_are_said_when_it_lasts() -> None:
    idle = IdleNodes()
    three = {name: seen(name) for name in ("n1.a", "n2.b", "n3.c")}

    assert idle.trouble(three, 2, 0.0) is None
    assert idle.trouble(three, 2, 899.0) is None
    said = idle.trouble(three, 2, 900.0)
    assert said is not None
    assert said.startswith("POLYNYA-AGT-050: 2 units of work for 3 nodes")
    assert idle.trouble(three, 3, 901.0) is None
    assert idle.trouble(three, 2, 902.0) is None
    drained = {**three, "n3.c": seen("n3.c", drained_by="kim"), "n4.d": seen("n4.d", dead=True)}
    assert idle.trouble(drained, 2, 9000.0) is None
