"""One job on its thread: rounds, failures, the end between two rounds."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

from polynya.cluster.messages import JobKey, RoundEnded, RunEnded
from polynya.cluster.work import JobThread, Round
from polynya.model.errors import OperationError, SuspendedError

JOB = JobKey("users", "shop.users")


def started(work: Round, turns: threading.Semaphore | None = None) -> tuple[JobThread, Any]:
    inbox: SimpleQueue[Any] = SimpleQueue()
    thread = JobThread(JOB, 7, inbox, turns or threading.Semaphore(1))
    thread.start(work, poll_seconds=0.01)
    return thread, inbox


def test_rounds_follow_each_other_until_told_to_stop() -> None:
    thread, inbox = started(lambda: None)

    assert [inbox.get(timeout=20) for _ in range(3)] == [RoundEnded(JOB, 7)] * 3
    thread.stop()
    while (message := inbox.get(timeout=20)) == RoundEnded(JOB, 7):
        pass
    assert message == RunEnded(JOB, 7)


def test_a_failure_ends_the_run_and_a_suspended_dataset_does_not() -> None:
    held, failure = SuspendedError("POLYNYA-LAKE-017", "decide"), OperationError("X", "broken")
    rounds = iter([held, None, failure])

    _, inbox = started(lambda: next(rounds))

    said = [inbox.get(timeout=20) for _ in range(3)]
    assert said == [RoundEnded(JOB, 7, "decide"), RoundEnded(JOB, 7), RunEnded(JOB, 7, failure)]


def test_whatever_a_round_raises_is_the_failure_of_its_job_alone() -> None:
    def work() -> None:
        raise MemoryError("full")

    _, inbox = started(work)

    assert inbox.get(timeout=20).error.code == "POLYNYA-BUG-001"


def test_a_job_that_waits_for_its_turn_can_be_stopped() -> None:
    thread, inbox = started(lambda: None, threading.Semaphore(0))
    thread.stop()

    assert inbox.get(timeout=20) == RunEnded(JOB, 7)
