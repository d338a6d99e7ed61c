"""Spot interruptions are counted after the leases of their nodes are gone."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from polynya.cluster.control.interruptions import (
    INTERRUPTIONS,
    InterruptionCounts,
    InterruptionLog,
    count_interruptions,
    moment_of,
)
from polynya.cluster.control.reading import read_cluster
from polynya.cluster.coordination.member_state import NodeIdentity
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.spot import SpotNotices, advise
from polynya.testing.fakes import FakeClock, MemoryObjectStore

_ADVICE = advise(SpotNotices(action='{"action": "terminate", "time": "2026-11-29T12:00:00Z"}'))
assert _ADVICE is not None
NOTICE = _ADVICE.reason


class Nodes:
    """Nodes of a cluster that AWS takes back."""

    def __init__(self) -> None:
        self.clock, self.store = FakeClock(), MemoryObjectStore()
        self.documents = DocumentStore(self.store, "shop", Random(1))

    def log(self, name: str) -> InterruptionLog:
        me = NodeIdentity(name, machine="m7g.large", zone="eu-1a")
        return InterruptionLog(self.documents, me, self.clock.now)

    @property
    def counts(self) -> InterruptionCounts:
        moments = read_cluster(self.store, "shop").interruptions
        return count_interruptions(moments, self.clock.now())


def test_an_interruption_is_written_once_and_other_drains_are_none() -> None:
    nodes = Nodes()
    interrupted, drained = nodes.log("i-1"), nodes.log("i/2")
    for _ in range(3):
        interrupted(NOTICE)
        drained("drained by kim")
        nodes.clock.advance(timedelta(seconds=5))

    assert nodes.counts == InterruptionCounts(1, 1)


def test_they_are_counted_for_a_day_and_for_thirty_and_then_deleted() -> None:
    nodes = Nodes()
    nodes.log("i-1")(NOTICE)
    nodes.clock.advance(timedelta(days=2))
    nodes.log("i/2")(NOTICE)
    assert nodes.counts == InterruptionCounts(1, 2)

    nodes.clock.advance(timedelta(days=29))
    assert nodes.counts == InterruptionCounts(0, 1)
    nodes.log("i-3")(NOTICE)
    assert len(nodes.documents.list(INTERRUPTIONS)) == 2


def test_what_the_store_did_not_take_is_written_later_with_its_own_moment() -> None:
    nodes = Nodes()
    log, at = nodes.log("i-1"), nodes.clock.now()
    put = nodes.store.put_if_absent
    nodes.store.put_if_absent = _refuse  # type: ignore[method-assign, assignment]
    log(NOTICE)
    assert nodes.counts == InterruptionCounts(0, 0)

    nodes.store.put_if_absent = put  # type: ignore[method-assign]
    nodes.clock.advance(timedelta(seconds=20))
    log(NOTICE)
    (path,) = nodes.documents.list(INTERRUPTIONS)
    assert moment_of(path) == at.replace(microsecond=0)


def _refuse(*_: object) -> bool:
    raise OSError("no answer")
