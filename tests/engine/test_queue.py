"""Who gets the next turn. Time stands in a number and steps cost what a test says they cost."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from polynya.engine.scheduler import (
    LONG_STEPS,
    LONGEST_PAUSE_SECONDS,
    LONGEST_WAIT_SECONDS,
    POLL_SECONDS,
    THREADS,
    UnitQueue,
)
from polynya.engine.unit import IDLE, OVER, StepResult, TimeSlice, Unit
from polynya.model.errors import OperationError, SuspendedError, TaskStoppedError
from tests.engine.machine import Machine, failing, load, nothing, ten_minutes

BROKEN = OperationError("X", "broken")
HELD = SuspendedError("POLYNYA-LAKE-017", "decide")
STOPPED = TaskStoppedError("POLYNYA-LAKE-018", "a new column")


def test_idle_unit_is_polled_again() -> None:
    machine = Machine()
    machine.add(machine.unit("users", nothing))

    machine.run(until=6.5)

    assert [round(at, 1) for at in machine.steps_of("users")] == [0.0, 2.1, 4.2, 6.3]


def test_unit_runs_again_after_the_seconds_that_it_returned() -> None:
    machine = Machine()
    machine.add(machine.unit("users", lambda _time_slice: StepResult(wait_seconds=0.5)))

    machine.run(until=1.0)

    assert [round(at, 1) for at in machine.steps_of("users")] == [0.0, 0.6]


def test_unit_whose_step_took_longer_than_its_interval_runs_again_at_once() -> None:
    machine = Machine()
    machine.add(machine.unit("users", lambda _time_slice: StepResult(wait_seconds=0.0)))

    machine.run(until=0.35)

    assert [round(at, 1) for at in machine.steps_of("users")] == [0.0, 0.1, 0.2, 0.3]


def test_each_unit_gets_time_slices_when_there_is_more_work_than_threads() -> None:
    machine = Machine()
    busy = [
        machine.unit(str(n), lambda time_slice: time_slice.more, lambda _time_slice: 1.0)
        for n in range(12)
    ]
    machine.add(*busy)

    machine.run(until=60.0)

    assert {name: len(machine.steps_of(name)) for name in map(str, range(12))} == dict.fromkeys(
        map(str, range(12)), 20
    )


def test_long_first_loads_do_not_delay_a_small_dataset() -> None:
    machine = Machine()
    loads = [machine.unit(f"load {n}", load, ten_minutes) for n in range(10)]
    machine.add(*loads, machine.unit("small", nothing))

    machine.run(until=3600.0)

    assert machine.longest_wait("small") < POLL_SECONDS + 1.5
    long_turns = [name for at, name in machine.began if name.startswith("load") and at >= 600]
    assert len(long_turns) >= 5 * LONG_STEPS
    assert len(set(long_turns)) == 10


def test_unit_never_runs_twice_at_once() -> None:
    machine = Machine()
    unit = machine.unit("users", lambda time_slice: time_slice.more, lambda _time_slice: 1.0)
    machine.add(unit)

    machine.run(until=5.0)

    assert machine.steps_of("users") == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_failing_unit_waits_longer_each_time_and_others_continue() -> None:
    machine = Machine()
    machine.add(machine.unit("broken", failing(BROKEN)), machine.unit("good", nothing))

    machine.run(until=1000.0)

    turns = machine.steps_of("broken")
    pauses = [round(b - a, 1) for a, b in itertools.pairwise(turns)]
    assert pauses == [4.1, 8.1, 16.1, 32.1, 64.1, 128.1, 256.1, LONGEST_PAUSE_SECONDS + 0.1]
    assert machine.longest_wait("good") < 2.2


def test_success_resets_the_pause() -> None:
    machine = Machine()
    machine.add(machine.unit("users", failing(BROKEN, BROKEN, None, BROKEN, None)))

    machine.run(until=20.0)

    turns = machine.steps_of("users")
    pauses = [round(b - a, 1) for a, b in itertools.pairwise(turns)]
    assert pauses[:4] == [4.1, 8.1, 2.1, 4.1]


def test_suspended_dataset_is_polled_as_usual() -> None:
    machine = Machine()
    machine.add(machine.unit("users", lambda _time_slice: StepResult(refused=HELD)))

    machine.run(until=100.0)

    assert machine.longest_wait("users") < 2.2


def test_stop_policy_ends_only_the_units_of_its_task() -> None:
    machine = Machine()
    steps: list[str] = []

    def slow(_time_slice: TimeSlice) -> StepResult:
        steps.append("slow")
        return IDLE

    machine.add(
        machine.unit("stopped", failing(STOPPED)),
        machine.unit("slow", slow, lambda _time_slice: 5.0),
        machine.unit("sibling", nothing),
    )
    machine.add(machine.unit("other", nothing, task="other"))

    machine.run(until=60.0)

    assert len(machine.steps_of("stopped")) == len(machine.steps_of("sibling")) == 1
    assert steps == ["slow"]
    assert len(machine.steps_of("other")) > 20


def test_stop_ends_the_group_after_its_last_step() -> None:
    machine = Machine()
    group = machine.add(machine.unit("users", nothing, lambda _time_slice: 5.0))
    machine.run(until=1.0)

    group.context.stop.set()
    before = machine.queue.sweep()
    machine.run(until=6.0)

    assert before == []
    assert len(machine.steps_of("users")) == 1
    assert not machine.queue


def test_single_run_continues_until_nothing_is_left_or_a_failure() -> None:
    machine = Machine()
    left = [True, True, False]
    machine.add(
        machine.unit("users", lambda _time_slice: StepResult(more=left.pop(0))),
        machine.unit("broken", failing(BROKEN)),
        group=machine.group(goes_on=False),
    )

    machine.run(until=60.0)

    assert len(machine.steps_of("users")) == 3
    assert len(machine.steps_of("broken")) == 1
    assert not machine.queue


def test_ready_units_get_time_slices_of_their_own() -> None:
    for goes_on, turns in ((True, 10), (False, 1)):
        machine = Machine()
        table = machine.unit("table", nothing)
        finder = machine.unit(
            "task", lambda _time_slice, table=table: StepResult(ready_units=(table,))
        )
        machine.add(finder, group=machine.group(goes_on=goes_on))

        machine.run(until=20.0)

        assert len(machine.steps_of("table")) == turns


def test_unit_that_is_over_runs_again_when_it_is_ready() -> None:
    machine = Machine()
    apply = machine.unit("apply", lambda _time_slice: OVER, cost=lambda _time_slice: 5.0)
    finds = [True, True, False, False, True]
    machine.add(
        machine.unit(
            "copy",
            lambda _time_slice: StepResult(ready_units=(apply,) if finds and finds.pop(0) else ()),
        )
    )

    machine.run(until=20.0)

    # Found a second time while it works it is not run twice; the copies go on meanwhile.
    assert [round(began, 1) for began, name in machine.began if name == "apply"] == [0.1, 8.5]
    assert len(machine.steps_of("copy")) == 10


def test_ready_unit_runs_immediately_unless_it_keeps_failing() -> None:
    machine = Machine(UnitQueue(poll_seconds=60.0))
    good, broken = machine.unit("good", nothing), machine.unit("broken", failing(BROKEN))
    looks = machine.unit(
        "task", lambda _time_slice: StepResult(wait_seconds=5.0, ready_units=(good, broken))
    )
    machine.add(looks)

    machine.run(until=30.0)

    assert len(machine.steps_of("good")) == len(machine.steps_of("task")) == 6
    assert len(machine.steps_of("broken")) == 1


def ten_seconds(_time_slice: TimeSlice) -> float:
    return 10.0


def leisurely(
    name: str, step: Callable[[TimeSlice], StepResult] = lambda _time_slice: OVER
) -> Unit:
    """A unit that has time."""
    return Unit(name, "task", step, low_priority=True)


def test_low_priority_unit_runs_when_no_other_unit_is_due() -> None:
    machine = Machine()
    machine.costs["tidy"] = lambda _time_slice: 1.0
    busy = [machine.unit(f"unit {number}", lambda _time_slice: IDLE) for number in range(20)]
    machine.add(leisurely("tidy"), *busy)
    machine.run(5)

    first_round = [name for at, name in machine.began if at < 1]
    assert set(first_round[:20]) == {unit.name for unit in busy}
    assert machine.steps_of("tidy")[0] <= POLL_SECONDS


def test_only_one_low_priority_unit_runs_at_a_time() -> None:
    machine = Machine()
    at_work: list[float] = []

    def tidy(time_slice: TimeSlice) -> StepResult:
        assert time_slice.long
        at_work.append(machine.now)
        return OVER

    units = [leisurely(f"tidy {number}", tidy) for number in range(3)]
    for unit in units:
        machine.costs[unit.name] = ten_seconds
    machine.add(machine.unit("small", lambda _time_slice: IDLE), *units)
    machine.run(40)

    assert at_work == [0.0, 10.0, 20.0]
    assert machine.longest_wait("small") < POLL_SECONDS + 0.3


def test_low_priority_unit_waits_at_most_a_minute() -> None:
    machine = Machine()
    machine.costs["tidy"] = lambda _time_slice: 1.0
    endless = [
        machine.unit(f"unit {number}", lambda time_slice: time_slice.more, lambda _time_slice: 0.2)
        for number in range(THREADS + 1)
    ]
    machine.add(leisurely("tidy"), *endless)
    machine.run(130)

    assert len(machine.steps_of("tidy")) == 1
    assert LONGEST_WAIT_SECONDS <= machine.steps_of("tidy")[0] < LONGEST_WAIT_SECONDS + 1


def test_low_priority_unit_is_wanted_when_another_unit_waits() -> None:
    queue, group = UnitQueue(), Machine().group()
    queue.add(group, [leisurely("tidy")], 0.0)
    assert queue.take(0.0) is not None
    assert not queue.is_wanted(10.0)

    queue.add(group, [Unit("small", "task", lambda _time_slice: IDLE)], 10.0)
    assert not queue.is_wanted(10.0)
    assert queue.is_wanted(10.1)
    assert queue.take(10.1) is not None
    assert not queue.is_wanted(20.0)
