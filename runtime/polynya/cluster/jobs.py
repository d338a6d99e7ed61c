"""What an agent knows of one job, and how that changes by what happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from polynya.cluster.control.unit_wishes import Asked
from polynya.cluster.decide import Action, Decision, Failure, JobFacts, pause_after
from polynya.cluster.messages import Run
from polynya.cluster.sharing.rights import Right, Where
from polynya.cluster.unit import JobKey
from polynya.engine.work.backlog import Backlog, Waiting
from polynya.model.errors import FencedError, PolynyaError, TaskStoppedError
from polynya.model.reading.kinds import Task
from polynya.observe.capture import CaptureLanded
from polynya.observe.data import BatchCopied, DatasetApplied, ExtractApplied, ReloadLoaded
from polynya.observe.events import Event
from polynya.observe.streams import StreamLanded
from polynya.observe.upkeep import MaintenanceDone, TableHealth

#: Events after which data is where it was not before.
_MOVED: Final = (
    BatchCopied,
    DatasetApplied,
    ReloadLoaded,
    ExtractApplied,
    StreamLanded,
    CaptureLanded,
)


@dataclass(frozen=True, slots=True)
class Step:
    """The last thing that was committed."""

    type: str
    subject: str
    at: datetime


@dataclass(slots=True)
class Job:
    """One job.

    Attributes:
        key: its name.
        task: the task that it belongs to, as wanted.
        wanted, running, tried, failures, epoch, fenced: see `JobFacts`.
        run: what works, None when nothing does; `number` is that of the last one.
        decision: the last one.
        held: what of it waits for a decision of its owner: a suspended dataset.
        backlog: what waits for it, also while it does not work.
        records, failed, fences: totals since the agent started; so is `maintained`, in bytes that
            maintenance wrote, and `busy_seconds`, the time of steps that moved data.
        where: see `Right`; None where nodes share nothing.
        looks: its tables, by name, as they were looked at last.
        step: the last one.
        asked: what a person wants done before its work goes on.
        doing: what of that runs now, instead of its work.
        settled: the wish that was settled last, of which others may still have to hear.
    """

    key: JobKey
    task: Task
    wanted: str | None
    running: str | None = None
    stopping: bool = False
    tried: str | None = None
    failures: list[Failure] = field(default_factory=list)
    run: Run | None = None
    number: int = 0
    decision: Decision | None = None
    held: str | None = None
    backlog: Backlog = field(default_factory=Backlog)
    records: int = 0
    failed: int = 0
    fences: int = 0
    maintained: int = 0
    busy_seconds: float = 0.0
    where: Where | None = None
    epoch: int | None = None
    fenced: int | None = None
    looks: dict[str, TableHealth] = field(default_factory=dict)
    step: Step | None = None
    asked: Asked | None = None
    doing: Asked | None = None
    settled: str | None = None

    def facts(
        self, task_ended: str | None, right: Right | None, held: str | None = None
    ) -> JobFacts:
        """What decisions are made of; `held` is why nothing that is asked is begun."""
        self.where = right.where if right is not None else None
        return JobFacts(
            wanted=self.wanted,
            running=self.running,
            stopping=self.stopping,
            tried=self.tried,
            failures=tuple(self.failures),
            task_ended=task_ended,
            right=right,
            epoch=self.epoch,
            fenced=self.fenced,
            asked=self.asked.text() if self.asked is not None else None,
            doing=self.doing is not None,
            held=held,
        )

    @property
    def state(self) -> str:
        """`running`, `stopping`, `waiting`, `suspended`, `stopped` or `elsewhere`."""
        if self.running is not None:
            return "stopping" if self.stopping else "running"
        if self.decision is not None and self.decision.action is Action.YIELD:
            return self.where or "waiting"
        suspended = self.decision is not None and self.decision.action is Action.SUSPEND
        return "suspended" if suspended else "waiting"

    @property
    def reason(self) -> str:
        """Why it is in that state."""
        return self.held or (self.decision.reason if self.decision is not None else "new")

    @property
    def ends_task(self) -> str | None:
        """Why a policy ended the whole task in the wanted version, None when none did."""
        if self.failures and self.tried == self.wanted and self.failures[-1].ends_task:
            return f"a policy ended the task: {self.failures[-1].reason}"
        return None

    def prepare(self, now: float) -> None:
        """It is going to work in its wanted version; `now` in monotonic seconds."""
        if self.tried != self.wanted:
            self.failures, self.backlog = [], Backlog()
        self.backlog.resume(now)

    def ask(self, asked: Asked | None) -> None:
        """This is wanted now; whoever asks wants it tried, whatever has failed before."""
        if asked is not None and asked.wish == self.settled:
            asked = None
        before, self.asked = self.asked, asked
        if asked is not None and (before is None or before.wish != asked.wish):
            self.failures = []

    def settle(self) -> Asked | None:
        """What ran instead of its work is done, or cannot be."""
        done, self.asked = self.doing, None
        self.settled = done.wish if done is not None else self.settled
        return done

    def yielded(self) -> None:
        """It is not for this node: what was known of it here is of no use when it comes back."""
        self.failures, self.backlog = [], Backlog()
        self.tried = self.fenced = self.held = None

    def started(self, run: Run, number: int, epoch: int | None, doing: Asked | None = None) -> None:
        """It works from now on, or does what is asked of it."""
        self.doing = doing
        self.run, self.number, self.stopping, self.held = run, number, False, None
        self.epoch, self.fenced = epoch, None
        self.running = self.tried = self.wanted

    def went_well(self, held: str | None) -> None:
        """A round did."""
        self.failures, self.held = [], held

    def ended(self, error: PolynyaError | None, now: float, draw: Callable[[], float]) -> None:
        """It no longer works; `now` in monotonic seconds, `draw` in [0, 1) spreads the pause."""
        self.run = self.running = self.doing = None
        self.stopping = False
        if error is None:
            return
        if isinstance(error, FencedError) and self.epoch is not None:
            # No failure of the job: whose it is has to be looked up.
            self.fenced = max(error.epoch, self.epoch)
            self.fences += 1
            return
        self.failed += 1
        self.failures.append(
            Failure(
                at=now,
                pause=pause_after(len(self.failures) + 1, draw()),
                reason=f"{error.code}: {error}",
                passing=error.retryable,
                ends_task=isinstance(error, TaskStoppedError),
            )
        )

    def observed(self, event: Event, at: datetime) -> None:
        """Something happened in it."""
        if isinstance(event, _MOVED):
            self.step = Step(event.type, event.subject, at)
            self.busy_seconds += getattr(event, "seconds", 0.0)
        if isinstance(event, BatchCopied | ReloadLoaded):
            self.records += event.rows_in
        if isinstance(event, StreamLanded):
            self.records += event.records
        if isinstance(event, CaptureLanded):
            self.records += event.events
        if isinstance(event, MaintenanceDone):
            self.maintained += event.written_bytes
        if isinstance(event, TableHealth):
            self.looks[event.subject] = event

    def waiting(self, now: float) -> Waiting:
        """What waits for it, as far as it looked; `now` in monotonic seconds.

        What waits for a suspended job is no work for anybody, but it gets older.
        """
        waiting = self.backlog.waiting(now)
        suspended = self.state == "suspended"
        return replace(waiting, seconds=0.0, keeps_node=False) if suspended else waiting
