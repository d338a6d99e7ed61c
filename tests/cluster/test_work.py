"""One job among the threads: rounds, failures, the end between two steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

from polynya.cluster.messages import JobObserved, RoundEnded, RunEnded
from polynya.cluster.unit import JobKey
from polynya.cluster.work import JobRun
from polynya.engine.context import EngineContext
from polynya.engine.scheduler import Scheduler, TaskGroup
from polynya.engine.unit import IDLE, StepResult, Unit
from polynya.model.errors import FencedError, OperationError, SuspendedError
from polynya.observe.cluster import UnitFenced
from polynya.observe.events import Event
from polynya.store.clock import SystemClock
from polynya.testing.fakes import MemoryObjectStore

JOB = JobKey("users", "shop.users")


class Inbox(SimpleQueue[Any]):
    """What a job says of its rounds; its events are kept."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def next(self) -> Any:
        while isinstance(message := self.get(timeout=20), JobObserved):
            self.events.append(message.event)
        return message


def unit(work: Callable[[], StepResult | None], name: str = JOB.name) -> Unit:
    """A unit whose steps are calls of `work`; None: nothing is left to do."""
    return Unit(name, JOB.task, lambda _turn: work() or IDLE)


def failing(error: BaseException) -> Callable[[], StepResult | None]:
    def work() -> StepResult | None:
        raise error

    return work


def added(
    *units: Unit, rounds: Scheduler | None = None, epoch: int | None = None
) -> tuple[JobRun, Inbox, Scheduler]:
    inbox = Inbox()
    spark: Any = None
    run = JobRun(JOB, 7, inbox, EngineContext(spark, MemoryObjectStore(), epoch=epoch))
    rounds = rounds or Scheduler(SystemClock(), poll_seconds=0.01)
    run.start(rounds, lambda _: units, [])
    return run, inbox, rounds


def started(*units: Unit, epoch: int | None = None) -> tuple[JobRun, Inbox]:
    run, inbox, rounds = added(*units, epoch=epoch)
    rounds.start()
    return run, inbox


def test_rounds_follow_each_other_until_told_to_stop() -> None:
    run, inbox = started(unit(lambda: None))

    assert [inbox.next() for _ in range(3)] == [RoundEnded(JOB, 7)] * 3
    run.stop()
    while (message := inbox.next()) == RoundEnded(JOB, 7):
        pass
    assert message == RunEnded(JOB, 7)


def test_a_failure_ends_the_run_and_a_suspended_dataset_does_not() -> None:
    held, failure = SuspendedError("POLYNYA-LAKE-017", "decide"), OperationError("X", "broken")
    rounds = [StepResult(refused=held), IDLE, StepResult(failure=failure)]

    _, inbox = started(unit(lambda: rounds.pop(0)))

    said = [inbox.next() for _ in range(3)]
    assert said == [RoundEnded(JOB, 7, "decide"), RoundEnded(JOB, 7), RunEnded(JOB, 7, failure)]


def test_a_newer_owner_of_any_table_ends_a_job_with_a_grant() -> None:
    overtaken = FencedError("POLYNYA-LAKE-002", "node-2 took it", epoch=5, owner="node-2")
    found = unit(failing(overtaken), "shop.taken")

    _, inbox = started(unit(lambda: StepResult(ready_units=(found,))), epoch=4)

    while isinstance(message := inbox.next(), RoundEnded):
        assert message.held is None
    assert message == RunEnded(JOB, 7, overtaken)
    (fenced,) = {event for event in inbox.events if isinstance(event, UnitFenced)}
    assert (fenced.subject, fenced.epoch, fenced.error) == ("shop.taken", 4, overtaken)


def test_without_a_grant_such_a_table_waits_and_the_others_go_on() -> None:
    overtaken = FencedError("POLYNYA-LAKE-002", "a command took it", epoch=5)
    found = unit(failing(overtaken), "shop.taken")

    _, inbox = started(unit(lambda: StepResult(ready_units=(found,))))

    said = [inbox.next() for _ in range(12)]
    assert RoundEnded(JOB, 7, "a command took it") in said
    assert all(isinstance(one, RoundEnded) for one in said)


def test_whatever_a_round_raises_is_the_failure_of_its_job_alone() -> None:
    _, inbox = started(unit(failing(MemoryError("full"))))

    assert inbox.next().error.code == "POLYNYA-BUG-001"


def test_what_fails_before_there_is_a_unit_is_a_failure_of_the_job() -> None:
    inbox = Inbox()
    spark: Any = None
    failure = OperationError("X", "no such folder")

    def none_found(_context: EngineContext) -> list[Unit]:
        raise failure

    JobRun(JOB, 7, inbox, EngineContext(spark, MemoryObjectStore())).start(
        Scheduler(SystemClock()), none_found, []
    )

    assert inbox.next() == RunEnded(JOB, 7, failure)


def test_a_table_that_fails_holds_up_neither_its_job_nor_another_table() -> None:
    broken = unit(failing(OperationError("X", "broken")), "shop.broken")
    good = unit(lambda: None, "shop.good")

    _, inbox = started(unit(lambda: StepResult(ready_units=(broken, good))))

    said = [inbox.next() for _ in range(12)]
    assert RoundEnded(JOB, 7, "broken") in said
    assert all(isinstance(one, RoundEnded) for one in said)


def test_a_job_that_waits_for_its_turn_can_be_stopped() -> None:
    run, inbox, rounds = added(unit(lambda: None))
    run.stop()
    rounds.start()

    assert inbox.next() == RunEnded(JOB, 7)


def test_a_job_that_reads_landed_batches_looks_when_another_job_has_landed_one() -> None:
    """Its own next look would be in an hour."""
    rounds, landing = Scheduler(SystemClock(), poll_seconds=3600), list[TaskGroup]()
    inbox, other = Inbox(), Inbox()
    spark: Any = None
    context = EngineContext(spark, MemoryObjectStore())
    reader, lander = (
        JobRun(JOB, 1, inbox, context),
        JobRun(JobKey("clicks", "clicks"), 2, other, context),
    )
    reader.start(rounds, lambda _: [replace(unit(lambda: None), follows=True)], landing)
    rounds.start()
    assert inbox.next() == RoundEnded(JOB, 1)

    lands = Unit("clicks", "clicks", lambda _: StepResult(landed=True), lands=True)
    lander.start(rounds, lambda _: [lands], landing)

    assert inbox.next() == RoundEnded(JOB, 1)
    lander.stop()
    while not isinstance(other.next(), RunEnded):
        pass
    assert landing == []
