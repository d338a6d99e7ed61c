"""What is asked of single units: who asks, who does it once, and what everybody sees of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from polynya.cluster.control.reading import read_cluster
from polynya.cluster.control.requests import (
    UNIT_LISTING_SECONDS,
    FinishedRequest,
    PendingRequest,
    Requests,
    UnitRequests,
    WorkRequests,
)
from polynya.cluster.control.status import cluster_status
from polynya.cluster.coordination import store
from polynya.cluster.coordination.documents import NodeLease, UnitOwnership, UnitRequest
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.unit import JobKey
from polynya.model.errors import ConflictError, DependencyError
from polynya.testing.fakes import FakeClock, MemoryObjectStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
X, Y = JobKey("a", "shop.x"), JobKey("a", "shop.y")
RELOAD = UnitRequest(
    kind="reload", mode="truncate_and_insert", by="", since=NOW, reason="month end"
)


class Cluster:
    """The objects of a cluster in memory, two people, and what two nodes know of the wishes."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryObjectStore(), FakeClock()
        self.document_store = DocumentStore(self.store, "main", Random(1))
        self.kim = Requests(self.document_store, "kim", self.clock.now)
        self.lee = Requests(self.document_store, "lee", self.clock.now)
        self.n1 = UnitRequests(self.document_store, "n1", self.clock)
        self.n2 = UnitRequests(self.document_store, "n2", self.clock)

    def later(self) -> None:
        self.clock.advance(timedelta(seconds=UNIT_LISTING_SECONDS))

    def says(self) -> tuple[str | None, str | None]:
        (unit,) = cluster_status(read_cluster(self.store, "main"), ()).units
        return unit.asked, unit.outcome

    def owned(self) -> None:
        lease = NodeLease(node="n1", incarnation="n1.aa", state="ready", since=NOW)
        assert self.document_store.write(store.node_path("n1.aa"), lease, None)
        owner = UnitOwnership(owner="n1.aa", node="n1", epoch=7, since=NOW)
        assert self.document_store.write(store.unit_path(X), owner, None)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def done(asked: PendingRequest, text: str = "3 rows loaded") -> FinishedRequest:
    return FinishedRequest(X, asked, done=True, text=text, epoch=7)


def test_what_is_asked_reaches_every_node_and_goes_when_it_is_done(cluster: Cluster) -> None:
    cluster.kim.ask(X, RELOAD)

    (asked,) = cluster.n1().values()
    assert (asked.command.kind, asked.command.mode) == ("reload", "truncate_and_insert")
    assert asked.text() == "reload, asked by kim: month end"
    assert cluster.n2() == {X: asked}
    cluster.n1.settle(done(asked))
    assert cluster.n1() == {}

    found = read_cluster(cluster.store, "main")
    assert found.requests == {}
    outcome = found.outcomes[X]
    assert (outcome.done, outcome.node, outcome.by, outcome.epoch) == (True, "n1", "kim", 7)
    cluster.later()
    assert cluster.n2() == {}


def test_a_reload_from_the_source_is_a_command_of_its_own(cluster: Cluster) -> None:
    cluster.kim.ask(X, RELOAD.model_copy(update={"kind": "reload-from-source"}))

    (asked,) = cluster.n1().values()

    assert (asked.command.kind, asked.command.mode) == ("reload-from-source", "truncate_and_insert")


def test_a_second_request_is_refused_with_who_asked_and_since_when(cluster: Cluster) -> None:
    cluster.kim.ask(X, RELOAD)

    with pytest.raises(ConflictError) as caught:
        cluster.lee.ask(X, UnitRequest(kind="recreate", by="", since=NOW))

    assert caught.value.code == "POLYNYA-AGT-023"
    since = cluster.clock.now()
    said = f"shop.x has a pending request: reload by kim, {since:%Y-%m-%d %H:%M:%S} UTC"
    assert str(caught.value).startswith(f"a/shop.x: {said}; ")
    assert caught.value.why == "month end"
    cluster.lee.ask(Y, RELOAD)
    assert cluster.lee.withdraw(X)
    assert not cluster.lee.withdraw(X)
    assert cluster.n1().keys() == {Y}


def test_a_node_that_dies_before_it_deletes_the_request_leaves_none_to_be_done_again(
    cluster: Cluster,
) -> None:
    cluster.kim.ask(X, RELOAD)
    (asked,) = cluster.n1().values()
    cluster.store.delete_if_unchanged = fails  # type: ignore[assignment,method-assign]
    cluster.n1.settle(done(asked))
    assert cluster.n1() == {}
    del cluster.store.delete_if_unchanged  # type: ignore[method-assign]

    assert cluster.n2() == {}

    assert read_cluster(cluster.store, "main").requests == {}


def test_an_outcome_that_cannot_be_written_is_kept_until_it_can(cluster: Cluster) -> None:
    cluster.kim.ask(X, RELOAD)
    (asked,) = cluster.n1().values()
    cluster.store.put_if_absent = fails  # type: ignore[assignment,method-assign]
    cluster.n1.settle(done(asked))

    assert cluster.n1() == {}
    assert X in read_cluster(cluster.store, "main").requests
    del cluster.store.put_if_absent  # type: ignore[method-assign]
    assert cluster.n1() == {}

    assert read_cluster(cluster.store, "main").outcomes[X].text == "3 rows loaded"


def test_the_next_request_is_not_taken_for_the_one_before(cluster: Cluster) -> None:
    cluster.kim.ask(X, RELOAD)
    (first,) = cluster.n1().values()
    cluster.kim.withdraw(X)
    cluster.kim.ask(X, RELOAD)
    cluster.n1.settle(done(first))

    cluster.later()

    (second,) = cluster.n1().values()
    assert second.nonce != first.nonce


def test_what_this_version_cannot_do_is_left_to_others(cluster: Cluster) -> None:
    cluster.kim.ask(X, UnitRequest(kind="polish", by="", since=NOW))
    cluster.kim.ask(Y, RELOAD.model_copy(update={"mode": "guess"}))

    assert cluster.n1() == {}
    assert len(read_cluster(cluster.store, "main").requests) == 2


def test_fields_of_a_newer_version_survive_in_an_outcome(cluster: Cluster) -> None:
    for _ in range(2):
        cluster.kim.ask(X, RELOAD)
        cluster.later()
        (asked,) = cluster.n1().values()
        cluster.n1.settle(done(asked))
        cluster.n1()
        path = "main/outcomes/a/shop.x"
        document = json.loads(cluster.store.get(path))
        cluster.store.put(path, json.dumps(document | {"rows": 3}).encode())

    assert json.loads(cluster.store.get("main/outcomes/a/shop.x"))["rows"] == 3


def test_the_status_says_what_a_request_waits_for_and_what_became_of_the_last(
    cluster: Cluster,
) -> None:
    cluster.kim.ask(X, RELOAD)
    said = f"reload asked by kim (month end), {cluster.clock.now():%Y-%m-%d %H:%M:%S} UTC, "
    assert cluster.says() == (f"{said}waits: no node is alive", None)
    cluster.owned()
    assert cluster.says() == (f"{said}n1 does it, or does so after its step", None)
    cluster.lee.stop("a", "")
    assert cluster.says() == (f"{said}waits: a was stopped by lee", None)
    cluster.lee.start("a")
    cluster.lee.freeze("audit")
    assert cluster.says() == (f"{said}waits: the cluster was frozen by lee", None)

    (asked,) = cluster.n1().values()
    cluster.n1.settle(
        FinishedRequest(X, asked, done=False, text="POLYNYA-LAKE-014: no file", epoch=7)
    )
    cluster.n1()

    now = f"{cluster.clock.now():%Y-%m-%d %H:%M:%S} UTC"
    outcome = f"last reload, asked by kim: not done on n1, {now}: POLYNYA-LAKE-014: no file"
    assert cluster.says() == (None, outcome)


def test_a_node_reads_what_is_asked_of_tasks_and_of_units(cluster: Cluster) -> None:
    cluster.kim.stop("b", "")
    cluster.kim.ask(X, RELOAD)

    asked = WorkRequests(cluster.document_store, "n1", cluster.clock)()

    assert (asked.stopped.keys(), asked.units.keys()) == ({"b"}, {X})


def fails(*_: object) -> object:
    raise DependencyError("POLYNYA-AWS-003", "no answer")
