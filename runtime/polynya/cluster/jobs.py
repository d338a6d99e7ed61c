"""The jobs of an agent: their state, the decision about each, and the supervisor.

A job is the unit of failure: a dataset, or a whole task that discovers its datasets. `decide` is a
pure function from facts to a decision with its reason, and `JobSupervisor` carries out the
decisions for the jobs of the configuration. The supervisor belongs to one thread and learns
everything by messages. All times are monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Final

from polynya.cluster.configuration import WantedTask
from polynya.cluster.control.requests import FinishedRequest, PendingRequest
from polynya.cluster.membership import Right, Rights, Where
from polynya.cluster.messages import (
    JobObserved,
    RoundEnded,
    RunEnded,
    RunHandle,
    UnitCommandEnded,
    Workers,
)
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import Backlog, BacklogSize
from polynya.model.config.task_kinds import Task
from polynya.model.errors import FencedError, PolynyaError, TaskStoppedError
from polynya.observe import cluster
from polynya.observe.capture import CaptureLanded
from polynya.observe.engine import (
    BatchCopied,
    DatasetApplied,
    ExtractApplied,
    ReloadLoaded,
    RowsDerived,
)
from polynya.observe.events import Event, EventSink
from polynya.observe.maintenance import MaintenanceDone, TableHealth
from polynya.observe.mirror import MirrorRefreshed
from polynya.observe.streams import StreamLanded
from polynya.store.clock import Clock


class JobAction(StrEnum):
    """What is done about a job now."""

    START = "start"
    STOP = "stop"
    KEEP = "keep"
    WAIT = "wait"
    SUSPEND = "suspend"
    YIELD = "yield"
    """Leave it to others: this node has no right to it."""
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. `pause` is how long the next one waits at least.

    `passing` is what may go away by itself, such as an outage. `ends_task`: a policy of a dataset
    says that its whole task ends.
    """

    at: float
    pause: float
    reason: str
    passing: bool = False
    ends_task: bool = False


@dataclass(frozen=True, slots=True)
class JobRules:
    """When a job is suspended: `failures` in a row, each within `window` seconds."""

    failures: int = 5
    window: float = 600.0


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is known of one job.

    Attributes:
        wanted: the version that the configuration in force asks for, None when it has no such job.
        running: the version that runs, None when nothing does.
        stopping: the run was told to end between two steps.
        tried: the version that `failures` are of.
        failures: in a row; a round that went well empties them.
        task_ended: why a policy ended the whole task in its wanted version, else None.
        right: whether this node may run it; None where nodes share nothing.
        epoch: under which it runs, or ran last.
        fenced: the epoch of its table that ended its last run, None when none did.
        request: the pending request in words, carried out before its work continues; or None.
        doing: what runs does that, instead of its work.
        held: why no command is executed, None when commands may be.
    """

    wanted: str | None
    running: str | None = None
    stopping: bool = False
    tried: str | None = None
    failures: tuple[Failure, ...] = ()
    task_ended: str | None = None
    right: Right | None = None
    epoch: int | None = None
    fenced: int | None = None
    request: str | None = None
    doing: bool = False
    held: str | None = None


@dataclass(frozen=True, slots=True)
class JobDecision:
    """What to do, why, and for WAIT until when."""

    action: JobAction
    reason: str
    until: float | None = None


#: Pause after the first failure, in seconds; it doubles with each further one.
FIRST_PAUSE_SECONDS: Final = 2.0
#: Longest pause: as long as the one of `polynya run`.
LONGEST_PAUSE_SECONDS: Final = 300.0


def pause_after(failures: int, draw: float) -> float:
    """Seconds until the next attempt after a number of failures in a row.

    `draw` in [0, 1) spreads it over the upper half of the limit ("equal jitter", AWS Architecture
    Blog, Exponential Backoff And Jitter, 2015): never at once, and not all at the same time.
    """
    limit = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 32))
    return limit * (0.5 + draw / 2)


def decide(facts: JobFacts, *, now: float, draining: bool, rules: JobRules) -> JobDecision:
    """Decide about one job."""
    if facts.running is not None:
        return _of_running(facts, draining=draining)
    if facts.wanted is None:
        return JobDecision(JobAction.FORGET, "it is no longer in the configuration")
    if draining:
        return JobDecision(JobAction.WAIT, "the node drains")
    if facts.right is not None and (unable := _without_right(facts, facts.right)) is not None:
        return unable
    if facts.task_ended is not None:
        return JobDecision(JobAction.SUSPEND, facts.task_ended)
    if facts.tried != facts.wanted or not facts.failures:
        begins = facts.request if facts.held is None else None
        return JobDecision(JobAction.START, begins or _why_now(facts))
    return _of_failed(facts.failures, now, rules)


def _without_right(facts: JobFacts, right: Right) -> JobDecision | None:
    """What is done instead of starting a job that this node may not run, None when it may."""
    if right.epoch is None:
        return JobDecision(JobAction.YIELD, right.reason)
    if facts.fenced is not None and right.epoch <= facts.fenced:
        reason = f"its table is in epoch {facts.fenced}; whose it is by now is looked up"
        return JobDecision(JobAction.WAIT, reason)
    return None


def _why_now(facts: JobFacts) -> str:
    if facts.right is None:
        return "new" if facts.tried is None else "its file changed"
    if facts.tried is None:
        return facts.right.reason
    if facts.tried != facts.wanted:
        return "its file changed"
    return f"it continues in epoch {facts.right.epoch}"


def _of_running(facts: JobFacts, *, draining: bool) -> JobDecision:
    if facts.stopping:
        return JobDecision(JobAction.KEEP, "ends after the step that is running")
    if draining:
        return JobDecision(JobAction.STOP, "the node drains")
    if facts.wanted is None:
        return JobDecision(JobAction.STOP, "it is no longer in the configuration")
    if facts.wanted != facts.running:
        return JobDecision(JobAction.STOP, "its file changed")
    if facts.task_ended is not None:
        return JobDecision(JobAction.STOP, facts.task_ended)
    if facts.right is not None and facts.right.epoch is None:
        return JobDecision(JobAction.STOP, facts.right.reason)
    if facts.right is not None and facts.right.epoch != facts.epoch:
        return JobDecision(JobAction.STOP, f"it continues in epoch {facts.right.epoch}")
    return _of_asked(facts) or JobDecision(JobAction.KEEP, "runs")


def _of_asked(facts: JobFacts) -> JobDecision | None:
    """The decision about a running job that follows from its request, None: it continues."""
    if facts.doing:
        withdrawn = JobDecision(JobAction.STOP, "the request was withdrawn")
        return withdrawn if facts.request is None else JobDecision(JobAction.KEEP, facts.request)
    if facts.request is not None and facts.held is None:
        return JobDecision(JobAction.STOP, facts.request)
    return None


def _of_failed(failures: tuple[Failure, ...], now: float, rules: JobRules) -> JobDecision:
    last = failures[-1]
    # Seen from the last failure and not from now: what is suspended stays so as time passes.
    lasting = [
        failure
        for failure in failures
        if not failure.passing and last.at - failure.at <= rules.window
    ]
    if len(lasting) >= rules.failures:
        span = lasting[-1].at - lasting[0].at
        reason = f"failed {len(lasting)} times in {span:.0f} s, last: {lasting[-1].reason}"
        return JobDecision(JobAction.SUSPEND, reason)
    due = last.at + last.pause
    if now >= due:
        return JobDecision(JobAction.START, f"failed {len(failures)} times in a row, tried again")
    return JobDecision(JobAction.WAIT, last.reason, until=due)


#: Events after which data is where it was not before.
_PROGRESS_EVENTS: Final = (
    BatchCopied,
    DatasetApplied,
    ReloadLoaded,
    ExtractApplied,
    StreamLanded,
    CaptureLanded,
    RowsDerived,
    MirrorRefreshed,
)


@dataclass(frozen=True, slots=True)
class JobStep:
    """The last thing that was committed."""

    type: str
    subject: str
    at: datetime


@dataclass(slots=True)
class AgentJob:
    """One job.

    Attributes:
        key: its name.
        task: the task that it belongs to, as wanted.
        wanted, running, tried, failures, epoch, fenced: see `JobFacts`.
        run: what works, None when nothing does; `number` is that of the last one.
        decision: the last one.
        held: what of it waits for a decision of its owner: a suspended dataset.
        backlog: what waits for it, also while it does not work.
        rounds: of the run that works: after each, nothing was left that it could do.
        records, quarantined, failed, fences: totals since the agent started; so is `maintained`, in
            bytes that maintenance wrote, and `busy_seconds`, the time of steps that moved data.
        where: see `Right`; None where nodes share nothing.
        looks: its tables, by name, as they were looked at last.
        step: the last one.
        request: an operator's request, carried out before its work continues.
        doing: the part of that request that runs now instead of its work.
        settled: the request that was settled last; others may still have to learn of it.
    """

    key: JobKey
    task: Task
    wanted: str | None
    running: str | None = None
    stopping: bool = False
    tried: str | None = None
    failures: list[Failure] = field(default_factory=list)
    run: RunHandle | None = None
    number: int = 0
    decision: JobDecision | None = None
    held: str | None = None
    backlog: Backlog = field(default_factory=Backlog)
    rounds: int = 0
    records: int = 0
    quarantined: int = 0
    failed: int = 0
    fences: int = 0
    maintained: int = 0
    busy_seconds: float = 0.0
    where: Where | None = None
    epoch: int | None = None
    fenced: int | None = None
    looks: dict[str, TableHealth] = field(default_factory=dict)
    step: JobStep | None = None
    request: PendingRequest | None = None
    doing: PendingRequest | None = None
    settled: str | None = None

    def facts(
        self, task_ended: str | None, right: Right | None, held: str | None = None
    ) -> JobFacts:
        """The facts for a decision; `held` is why no command is executed."""
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
            request=self.request.text() if self.request is not None else None,
            doing=self.doing is not None,
            held=held,
        )

    @property
    def state(self) -> str:
        """`running`, `stopping`, `waiting`, `suspended`, `stopped` or `elsewhere`."""
        if self.running is not None:
            return "stopping" if self.stopping else "running"
        if self.decision is not None and self.decision.action is JobAction.YIELD:
            return self.where or "waiting"
        suspended = self.decision is not None and self.decision.action is JobAction.SUSPEND
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

    def ask(self, request: PendingRequest | None) -> None:
        """Take a request. It is tried at once, whatever has failed before."""
        if request is not None and request.nonce == self.settled:
            request = None
        before, self.request = self.request, request
        if request is not None and (before is None or before.nonce != request.nonce):
            self.failures = []

    def settle(self) -> PendingRequest | None:
        """What ran instead of its work is done, or cannot be."""
        done, self.request = self.doing, None
        self.settled = done.nonce if done is not None else self.settled
        return done

    def yielded(self) -> None:
        """It is not for this node: what was known of it here is of no use when it comes back."""
        self.failures, self.backlog = [], Backlog()
        self.tried = self.fenced = self.held = None

    def started(
        self, run: RunHandle, number: int, epoch: int | None, doing: PendingRequest | None = None
    ) -> None:
        """It works from now on, or executes a command."""
        self.doing = doing
        self.run, self.number, self.stopping, self.held = run, number, False, None
        self.epoch, self.fenced, self.rounds = epoch, None, 0
        self.running = self.tried = self.wanted

    def went_well(self, held: str | None) -> None:
        """A round did."""
        self.failures, self.held = [], held
        self.rounds += 1

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
        if isinstance(event, _PROGRESS_EVENTS):
            self.step = JobStep(event.type, event.subject, at)
            self.busy_seconds += getattr(event, "seconds", 0.0)
        if isinstance(event, BatchCopied | ReloadLoaded):
            self.records += event.rows_in
            self.quarantined += event.rows_quarantined
        if isinstance(event, StreamLanded):
            self.records += event.records
        if isinstance(event, CaptureLanded):
            self.records += event.events
        if isinstance(event, MaintenanceDone):
            self.maintained += event.written_bytes
        if isinstance(event, TableHealth):
            self.looks[event.subject] = event

    def waiting(self, now: float) -> BacklogSize:
        """What waits for it, as far as it looked; `now` in monotonic seconds.

        The backlog of a suspended job is not work for anybody, but it gets older.
        """
        waiting = self.backlog.size(now)
        suspended = self.state == "suspended"
        return replace(waiting, seconds=0.0, keeps_node=False) if suspended else waiting


class JobSupervisor:
    """The jobs of one node.

    `draw` gives numbers in [0, 1) that spread pauses; `tell` receives every new decision.
    """

    def __init__(
        self,
        workers: Workers,
        clock: Clock,
        tell: EventSink,
        draw: Callable[[], float],
        rules: JobRules | None = None,
    ) -> None:
        self.jobs: dict[JobKey, AgentJob] = {}
        self._workers, self._clock, self._tell, self._draw = workers, clock, tell, draw
        self._rules = rules or JobRules()
        self._numbers = count(1)
        self._settled: list[FinishedRequest] = []

    @property
    def idle(self) -> bool:
        """Whether no job works."""
        return all(job.running is None for job in self.jobs.values())

    def configure(self, tasks: Mapping[str, WantedTask]) -> None:
        """Want these tasks from now on, by name."""
        wanted = {
            JobKey(name, job): wanted_task
            for name, wanted_task in tasks.items()
            for job in self._workers.jobs(wanted_task.task)
        }
        for key, wanted_task in wanted.items():
            job = self.jobs.setdefault(key, AgentJob(key, wanted_task.task, wanted_task.version))
            job.task, job.wanted = wanted_task.task, wanted_task.version
        for key, job in self.jobs.items():
            if key not in wanted:
                job.wanted = None

    def take(self, message: JobObserved | RoundEnded | RunEnded | UnitCommandEnded) -> None:
        """Take note of what happened; what an earlier run of a job still says changes nothing."""
        job = self.jobs.get(message.job)
        if job is None:
            return
        if isinstance(message, JobObserved):
            job.observed(message.event, self._clock.now())
        elif message.run == job.number:
            if isinstance(message, RoundEnded):
                job.went_well(message.held)
            elif isinstance(message, UnitCommandEnded):
                self._settle(job, message)
            else:
                job.ended(message.error, self._clock.monotonic(), self._draw)

    def _settle(self, job: AgentJob, message: UnitCommandEnded) -> None:
        if (request := job.settle()) is not None:
            epoch = job.epoch or 0
            self._settled.append(
                FinishedRequest(job.key, request, message.done, message.text, epoch)
            )

    def settled(self) -> list[FinishedRequest]:
        """What was done with units since this was called last, or cannot be."""
        found, self._settled = self._settled, []
        return found

    def ask(self, request: Mapping[JobKey, PendingRequest]) -> None:
        """Set the commands that are executed before the work of their units continues."""
        for key, job in self.jobs.items():
            job.ask(request.get(key))

    def forgive(self, tasks: Collection[str]) -> None:
        """Forget what failed in these tasks: their suspended and waiting jobs start again."""
        for job in self.jobs.values():
            if job.key.task in tasks:
                job.failures = []

    def act(self, *, draining: bool, rights: Rights | None = None, held: str | None = None) -> None:
        """Decide about every job and do it.

        `rights` None: nodes share nothing. `held` is why no request is executed.
        """
        ended: dict[str, str] = {}
        for job in self.jobs.values():
            if reason := job.ends_task:
                ended[job.key.task] = reason
        now = self._clock.monotonic()
        for key, job in list(self.jobs.items()):
            right = rights.of(key) if rights is not None else None
            facts = job.facts(ended.get(key.task), right, held)
            decision = decide(facts, now=now, draining=draining, rules=self._rules)
            self._tell_news(job, decision, now)
            epoch = right.epoch if right is not None else None
            if decision.action is JobAction.START:
                self._start(job, epoch, job.request if held is None else None)
            else:
                self._carry_out(job, decision.action)

    def _start(self, job: AgentJob, epoch: int | None, request: PendingRequest | None) -> None:
        """Start a job, or first its command."""
        number = next(self._numbers)
        job.prepare(self._clock.monotonic())
        run = (
            self._workers.start(job.key, job.task, number, job.backlog, epoch)
            if request is None
            else self._workers.send(job.key, job.task, number, request.command, epoch)
        )
        job.started(run, number, epoch, request)

    def _carry_out(self, job: AgentJob, action: JobAction) -> None:
        if action is JobAction.STOP and job.run is not None:
            job.stopping = True
            job.run.stop()
        elif action is JobAction.YIELD:
            job.yielded()
        elif action is JobAction.FORGET:
            del self.jobs[job.key]

    def _tell_news(self, job: AgentJob, decision: JobDecision, now: float) -> None:
        before, job.decision = job.decision, decision
        waits = decision.action is JobAction.WAIT and decision.until is None
        if decision == before or waits or decision.action in _UNREPORTED_ACTIONS:
            return
        self._tell(_event(job.key, decision, now))


def _event(key: JobKey, decision: JobDecision, now: float) -> Event:
    if decision.until is not None:
        return cluster.JobWaits(
            subject=key.name,
            task=key.task,
            reason=decision.reason,
            in_seconds=round(decision.until - now, 1),
        )
    return _EVENTS[decision.action](subject=key.name, task=key.task, reason=decision.reason)


#: A job of another node is not reported here: its owner reports it.
_UNREPORTED_ACTIONS: Final = frozenset({JobAction.KEEP, JobAction.YIELD})
_EVENTS: Final = {
    JobAction.START: cluster.JobStarted,
    JobAction.STOP: cluster.JobStopped,
    JobAction.SUSPEND: cluster.JobSuspended,
    JobAction.FORGET: cluster.JobForgotten,
}
