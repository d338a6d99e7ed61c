"""Random lives of a stream: whatever it does, who gossips goes on, and comes back when it heals."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from polynya.model.errors import DependencyError
from polynya.store.streams import Page, StreamRecord
from polynya.testing.fakes import FakeClock, MemoryRecordStream, no_stream
from tests.cluster.gossip.given import Node, let_pass, names, unit

OUTAGE = DependencyError("POLYNYA-AWS-003", "no answer")


class Faulty(MemoryRecordStream):
    """A stream that loses, repeats, reorders and spoils records while `unruly` is above 0."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__(draw.randint(1, 4), page_records=draw.choice([3, 10, 1000]))
        self._draw = draw
        self.unruly = 0.0
        self.faults: Counter[str] = Counter()

    def put(self, key: str, data: bytes) -> None:
        if self._draw.random() >= self.unruly:
            super().put(key, data)
            return
        fault = self._draw.choice(["lost", "twice", "spoilt", "stored but refused"])
        self.faults[fault] += 1
        if fault == "twice":
            super().put(key, data)
            super().put(key, data)
        elif fault == "spoilt":
            place = self._draw.randrange(len(data))
            super().put(key, data[:place] + b"\xff" + data[place + 1 :])
        elif fault == "stored but refused":
            super().put(key, data)
            raise OUTAGE

    def read(self, iterator: str) -> Page:
        page = super().read(iterator)
        if page.records and self._draw.random() < self.unruly:
            self.faults["reordered"] += 1
            again = [self._draw.choice(page.records) for _ in page.records]
            records: list[StreamRecord] = [*page.records, *again]
            self._draw.shuffle(records)
            return Page(tuple(records), page.following, page.behind_seconds)
        return page


def events(stream: Faulty, draw: random.Random) -> dict[str, Callable[[], None]]:
    """What may happen to a stream."""

    def fails(error: DependencyError | None) -> Callable[[], None]:
        return lambda: setattr(stream, "failure", error)

    return {
        "resharded": lambda: stream.reshard(draw.randint(1, 8)),
        "expired": stream.expire,
        "throttled": lambda: setattr(stream, "throttled_reads", draw.randint(1, 60)),
        "deleted": fails(no_stream()),
        "silent": fails(OUTAGE),
        "back": fails(None),
        "unruly": lambda: setattr(stream, "unruly", draw.random() * 0.6),
    }


def run_with_faults(seed: int) -> Counter[str]:
    """One life; returns the faults that there were."""
    draw, clock = random.Random(seed), FakeClock()
    stream = Faulty(draw)
    nodes = [Node(f"n{number}", stream, clock) for number in range(draw.randint(2, 5))]
    happening = events(stream, draw)
    for number in range(12):
        what = draw.choice(list(happening))
        stream.faults[what] += 1
        happening[what]()
        draw.choice(nodes).works(*(unit(f"{number}-{one}") for one in range(draw.choice([1, 150]))))
        let_pass(draw.uniform(1, 120), clock, *nodes)
        for node in nodes:
            ages = [one.age_seconds for one in node.hears().values()]
            assert len(ages) <= len(nodes) - 1, seed

    stream.failure, stream.throttled_reads, stream.unruly = None, 0, 0.0
    for number, node in enumerate(nodes):
        node.works(unit(f"healed-{number}"))
    let_pass(240, clock, *nodes)
    for node in nodes:
        heard = node.hears()
        told = {name for one in heard.values() for name in names(one.heartbeat.units)}
        mine = {f"healed-{nodes.index(node)}"}
        assert told == {f"healed-{number}" for number in range(len(nodes))} - mine, seed
        assert max(one.age_seconds for one in heard.values()) < 30, seed
        assert node.gossip.trouble is None, seed
    return stream.faults


@pytest.mark.parametrize(
    "runs", [8, pytest.param(1000, marks=pytest.mark.slow)], ids=["quick", "many"]
)
def test_after_any_life_of_the_stream_all_hear_each_other_again(runs: int) -> None:
    faults = sum((run_with_faults(seed) for seed in range(runs)), Counter[str]())

    kinds = 5 + len(events(Faulty(random.Random(0)), random.Random(0)))
    assert len(faults) == kinds, faults
    assert min(faults.values()) >= runs / 4, faults
