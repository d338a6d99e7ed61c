"""Documents of a cluster: paths, unknown fields, and what is of a newer version."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from random import Random

import pytest

from polynya.cluster.coordination import store
from polynya.cluster.coordination.documents import (
    LeaderLease,
    NewerDocumentError,
    NodePlan,
    UnitOwnership,
    parse,
)
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.unit import JobKey
from polynya.model.errors import OperationError
from polynya.store.object_store import checked_path
from polynya.testing.fakes import MemoryObjectStore

AT = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    "name", ["a", "a/b", "..", ".", ".hidden", "ä ö", "50%", "a\\b", "\0", "%2E", "x" * 80]
)
def test_every_name_is_one_element_of_a_path_and_comes_back(name: str) -> None:
    unit = JobKey(name, name)

    path = store.unit_path(unit)

    assert checked_path(path).parts[0] == "units"
    assert len(checked_path(path).parts) == 3
    assert store.unit_at(path) == unit


def test_two_names_never_share_a_path() -> None:
    names = ["a/b", "a%2Fb", "a", "a.b", ".a", "%2Ea", "A"]
    assert len({store.element(name) for name in names}) == len(names)


def test_an_incarnation_names_its_node_whatever_the_name_holds() -> None:
    assert store.node_of(store.incarnation_of("ip-10.0.0.1", "a1b2")) == "ip-10.0.0.1"


def test_unknown_fields_survive_a_rewrite() -> None:
    data = UnitOwnership(epoch=3, since=AT).encoded()
    newer = json.dumps({**json.loads(data), "region": {"name": "north"}}).encode()

    written = parse(UnitOwnership, newer, "units/a/b").model_copy(update={"epoch": 4}).encoded()

    assert json.loads(written)["region"] == {"name": "north"}
    assert json.loads(written)["epoch"] == 4


def test_a_document_comes_back_as_it_was() -> None:
    plan = NodePlan(term=1, number=2, units=(("t", "s.n", "new"),))

    assert parse(NodePlan, plan.encoded(), "plans/a") == plan
    assert plan.reasons() == {JobKey("t", "s.n"): "new"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"v": 2, "term": 1}',
        b'{"v": 1, "term": -1}',
        b'{"v": 1, "term": "x"}',
        b'{"v": 1}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_no_document_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(OperationError) as caught:
        parse(LeaderLease, data, "leader")

    assert caught.value.code == "POLYNYA-AGT-012"
    assert caught.value.where == "leader"


@pytest.mark.parametrize("data", [b'{"v": 2, "term": 1}', b'{"v": 2}', b'{"v": 2, "term": "x"}'])
def test_what_is_of_a_newer_version_is_called_so_whatever_it_holds(data: bytes) -> None:
    with pytest.raises(NewerDocumentError):
        parse(LeaderLease, data, "leader")


def test_what_is_as_it_was_read_last_is_not_parsed_again_and_what_changed_is() -> None:
    document_store = DocumentStore(MemoryObjectStore(), "c", Random(1))
    document_store.write("leader", LeaderLease(term=1), None)

    first = document_store.read(LeaderLease, "leader")
    assert first is not None
    assert document_store.read(LeaderLease, "leader", first) is first

    document_store.write("leader", LeaderLease(term=2), first.version)
    second = document_store.read(LeaderLease, "leader", first)
    assert second is not None
    assert second.document.term == 2
