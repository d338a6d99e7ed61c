"""The network of the agent is cut for minutes: nothing is lost, nothing is done twice."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from polynya.observe.cluster import NetworkConnected, NetworkDisconnected
from polynya.store.jobs import Bounds, GroupFacts
from tests.cluster.network.given import NOW, Network


def test_the_network_is_cut_for_minutes() -> None:
    network = Network()
    network.turns(3)
    assert network.sign().state == "connected"
    network.cut()
    began = network.clock.now()
    stop = network.give("stop")
    network.turns(3)
    assert network.relay.link.connected, "half a minute is no outage"
    network.turns(30)
    assert not network.relay.link.connected
    # Nobody renews what stands in the store, so whoever reads it sees how old it is.
    assert network.clock.now() - network.sign().renewed_at > timedelta(minutes=5)
    assert network.groups.asked == []
    network.heal()
    network.turns()

    assert network.groups.asked == ["remember 1-4", "hold", "bound 0-0"]
    assert network.became(stop)[0] == "taken"
    outage = network.sign().outage
    assert outage is not None
    assert timedelta(0) <= outage.since - began < timedelta(seconds=15)
    assert "POLYNYA-AWS-003" in outage.reason
    kinds = [type(event) for event in network.events]
    assert kinds.count(NetworkDisconnected) == 1
    assert kinds.count(NetworkConnected) == 2


def test_only_aws_is_cut_and_the_sign_of_life_says_so() -> None:
    network = Network()
    network.turns(3)
    network.aws.cut = True
    scale = network.give("scale", 3)
    network.turns(10)

    sign = network.sign()
    assert (sign.state, network.became(scale)[0]) == ("disconnected", "pending")
    assert "POLYNYA-AWS-003" in sign.reason
    network.aws.cut = False
    network.turns()
    assert network.sign().state == "connected"
    assert network.groups.asked == ["want 3"]


@pytest.mark.parametrize("kind", ["stop", "start", "roll", "scale"])
def test_answers_are_lost_and_nothing_is_done_twice(kind: str) -> None:
    network = Network(minimum=0, desired=0) if kind == "start" else Network()
    name = network.give(kind, 4)
    for _ in range(12):
        network.aws.answers_lost = True
        network.turns()
        network.aws.answers_lost = False
        network.turns()
    network.groups.settle()
    network.turns(2)

    assert network.became(name)[0] == "done"
    assert len(network.groups.asked) == len(set(network.groups.asked))


@pytest.mark.parametrize("seed", range(60))
def test_any_weather(seed: int) -> None:
    """Store and AWS fail at random, before or after they did it, and the process dies."""
    network, draw = Network(), Random(seed)
    stop = network.give("stop")
    start: str | None = None
    for turn in range(40):
        bad = draw.random() < 0.6
        for wire in (network.wire, network.aws):
            wire.cut = bad and draw.random() < 0.5
            wire.answers_lost = bad and draw.random() < 0.5
        if draw.random() < 0.2:
            network.boot()
        if turn == 20:
            network.groups.settle()
        if turn == 25:
            start = network.give("start")
        network.turns()
    network.heal()
    network.wire.answers_lost = network.aws.answers_lost = False
    network.turns(2)
    network.groups.settle()
    network.turns(2)

    assert start is not None
    assert network.became(start)[0] == "done"
    assert network.became(stop)[0] in ("done", "failed")
    assert network.groups.now == GroupFacts(Bounds(1, 4, 2), in_service=2)
    asked = network.groups.asked
    assert asked[:3] == ["remember 1-4", "hold", "bound 0-0"]
    assert asked.index("bound 1-4") == 3
    assert len(asked) == 6, "each of them once"


def test_it_says_that_it_ends() -> None:
    network = Network()
    network.turns()
    network.relay.leave()

    assert (network.sign().state, network.sign().reason) == ("disconnected", "it was told to end")
    assert network.sign().since >= NOW
