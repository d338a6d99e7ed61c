"""Units that read what others land."""

from __future__ import annotations

from dataclasses import replace

from polynya.engine.unit import IDLE, StepResult, TimeSlice, Unit
from polynya.model.errors import OperationError
from tests.engine.machine import Machine, failing, nothing


def following(unit: Unit) -> Unit:
    return replace(unit, follows=True)


def test_follower_runs_until_the_landing_ended_and_once_more() -> None:
    machine, landed, seen = Machine(), [0], list[tuple[int, bool]]()

    def land(time_slice: TimeSlice) -> StepResult:
        landed[0] += 1
        return time_slice.more if landed[0] < 3 else IDLE

    def read(time_slice: TimeSlice) -> StepResult:
        seen.append((landed[0], time_slice.more_comes))
        return IDLE

    landing = machine.add(
        machine.unit("land", land, lambda _: 1.0), group=machine.group(goes_on=False)
    )
    reader = replace(machine.group(goes_on=False), follows=(landing,))
    machine.add(following(machine.unit("read", read)), group=reader)
    machine.run(until=10)

    assert all(more for _, more in seen[:-1])
    # The last look began when the landing had ended, at once.
    assert seen[-1] == (3, False)
    assert machine.steps_of("read")[-1] == 3.0
    assert not machine.queue


def test_follower_that_fails_ends() -> None:
    machine = Machine()
    landing = machine.add(
        machine.unit("land", nothing, lambda _: 5.0), group=machine.group(goes_on=False)
    )
    reader = replace(machine.group(goes_on=False), follows=(landing,))
    machine.add(
        following(machine.unit("read", failing(OperationError("X", "broken")))), group=reader
    )
    machine.run(until=10)

    assert machine.steps_of("read") == [0.0]
    assert not machine.queue


def test_follower_gets_a_time_slice_when_something_landed() -> None:
    machine, told = Machine(), list[bool]()

    def land(_time_slice: TimeSlice) -> StepResult:
        return StepResult(wait_seconds=1.0, landed=True)

    def read(time_slice: TimeSlice) -> StepResult:
        told.append(time_slice.news)
        return IDLE

    landing = machine.add(machine.unit("land", land, lambda _: 0.5))
    machine.add(
        following(machine.unit("read", read)), group=replace(machine.group(), follows=(landing,))
    )
    machine.add(machine.unit("other", nothing))
    machine.run(until=6.4)

    ends = [at + 0.5 for at in machine.steps_of("land")]
    assert machine.steps_of("read")[1:] == [at for at in ends if at < 6.4]
    assert told == [False, *[True] * (len(told) - 1)]
    assert len(machine.steps_of("other")) == 4


def test_landing_during_a_step_gives_the_follower_another_step_unless_it_failed() -> None:
    machine = Machine()

    def land(_time_slice: TimeSlice) -> StepResult:
        return StepResult(wait_seconds=100.0, landed=True)

    landing = machine.add(machine.unit("land", land, lambda _: 1.0))
    group = replace(machine.group(), follows=(landing,))
    machine.add(following(machine.unit("read", nothing, lambda _: 1.5)), group=group)
    broken = failing(OperationError("X", "broken"))
    machine.add(following(machine.unit("broken", broken, lambda _: 1.5)), group=group)
    machine.run(until=3.0)

    assert machine.steps_of("read") == [0.0, 1.5]
    assert machine.steps_of("broken") == [0.0]
