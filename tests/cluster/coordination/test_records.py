"""Records, leases and stores that are not as they should be, and what a member makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.cluster.coordination.store import unit_path
from polynya.cluster.unit import JobKey
from polynya.model.errors import OperationError
from polynya.testing.fakes import MemoryObjectStore
from tests.cluster.coordination.lab import CLUSTER, Lab


def put(lab: Lab, unit: JobKey, record: dict[str, Any]) -> None:
    """Somebody writes a record."""
    lab.store.put(f"{CLUSTER}/{unit_path(unit)}", json.dumps(record).encode())


def test_a_fenced_unit_that_is_still_ours_goes_on_above_the_epoch_of_its_table() -> None:
    lab = Lab(1, wanted=2)
    lab.passes(30)
    unit = min(lab.wanted)

    lab.nodes[0].fenced = {unit: 41}
    member_state = lab.nodes[0].turn()

    assert member_state.grants[unit] == 42
    assert lab.record(unit)["epoch"] == 42
    assert [one.what for one in member_state.actions] == ["raised"]

    # Told once more by an agent that has not heard of it: nothing is left to do.
    lab.nodes[0].fenced = {unit: 41}
    member_state = lab.nodes[0].turn()
    assert member_state.grants[unit] == 42
    assert not member_state.actions


def test_a_fenced_unit_that_another_node_has_is_lost() -> None:
    lab = Lab(1, wanted=2)
    lab.passes(30)
    unit = min(lab.wanted)
    theirs = {**lab.record(unit), "owner": "n9.a", "node": "n9", "epoch": 7}
    put(lab, unit, theirs)

    lab.nodes[0].fenced = {unit: 7}
    member_state = lab.nodes[0].turn()

    # No process has that lease, so it is claimed again, above what the table has.
    assert [one.what for one in member_state.actions] == ["lost", "claimed"]
    assert member_state.grants[unit] == lab.record(unit)["epoch"] == 8


def test_the_same_epoch_with_another_owner_is_an_alarm() -> None:
    lab = Lab(1, wanted=2)
    lab.passes(30)
    unit = min(lab.wanted)
    put(lab, unit, {**lab.record(unit), "owner": "n9.a", "node": "n9"})

    lab.passes(5)

    assert [one.unit for one in lab.nodes[0].did("alarm")] == [unit]
    assert lab.nodes[0].member_state is not None
    assert "POLYNYA-AGT-013" in lab.nodes[0].member_state.troubles[0]


def test_a_deleted_record_does_not_set_the_epoch_back() -> None:
    lab = Lab(1, wanted=2)
    lab.passes(30)
    unit = min(lab.wanted)
    put(lab, unit, {**lab.record(unit), "epoch": 5})
    lab.passes(10)
    lab.store.delete(f"{CLUSTER}/units/{unit.task}/{unit.name}")

    lab.passes(20)

    assert lab.record(unit)["epoch"] == 6


def test_a_unit_that_is_no_longer_wanted_is_released_and_one_that_is_new_is_claimed() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    gone = min(lab.wanted)
    lab.wanted = (lab.wanted - {gone}) | {JobKey("t9", "shop.new")}
    for node in lab.nodes:
        node.wanted = lab.wanted

    lab.passes(60)

    assert lab.settled()
    assert lab.record(gone)["owner"] is None
    assert lab.record(gone)["epoch"] == 1


def test_a_unit_that_this_node_does_not_know_yet_is_waited_for_a_moment_and_said_so() -> None:
    lab = Lab(2, wanted=4)
    for node in lab.nodes:
        node.turn()
    late = next(node for node in lab.nodes if node.name not in lab.leaders())
    late.wanted = frozenset()

    lab.passes(30)
    assert late.member_state is not None
    assert set(late.member_state.waiting.values()) == {
        "the configuration of this node does not have it"
    }

    late.wanted = lab.wanted
    lab.passes(10)
    assert lab.settled()
    # It was the one that it was planned for, and not another one in the meantime.
    assert late.granted


def test_a_store_that_refuses_for_a_moment_is_tried_again() -> None:
    class Busy(MemoryObjectStore):
        refusals = 1

        def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
            self.refusals -= 1
            return self.refusals < 0 and super().put_if_unchanged(path, data, version)

    lab = Lab(1, wanted=1, store=Busy())

    member_state = lab.nodes[0].turn()
    assert "POLYNYA-AGT-014" in member_state.troubles[0]
    lab.passes(15)

    assert lab.settled()


def test_a_store_that_does_not_compare_is_refused() -> None:
    class Careless(MemoryObjectStore):
        def put_if_unchanged(self, path: str, data: bytes, version: str) -> bool:
            self.objects[path] = data
            return True

    class Overwriting(MemoryObjectStore):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            self.objects[path] = data
            return True

    for store in (Careless(), Overwriting()):
        lab = Lab(1, wanted=1, store=store)
        with pytest.raises(OperationError) as caught:
            lab.nodes[0].turn()
        assert caught.value.code == "POLYNYA-AGT-010"


def test_a_lease_that_was_deleted_makes_another_process_of_it() -> None:
    lab = Lab(1, wanted=2)
    lab.passes(30)
    node = lab.nodes[0]
    before = node.member_state
    assert before is not None
    lab.store.delete(f"{CLUSTER}/nodes/{before.incarnation}")

    lab.passes(30)

    assert node.member_state is not None
    assert node.member_state.incarnation != before.incarnation
    assert lab.settled()
    assert {lab.record(unit)["epoch"] for unit in lab.wanted} == {2}


def test_what_is_dead_for_an_hour_is_deleted_but_records_of_units_are_not() -> None:
    lab = Lab(2, wanted=4)
    lab.passes(60)
    lab.kill(lab.nodes[0])

    lab.passes(4000, turn=10.0)

    assert len([*lab.store.list(f"{CLUSTER}/nodes")]) == 1
    assert len([*lab.store.list(f"{CLUSTER}/plans")]) == 1
    assert len([*lab.store.list(f"{CLUSTER}/units")]) == 4
