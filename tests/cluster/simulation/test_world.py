"""Simulated time, processes and the line to the store are what the simulation takes them for."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from random import Random

import pytest

from polynya.model.errors import DependencyError
from tests.cluster.simulation.parts.faults import Rates, StoreFaults
from tests.cluster.simulation.parts.machine import Machine, MachineClock
from tests.cluster.simulation.parts.store import Objects, StoreLine
from tests.cluster.simulation.parts.world import Process, World


def line(world: World, process: Process, **rates: float) -> tuple[Objects, StoreLine]:
    """A store, and the way of a process to it."""
    objects = Objects(world)
    return objects, StoreLine(objects, process, StoreFaults(Random(1), Rates(**rates), heals=100.0))


def test_a_paused_process_stands_still_and_what_it_sent_arrives() -> None:
    world, told = World(1), list[float]()
    process = Process(world, "p")
    objects, store = line(world, process)

    def work() -> None:
        store.put("a", b"1")
        told.append(world.now)

    process.start(work)
    world.at(0.001, lambda: process.pause(50.0))
    world.run(10.0)

    assert objects.read("a") is not None
    assert told == []
    world.run(100.0)
    assert told == [pytest.approx(50.001)]


def test_nothing_of_a_life_is_kept_when_it_ends() -> None:
    world = World(1)
    held = Objects(world)
    kept = weakref.ref(held)

    def work(held: Objects, process: Process) -> None:
        process.wait(1000.0)
        held.read("a")

    process = Process(world, "p")
    process.start(partial(work, held, process))
    world.run(10.0)

    world.end()
    del held, process, world
    gc.collect()

    assert kept() is None


def test_a_killed_process_does_nothing_more_and_what_it_sent_arrives() -> None:
    world, told = World(1), list[str]()
    process = Process(world, "p")
    objects, store = line(world, process)

    def work() -> None:
        try:
            store.put("a", b"1")
            told.append("went on")
        finally:
            told.append("closed")
            store.put("b", b"1")

    process.start(work)
    world.at(0.001, process.kill)
    world.run(100.0)

    assert told == ["closed"]
    assert (objects.read("a") is not None, objects.read("b")) == (True, None)


def test_an_error_says_nothing_about_whether_the_write_was_made() -> None:
    found = {
        name: _written(**{name: 1.0}) for name in ("lost", "applied_but_error", "refused", "late")
    }

    assert found == {
        "lost": ("error", False),
        "applied_but_error": ("error", True),
        "refused": (False, False),
        "late": ("error", True),
    }
    assert _written(refused_but_applied=1.0) == (False, True)


def _written(**rates: float) -> tuple[object, bool]:
    world, told = World(1), list[object]()
    process = Process(world, "p")
    objects, store = line(world, process, **rates)

    def work() -> None:
        try:
            told.append(store.put_if_absent("a", b"1"))
        except DependencyError:
            told.append("error")

    process.start(work)
    world.run(60.0)
    return told[0], objects.read("a") is not None


def test_the_same_bytes_are_the_same_etag_as_on_s3() -> None:
    world = World(1)
    objects = Objects(world)
    objects.write("p", "a", b"1")
    held = objects.read("a")
    objects.write("p", "a", b"2")
    objects.write("p", "a", b"1")

    assert held is not None
    assert objects.matches("a", held[1])


def test_clocks_drift_and_only_one_of_them_counts_suspension() -> None:
    world = World(1)
    machine = Machine(world, "n", drift=0.02, skew=3600.0)
    machine.suspend(40.0)
    world.run(100.0)
    clock = MachineClock(machine, Process(world, "p"))

    assert clock.monotonic() == pytest.approx(102.0)
    assert machine.awake() == pytest.approx(61.2)
    assert (clock.now().hour, clock.now().minute) == (1, 1)
