"""Commands for a cluster's group: carried out once, whatever fails in between."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from polynya.cluster.network.documents import WAKE, ClusterCommand, command_path
from polynya.cluster.network.relay import wake
from polynya.store.jobs import Bounds, FailedLaunch, GroupFacts, Refresh
from tests.cluster.network.given import CLUSTER, NOW, Network

STOPPED = ["remember 1-4", "hold", "bound 0-0"]
STARTED = ["bound 1-4", "release", "forget"]


def test_a_stop_keeps_the_bounds_and_a_start_gives_them_back() -> None:
    network = Network()
    stop = network.give("stop", reason="weekend")
    network.turns()
    assert network.groups.asked == STOPPED
    assert network.became(stop) == ("taken", "2 nodes hand their work over and end")
    network.groups.settle()
    network.turns()
    assert network.became(stop) == ("done", "no node is left")

    start = network.give("start")
    network.turns()
    assert network.groups.asked == STOPPED + STARTED
    assert network.became(start) == ("taken", "0 of 2 nodes are in service")
    network.groups.settle()
    network.turns()

    assert network.became(start) == ("done", "2 nodes in service")
    assert network.groups.now == GroupFacts(Bounds(1, 4, 2), in_service=2)


def test_a_start_of_a_group_without_nodes_wants_one() -> None:
    network = Network(minimum=0, desired=0)
    start = network.give("start")
    network.turns()
    network.groups.settle()
    network.turns()

    assert network.groups.asked == ["want 1"]
    assert network.became(start) == ("done", "1 node in service")


def test_what_waits_in_an_empty_group_wants_one_node() -> None:
    network = Network(minimum=0, desired=0)
    for run in ("1", "2"):
        wake(network.people, "webhook:nightly/deploys", f"run {run}", network.clock.now())
    network.turns()
    assert (network.groups.asked, network.became(WAKE)[0]) == (["want 1"], "taken")
    network.groups.settle()
    network.turns(3)

    assert network.groups.asked == ["want 1"]
    assert network.became(WAKE) == ("done", "1 node in service")


def test_a_node_that_goes_before_it_has_looked_is_replaced() -> None:
    network = Network(minimum=0, desired=1)
    wake(network.people, "kim", "run 1", network.clock.now())
    network.turns(2)
    assert network.became(WAKE) == ("taken", "1 node in service; it may go before it looks")
    # An alarm takes the last node away.
    network.groups.want(CLUSTER, 0)
    network.groups.settle()
    network.turns()

    assert network.groups.asked == ["want 0", "want 1"]


def test_a_later_run_wakes_the_cluster_again() -> None:
    network = Network(minimum=0, desired=0)
    for _ in range(2):
        wake(network.people, "kim", "a run", network.clock.now())
        network.turns()
        network.groups.settle()
        network.turns(4)
        network.groups.want(CLUSTER, 0)
        network.groups.settle()

    assert network.groups.asked == ["want 1", "want 0", "want 1", "want 0"]


@pytest.mark.parametrize(
    ("maximum", "stopped", "why"),
    [
        (0, None, "its group may have no nodes now"),
        (0, Bounds(0, 4, 1), "the cluster is stopped: start it first"),
    ],
)
def test_nothing_wakes_a_group_that_may_have_no_node(
    maximum: int, stopped: Bounds | None, why: str
) -> None:
    network = Network(minimum=0, maximum=maximum, desired=0)
    assert network.groups.now is not None
    network.groups.now = replace(network.groups.now, stopped=stopped)
    wake(network.people, "kim", "a run", network.clock.now())
    network.turns()

    assert (network.groups.asked, network.became(WAKE)) == ([], ("refused", why))


def test_a_scale_is_within_the_bounds_and_ends_when_the_nodes_serve() -> None:
    network = Network()
    most, more = network.give("scale", 5), network.give("scale", 4)
    network.turns()
    assert network.became(most) == (
        "refused",
        "the group may have 1 to 4 nodes: change the stage file and deploy",
    )
    assert network.became(more) == ("taken", "2 of 4 nodes are in service")
    assert network.groups.now is not None
    launch = FailedLaunch(NOW, "no Spot capacity", capacity=True)
    network.groups.now = replace(network.groups.now, failed_launch=launch)
    network.turns()
    assert network.became(more)[1].endswith("; the newest launch failed: no Spot capacity")
    network.groups.settle()
    network.turns()

    assert network.became(more) == ("done", "4 nodes in service")
    assert network.groups.asked == ["want 4"]


def test_a_strategy_that_scales_on_ends_a_scale() -> None:
    network = Network()
    scale = network.give("scale", 4)
    network.turns()
    network.groups.want(CLUSTER, 3)
    network.turns(3)

    assert network.became(scale) == ("done", "it was set; since then it was changed to 3")
    assert network.groups.asked == ["want 4", "want 3"]


def test_a_roll_replaces_the_nodes_once_and_follows_it() -> None:
    network = Network()
    first, second = network.give("roll"), network.give("roll")
    network.turns(3)
    assert network.became(first) == ("taken", "0 % are replaced")
    assert network.became(second) == (
        "refused",
        "its nodes are being replaced already, 0 % so far",
    )
    network.groups.settle()
    network.turns(3)

    assert network.became(first) == ("done", "all nodes are replaced")
    assert network.groups.asked == ["roll"]


def test_a_roll_that_aws_gives_up_fails_with_its_reason() -> None:
    network = Network()
    roll = network.give("roll")
    network.turns()
    assert network.groups.now is not None
    failed = Refresh("r1", "failed", "a node was never ready", 40, NOW)
    network.groups.now = replace(network.groups.now, refresh=failed)
    network.turns()

    assert network.became(roll) == ("failed", "the replacement ended: a node was never ready")


@pytest.mark.parametrize("kind", ["scale", "roll"])
def test_a_stopped_cluster_is_only_started(kind: str) -> None:
    network = Network()
    network.give("stop")
    network.turns()
    refused = network.give(kind, 2)
    network.turns()

    assert network.became(refused) == ("refused", "the cluster is stopped: start it first")


def test_a_start_overtakes_a_stop_that_is_not_through() -> None:
    network = Network()
    stop = network.give("stop")
    network.turns()
    start = network.give("start")
    network.turns(2)
    network.groups.settle()
    network.turns(2)

    assert network.became(stop) == ("failed", "start by kim came before it was through")
    assert network.became(start)[0] == "done"
    assert network.groups.now == GroupFacts(Bounds(1, 4, 2), in_service=2)


def test_a_stop_overtakes_whatever_was_before_it() -> None:
    network = Network()
    roll, scale = network.give("roll"), network.give("scale", 4)
    network.turns()
    stop = network.give("stop")
    network.turns(2)

    assert [network.became(name)[0] for name in (roll, scale, stop)] == [
        "failed",
        "failed",
        "taken",
    ]
    assert network.groups.asked == ["roll", "want 4", *STOPPED]


def test_commands_of_one_moment_are_carried_out_in_their_order() -> None:
    network = Network()
    stop, start, scale = network.give("stop"), network.give("start"), network.give("scale", 3)
    network.turns(2)
    network.groups.settle()
    network.turns(2)

    assert [network.became(name)[0] for name in (stop, start, scale)] == ["failed", "done", "done"]
    assert network.groups.now == GroupFacts(Bounds(1, 4, 3), in_service=3)


def test_what_nobody_knows_is_refused_and_what_a_newer_version_wrote_is_left_alone() -> None:
    network = Network()
    unknown = network.give("explode")
    newer = f"{CLUSTER}/{command_path('20260101T000000.000000Z-newer')}"
    damaged = f"{CLUSTER}/{command_path('20260101T000000.000001Z-damaged')}"
    network.store.put(newer, b'{"v": 2, "kind": "stop", "verily": true}')
    network.store.put(damaged, b"\xff{")
    hostile = f"{CLUSTER}/{command_path('20260101T000000.000002Z-hostile')}"
    network.store.put(
        hostile, b'{"v": 1, "kind": "scale", "nodes": 1e9, "by": "x", "since": "2026-01-01"}'
    )
    network.turns(3)

    state, why = network.became(unknown)
    assert (state, why.partition(",")[0]) == ("refused", "unknown to this network agent")
    assert network.store.get(newer) == b'{"v": 2, "kind": "stop", "verily": true}'
    assert network.store.get(damaged) == b"\xff{"
    assert len(network.told("command.unread")) == 3
    assert network.groups.asked == []


def test_fields_of_a_newer_version_survive() -> None:
    network = Network()
    name = network.give("roll")
    path = f"{CLUSTER}/{command_path(name)}"
    network.store.put(
        path, json.dumps(json.loads(network.store.get(path)) | {"gently": 1}).encode()
    )
    network.turns()

    written = json.loads(network.store.get(path))
    assert (written["state"], written["gently"]) == ("taken", 1)


def test_a_command_that_waited_too_long_is_not_carried_out() -> None:
    network = Network()
    network.cut()
    stop = network.give("stop")
    network.turns(20, seconds=200)
    network.heal()
    network.turns()

    assert network.became(stop)[0] == "refused"
    assert network.groups.asked == []


def test_a_group_that_never_gets_there_ends_the_command() -> None:
    network = Network()
    scale = network.give("scale", 4)
    network.turns(40, seconds=100)

    assert network.became(scale) == (
        "failed",
        "not through after 1 hour: 2 of 4 nodes are in service",
    )
    assert network.groups.asked == ["want 4"]


def test_what_aws_refuses_fails_with_what_it_said() -> None:
    network = Network()
    network.groups.refuses = "AccessDenied: no"
    stop = network.give("stop")
    network.turns(3)

    assert network.became(stop) == ("failed", "refused: AccessDenied: no")
    assert network.relay.link.connected


@pytest.mark.parametrize("facts", [None, GroupFacts(Bounds(1, 4, 2), deleting=True)])
def test_a_cluster_without_a_group_refuses_everything(facts: GroupFacts | None) -> None:
    network = Network()
    network.groups.now = facts
    names = [network.give(kind, 1) for kind in ("stop", "start", "roll", "scale")]
    network.turns()

    assert {network.became(name)[0] for name in names} == {"refused"}


def test_what_ended_long_ago_is_deleted() -> None:
    network = Network()
    network.give("explode")
    network.turns()
    network.clock.advance(timedelta(days=8))
    network.turns()

    assert [path for path in network.store.objects if "commands" in path] == []


def test_a_second_process_goes_on_where_the_first_one_died() -> None:
    for steps in range(1, 8):
        network = Network()
        stop = network.give("stop")
        network.relay._queue.refresh()
        network.relay._look()
        for _ in range(steps):
            command = network.relay._queue.get(stop)
            assert command is not None
            network.relay._step(stop, command)
        network.boot()
        network.turns(2)
        network.groups.settle()
        network.turns(2)

        assert network.became(stop) == ("done", "no node is left")
        assert network.groups.asked == STOPPED


def test_a_command_that_is_unknown_to_the_model_is_none() -> None:
    assert ClusterCommand(kind="scale", nodes=3, by="kim", since=NOW).text() == "scale to 3"
