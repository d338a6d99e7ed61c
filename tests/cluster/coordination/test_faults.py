"""Members on a store that fails: lost answers, outages, and whole lives of random faults."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from tests.cluster.coordination.lab import Lab, Node, outage


def flaky(node: Node, random: Random, share: float) -> None:
    """So many of its requests get lost, before or after they arrive."""

    def fail(kind: str, path: str) -> None:
        if random.random() < share / 2:
            raise outage(path)

    node.store.before = node.store.after = fail


def heal(node: Node) -> None:
    node.store.before = node.store.after = lambda kind, path: None


def dark(node: Node) -> None:
    """Nothing of it arrives."""

    def fail(kind: str, path: str) -> None:
        raise outage(path)

    node.store.before = fail


def test_an_answer_that_is_lost_after_each_write_changes_nothing() -> None:
    lab = Lab(2, wanted=6)

    def lose(kind: str, path: str) -> None:
        if kind == "put" and "/probes/" not in path:
            raise outage(path)

    for node in lab.nodes:
        node.store.after = lose
    lab.passes(60)

    assert lab.settled()
    assert {lab.record(unit)["epoch"] for unit in lab.wanted} == {1}


def test_a_node_whose_last_word_got_no_answer_has_left_all_the_same() -> None:
    lab = Lab(1, wanted=2)
    lab.passes(30)
    node = lab.nodes[0]
    node.draining = True
    node.turn()
    lab.clock.advance(timedelta(seconds=1))

    def gone_unheard(kind: str, path: str) -> None:
        lease = next(lab.store.list("main/nodes")).path
        if b'"gone"' in lab.store.get(lease):
            raise outage(path)

    node.store.after = gone_unheard
    assert not node.turn().left
    heal(node)

    assert node.turn().left


def test_after_an_outage_for_everybody_nothing_moves() -> None:
    lab = Lab(3, wanted=9)
    lab.passes(60)
    before = lab.owners()

    for node in lab.nodes:
        dark(node)
    lab.passes(60)
    assert lab.owners() == {unit: [] for unit in lab.wanted}
    for node in lab.nodes:
        heal(node)
    lab.passes(30)

    assert lab.owners() == before
    assert {lab.record(unit)["epoch"] for unit in lab.wanted} == {1}


def test_a_node_that_alone_does_not_reach_the_store_gives_up_before_the_others_take_over() -> None:
    lab = Lab(3, wanted=9)
    lab.passes(60)
    alone = lab.nodes[0]
    had = alone.granted
    dark(alone)

    for _ in range(12):
        lab.passes(5)
        assert all(len(names) <= 1 for names in lab.owners().values())

    assert not alone.granted
    assert lab.settled()
    assert all(lab.record(unit)["epoch"] == 2 for unit in had)


def test_a_store_that_answers_slowly_delays_but_stops_nothing() -> None:
    lab = Lab(2, wanted=6)

    def wait(kind: str, path: str) -> None:
        lab.clock.advance(timedelta(seconds=0.4))

    for node in lab.nodes:
        node.store.before = wait
    lab.passes(180)

    assert lab.settled()


def test_an_outage_that_takes_its_time_takes_that_of_one_request() -> None:
    lab = Lab(1, wanted=6)
    lab.passes(30)
    node = lab.nodes[0]

    def hang(kind: str, path: str) -> None:
        lab.clock.advance(timedelta(seconds=20))
        raise outage(path)

    node.store.before = hang
    node.store.requests.clear()
    member_state = node.turn()

    assert node.store.requests.total() == 1
    assert len(member_state.troubles) == 1
    assert "POLYNYA-AWS-003" in member_state.troubles[0]


class FaultRun:
    """A cluster to which things happen, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lab = Lab(self.random.randint(1, 4), wanted=self.random.randint(1, 12))
        self.paused: dict[str, float] = {}
        self.faults = 0

    def happens(self) -> None:
        kind = self.random.choice(["kill", "join", "drain", "flaky", "dark", "heal", "pause", ""])
        self.faults += bool(kind)
        lab, random = self.lab, self.random
        node = random.choice(lab.nodes) if lab.nodes else None
        if kind == "join" or node is None:
            lab.add(f"joined{self.faults}")
        elif kind == "kill":
            lab.kill(node)
        elif kind == "drain":
            node.draining = True
        elif kind == "flaky":
            flaky(node, random, share=0.3)
        elif kind == "dark":
            dark(node)
        elif kind == "heal":
            heal(node)
        elif kind == "pause":
            self.paused[node.name] = lab.clock.monotonic() + random.uniform(5, 100)

    def passes(self, seconds: float) -> None:
        lab = self.lab
        end = lab.clock.monotonic() + seconds
        while lab.clock.monotonic() < end:
            for node in self.random.sample(lab.nodes, len(lab.nodes)):
                if lab.clock.monotonic() >= self.paused.get(node.name, 0.0):
                    node.turn()
                    self.check()
                lab.clock.advance(timedelta(seconds=self.random.uniform(0.0, 2.0)))
            lab.clock.advance(timedelta(seconds=self.random.uniform(0.5, 4.0)))
            lab.nodes = [
                one for one in lab.nodes if one.member_state is None or not one.member_state.left
            ]

    def check(self) -> None:
        """No unit is granted twice, unless its owner let the hand-off deadline pass."""
        for unit, names in self.lab.owners().items():
            assert len(names) <= 1, (unit, names)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_no_unit_is_granted_twice_and_at_last_each_once(seed: int) -> None:
    run = FaultRun(seed)
    for _ in range(12):
        run.happens()
        run.passes(run.random.uniform(1, 60))

    run.paused.clear()
    for node in run.lab.nodes:
        heal(node)
    run.lab.add("last")
    run.passes(120)
    for _ in range(30):
        # A move for balance may be under way.
        if not run.lab.settled():
            run.passes(5)

    assert run.lab.settled()
