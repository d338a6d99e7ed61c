"""Datasets of one folder share a list of its files, which only gets newer."""

from __future__ import annotations

from datetime import timedelta

from polynya.engine.runner import units
from polynya.engine.work.look import SharedLook
from polynya.engine.work.turns.unit import Turn
from polynya.store.object_store import ObjectInfo
from polynya.testing.fakes import FakeClock
from tests.lab.lab import Lab, put

GOES_ON, AT_ONCE = Turn(at_once=False), Turn(at_once=True)


def test_a_young_list_serves_the_next_dataset_and_a_single_run_lists_each_time() -> None:
    clock, landed, lists = FakeClock(), [ObjectInfo("a", 1, "1")], []

    def list_files() -> list[ObjectInfo]:
        lists.append(len(landed))
        return list(landed)

    look = SharedLook(list_files, clock)
    first = look.files(GOES_ON)
    landed.append(ObjectInfo("b", 1, "1"))
    clock.advance(timedelta(seconds=0.9))
    second = look.files(GOES_ON)
    clock.advance(timedelta(seconds=0.1))
    third = look.files(GOES_ON)
    landed.clear()

    assert (len(first), len(second), len(third)) == (1, 1, 2)
    assert look.paths() == {"a", "b"}
    assert list(look.files(AT_ONCE)) == []
    assert look.paths() == set()
    assert lists == [1, 2, 0]


def test_after_an_apply_a_dataset_is_looked_at_sooner_than_after_a_poll(lab: Lab) -> None:
    users = lab.feed()
    users.land(put(1, 1))
    (unit,) = units(lab.context("always"), [users.task])

    copied, applied, nothing = (unit.step(Turn()) for _ in range(3))

    assert copied.more
    assert applied.look_again == 1.0
    assert nothing.look_again is None
