"""Units on real threads, and two datasets of which one has a long first load."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest

from polynya.engine.context import EngineContext, EngineHooks
from polynya.engine.runner import run_once, run_until_stopped, units
from polynya.engine.scheduler import THREADS
from polynya.engine.unit import IDLE, TOO_LONG, StepResult, TimeSlice, Unit
from polynya.model.errors import OperationError, StaleStepError
from polynya.observe.engine import BatchCopied
from polynya.observe.events import Event
from polynya.store.clock import SystemClock
from polynya.testing.fakes import MemoryObjectStore
from tests.lab.lab import Lab, put


def test_short_step_runs_while_loads_occupy_every_other_thread() -> None:
    spark: Any = None
    context = EngineContext(spark, MemoryObjectStore())
    under_way, released = threading.Semaphore(0), threading.Event()

    def load(time_slice: TimeSlice) -> StepResult:
        if not time_slice.long:
            return TOO_LONG
        under_way.release()
        released.wait(20)
        return IDLE

    def small(_time_slice: TimeSlice) -> StepResult:
        # Not before all loads that may be under way at once are.
        if all(under_way.acquire(timeout=20) for _ in range(THREADS - 1)):
            context.stop.set()
            released.set()
        return IDLE

    loads = [Unit(f"load {number}", "loads", load) for number in range(THREADS + 1)]
    outcome = run_until_stopped(context, [*loads, Unit("small", "small", small)])

    assert context.stop.is_set()
    assert not outcome.failures


def test_run_ends_when_a_failure_cannot_be_reported() -> None:
    def closed(_event: Event) -> None:
        raise BrokenPipeError

    def fail(_time_slice: TimeSlice) -> StepResult:
        raise OperationError("X", "broken")

    spark: Any = None
    context = EngineContext(spark, MemoryObjectStore(), sink=closed)
    with pytest.raises(BrokenPipeError):
        run_until_stopped(context, [Unit("users", "task", fail)])


def test_cause_is_not_searched_for_failures_of_landings() -> None:
    spark: Any = None
    hooks = EngineHooks(cause_of=lambda failure: OperationError("GONE", f"behind {failure.code}"))
    context = EngineContext(spark, MemoryObjectStore(), hooks=hooks)
    context.has_worked = True

    def fail(_time_slice: TimeSlice) -> StepResult:
        raise OperationError("A", "no rights")

    outcome = run_once(context, [Unit("shop_db", "shop_db", fail, lands=True)])
    context.has_worked = False
    run_once(context, [Unit("shop_db", "shop_db", lambda _: IDLE, lands=True)])

    assert [one.message for one in outcome.failures.values()] == ["no rights"]
    assert not context.has_worked


def test_cause_is_searched_once_there_are_tables() -> None:
    spark: Any = None
    hooks = EngineHooks(cause_of=lambda failure: OperationError("GONE", f"behind {failure.code}"))
    context = EngineContext(spark, MemoryObjectStore(), hooks=hooks)
    steps = iter([OperationError("A", "first"), None, OperationError("B", "then")])
    told: list[str] = []

    def step(_time_slice: TimeSlice) -> StepResult:
        failure = next(steps)
        if failure is not None:
            raise failure
        return StepResult(more=True)

    for _ in range(2):
        outcome = run_once(context, [Unit("users", "task", step)])
        told += [one.message for one in outcome.failures.values()]

    assert told == ["first", "behind B"]


def test_run_ends_with_the_first_step_after_spark_died() -> None:
    spark: Any = None
    context = EngineContext(spark, MemoryObjectStore(), hooks=EngineHooks(is_alive=lambda: False))

    def step(_time_slice: TimeSlice) -> StepResult:
        raise ConnectionRefusedError(111, "Connection refused")

    def idle(_time_slice: TimeSlice) -> StepResult:
        return IDLE

    work = [Unit("users", "task", step), Unit("orders", "other", idle)]
    outcome = run_until_stopped(context, work)

    assert {name: one.code for name, one in outcome.failures.items()} == {
        "users": "POLYNYA-DEP-018"
    }
    assert max(one.exit_code for one in outcome.failures.values()) == 4


@pytest.mark.parametrize(("stale", "steps"), [(3, 4), (9, 4)], ids=["a few times", "always"])
def test_step_is_repeated_after_a_commit_of_another_engine(stale: int, steps: int) -> None:
    spark: Any = None
    context = EngineContext(spark, MemoryObjectStore())
    taken: list[TimeSlice] = []

    def step(time_slice: TimeSlice) -> StepResult:
        taken.append(time_slice)
        if len(taken) <= stale:
            raise StaleStepError("POLYNYA-LAKE-051", "rewritten", where="a.b")
        return IDLE

    outcome = run_once(context, [Unit("users", "task", step)])

    assert len(taken) == steps
    assert [str(one) for one in outcome.failures.values()] == ["a.b: rewritten"] * (stale > steps)
    # Nobody else owns the table: nothing has to wait until it is quiet.
    assert context.memory.takeover_backoff.is_empty


def test_interrupt_is_not_a_failure_of_the_running_unit() -> None:
    def interrupt(_time_slice: TimeSlice) -> StepResult:
        raise KeyboardInterrupt

    spark: Any = None
    told: list[Event] = []
    context = EngineContext(spark, MemoryObjectStore(), sink=told.append)
    with pytest.raises(KeyboardInterrupt):
        run_until_stopped(context, [Unit("users", "task", interrupt)])
    assert told == []


def test_ctrl_c_ends_a_run_after_the_steps_that_are_under_way() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    steps: list[str] = []

    def step(_time_slice: TimeSlice) -> StepResult:
        steps.append("begun")
        time.sleep(0.2)  # until the main thread waits
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3)
        steps.append("ended")
        return StepResult(more=True)

    spark: Any = None
    try:
        with pytest.raises(KeyboardInterrupt):
            run_until_stopped(
                EngineContext(spark, MemoryObjectStore()), [Unit("users", "task", step)]
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert steps == ["begun", "ended"]


def test_a_dataset_is_copied_while_the_load_of_another_is_under_way(lab: Lab) -> None:
    big = lab.feed("big", task={"name": f"{lab.schema}_big", "batch": {"max_rows": 100}})
    small = lab.feed("small")
    big.land(*(put(number, number) for number in range(200)))
    fresh, waited = threading.Event(), []

    def tell(event: Event) -> None:
        if not isinstance(event, BatchCopied):
            return
        if event.subject == small.view:
            fresh.set()
        elif not waited:
            # The load is in the middle of a step, and stays there until the other dataset has what
            # landed just now.
            small.land(put(1, 1, name="Ann"))
            waited.append(fresh.wait(60))
        else:
            context.stop.set()

    context = lab.context("never")
    context.clock, context.sink = SystemClock(), tell
    work = units(context, [big.task, small.task])
    outcome = run_until_stopped(context, work, poll_seconds=0.05)

    assert not outcome.failures
    assert waited == [True]
    assert small.current("id", "name") == [(1, "Ann")]
    assert len(big.current("id")) == 200
