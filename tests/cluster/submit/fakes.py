"""A job service in memory that loses answers, and what is submitted to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from polynya.cluster.messages import JobObserved, RunEnded
from polynya.cluster.submit.following import SeenBacklog, SubmittedRun
from polynya.cluster.submit.processes import Submission
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import Backlog
from polynya.engine.commands.unread import UnreadFiles
from polynya.model.errors import DependencyError
from polynya.store.clock import SystemClock
from polynya.store.jobs import JobOrder, Label, RunSeen, RunState

JOB = JobKey("users", "shop.users")


class FakeRuns:
    """Runs that end when a test says so. `lose` and `refuse` are for the next submission."""

    def __init__(self) -> None:
        self.runs: dict[str, RunSeen] = {}
        self.orders: list[JobOrder] = []
        self.cancelled: list[str] = []
        self.lose = self.refuse = self.is_down = False

    def submit(self, order: JobOrder) -> str:
        self._answer()
        self.orders.append(order)
        if self.refuse:
            self.refuse = False
            raise _outage()
        run = f"r{len(self.runs) + 1}"
        self.runs[run] = RunSeen(run, order.label, RunState.ACTIVE)
        if self.lose:
            self.lose = False
            raise _outage()
        return run

    def look(self, run: str) -> RunSeen:
        self._answer()
        return self.runs[run]

    def recent(self, scope: str) -> Sequence[RunSeen]:
        self._answer()
        return [one for one in self.runs.values() if one.label and one.label.scope == scope]

    def cancel(self, run: str) -> None:
        self._answer()
        self.cancelled.append(run)

    def ends(self, run: str, state: RunState, why: str = "", exit_code: int | None = None) -> None:
        self.runs[run] = RunSeen(run, self.runs[run].label, state, why, exit_code)

    def left(self, run: str, label: Label) -> None:
        """Somebody else submitted this one."""
        self.runs[run] = RunSeen(run, label, RunState.ACTIVE)

    def _answer(self) -> None:
        if self.is_down:
            raise _outage()


class Time(SystemClock):
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at


class Following:
    """One job whose turns a test takes, and what it says."""

    def __init__(
        self,
        runs: FakeRuns,
        *,
        epoch: int | None = 5,
        owner: str = "n1:1:a",
        landed: Callable[[], str] | None = None,
        unread: Callable[[], UnreadFiles] | None = None,
        away: bool = True,
    ) -> None:
        self.clock, self.inbox, self.backlog = Time(), SimpleQueue[Any](), Backlog()
        self.submission = Submission(
            job=JOB,
            runs=runs,
            service="emr_serverless",
            arguments=("run", "users"),
            warehouse="s3://acme-lake/tables",
            owner=owner,
            epoch=epoch,
            number=1,
            every_seconds=900.0,
            look_seconds=15.0,
            landed=landed,
            unread=unread,
            away=away,
        )
        seen = SeenBacklog(self.submission, self.backlog, self.clock)
        self.run = SubmittedRun(self.submission, 7, self.inbox, self.clock, seen)

    def label(self, *, epoch: int, ordinal: int = 0) -> Label:
        """The label that an owner of an epoch would give to a run of the same unit."""
        scope = self.submission.label(ordinal).scope
        return Label(scope, epoch, f"{epoch:016x}")

    def turns(self, most: int = 10) -> float | None:
        """Take turns until one waits; the seconds that it waits, None when the job has ended."""
        for _ in range(most):
            pause = self.run.turn()
            if pause is None or pause > 0:
                return pause
        raise AssertionError("it never waits")

    def said(self) -> list[str]:
        """Types of the events since the last call."""
        found = []
        while not self.inbox.empty():
            message = self.inbox.get()
            if isinstance(message, JobObserved):
                found.append(message.event.type)
            elif isinstance(message, RunEnded):
                self.error = message.error
                found.append("ended")
        return found


def _outage() -> DependencyError:
    return DependencyError("POLYNYA-AWS-003", "AWS did not answer")
