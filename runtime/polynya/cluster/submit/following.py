"""A job with submitted work: its backlog, the decision about its runs, and the run.

`decide` turns facts into an action with its reason. One submission of a unit is active at a time,
but safety does not depend on that: each commit names the epoch of its owner
(docs/semantics.md section 11).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from polynya.cluster.messages import Inbox, JobObserved, RoundEnded, RunEnded
from polynya.cluster.submit.processes import IDLE_SECONDS, Submission
from polynya.engine.backlog import Backlog
from polynya.engine.commands.unread import UnreadFiles
from polynya.engine.errors import as_polynya
from polynya.model.error_catalogue.cluster import JOB_RUN_FAILED, JOB_RUN_FENCED
from polynya.model.errors import DependencyError, OperationError, PolynyaError
from polynya.observe.cluster import JobRunCancelled, JobRunEnded, JobRunStarted, JobRunTrouble
from polynya.observe.events import Event
from polynya.store.clock import Clock
from polynya.store.jobs import Label, RunSeen, RunState

#: Time between two looks, in seconds, and how many times as long as a look took.
_LOOK_SECONDS: Final = 60.0
_REST_FACTOR: Final = 20.0


class SeenBacklog:
    """Looks now and then, on the thread of the job, and reports to the backlog.

    A backlog that cannot be read stays as it was: missing figures do not end the work.
    """

    def __init__(self, submission: Submission, backlog: Backlog, clock: Clock) -> None:
        self._submission, self._backlog, self._clock = submission, backlog, clock
        self._due = self._asked_due = float("-inf")
        self._known: set[str] = set()

    def look(self, *, active: bool, more: Callable[[], bool]) -> None:
        """Look if it is time.

        `active`: a run is under way, or may be. `more`: whether files landed since the last one
        began, so that there will be another. What such a run left unread brings none.
        """
        now = self._clock.monotonic()
        if self._submission.away and (active or now >= self._asked_due):
            self._backlog.elsewhere(wanted=active or more())
            self._asked_due = now + _LOOK_SECONDS
        if self._submission.unread is not None and now >= self._due:
            self._due = now + _LOOK_SECONDS
            self._look(self._submission.unread, active=active)

    def _look(self, unread: Callable[[], UnreadFiles], *, active: bool) -> None:
        began = self._clock.monotonic()
        try:
            found = unread()
        except Exception:  # noqa: BLE001 - whatever is wrong, the run itself will say
            return
        now = self._clock.monotonic()
        if not active:
            # Between two runs nothing works, so this time does not measure the speed.
            self._backlog.resume(now)
        for subject in self._known - found.keys():
            self._backlog.listed(subject, (), now)
        for subject, parts in found.items():
            self._backlog.listed(subject, parts, now)
        self._known |= found.keys()
        self._due = now + max(_LOOK_SECONDS, _REST_FACTOR * (now - began))

    def ended(self) -> None:
        """A run has ended: what it left is looked at next."""
        if self._submission.away:
            self._backlog.elsewhere(wanted=False)
        self._due = self._asked_due = float("-inf")


class Act(StrEnum):
    """What is done now."""

    FIND = "find"
    """List the runs of the unit: those of others, and one whose submission was not answered."""
    SUBMIT = "submit"
    LOOK = "look"
    CANCEL = "cancel"
    REST = "rest"
    NEXT = "next"
    """The run is done: there will be another one."""
    END = "end"
    FAIL = "fail"
    YIELD = "yield"
    """End, because a newer owner works on the unit."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of the submissions of one unit.

    Attributes:
        label: of the submission that is wanted or made.
        stopping: no run is wanted any more.
        run: the run of that label, None when there is none or it is unknown.
        asked: it was submitted, and the service did not say that it has it.
        found: the unfinished runs of other labels, as they were found last; None: to be looked up.
        due: the pause after the run before is over.
        landed: whether anything landed since then.
        cancel_due: the service was not asked to cancel the run, or a while ago.
    """

    label: Label
    stopping: bool = False
    run: RunSeen | None = None
    asked: bool = False
    found: Sequence[RunSeen] | None = None
    due: bool = True
    landed: bool = True
    cancel_due: bool = True


@dataclass(frozen=True, slots=True)
class RunDecision:
    """What to do, why, and with which run. `epoch` is that of the newer owner of YIELD."""

    act: Act
    reason: str
    run: str = ""
    epoch: int = 0


def decide(facts: RunFacts) -> RunDecision:
    """Decide about the submissions of one unit."""
    if facts.run is not None:
        return _of_run(facts, facts.run)
    if facts.stopping and not facts.asked:
        return RunDecision(Act.END, "nothing is submitted")
    if facts.found is None:
        lost = "the answer to its submission was lost"
        return RunDecision(Act.FIND, lost if facts.asked else "an earlier run may still work")
    if facts.stopping:
        return RunDecision(Act.END, "its submission was not taken")
    return _of_others(facts, facts.found) or _of_next(facts)


def _of_run(facts: RunFacts, run: RunSeen) -> RunDecision:
    if run.state is RunState.ACTIVE:
        if not facts.stopping:
            return RunDecision(Act.LOOK, "it works", run.id)
        if facts.cancel_due:
            return RunDecision(Act.CANCEL, "the job was told to stop", run.id)
        return RunDecision(Act.LOOK, "it was told to end", run.id)
    if facts.stopping:
        return RunDecision(Act.END, "it has ended", run.id)
    if run.state is RunState.SUCCEEDED:
        return RunDecision(Act.NEXT, "it has succeeded", run.id)
    return RunDecision(Act.FAIL, run.why or _DEFAULT_REASONS[run.state], run.id)


_DEFAULT_REASONS: Final = {
    RunState.FAILED: "the service gave no reason",
    RunState.CANCELLED: "it was cancelled",
}


def _of_others(facts: RunFacts, found: Sequence[RunSeen]) -> RunDecision | None:
    """The decision about a run of another owner, None when there is none."""
    label = facts.label
    others = [(one.label.epoch, one.id) for one in found if one.label is not None]
    newest = max(others, default=(0, ""))
    # Without coordination there are no epochs to compare.
    if label.epoch and newest[0] > label.epoch:
        reason = f"run {newest[1]} works on it in epoch {newest[0]}"
        return RunDecision(Act.YIELD, reason, newest[1], newest[0])
    if others:
        return RunDecision(Act.CANCEL, "an earlier owner left it", min(others)[1])
    return None


def _of_next(facts: RunFacts) -> RunDecision:
    if facts.asked:
        return RunDecision(Act.SUBMIT, "its submission was not taken")
    if not facts.due:
        return RunDecision(Act.REST, "the pause between two runs")
    if not facts.landed:
        return RunDecision(Act.REST, "nothing has landed since the last run")
    return RunDecision(Act.SUBMIT, "it is due")


#: Exit code of a process that met a newer owner (docs/reference/cli.md).
_CONFLICT_EXIT_CODE: Final = 5
#: Longest time between two attempts to reach a service, and between two to cancel, in seconds.
_LONGEST_PAUSE_SECONDS: Final = 60.0
_CANCEL_RETRY_SECONDS: Final = 30.0
#: Others wait for the end of a run that is cancelled: looked for at least as often, in seconds.
_STOPPING_LOOK_SECONDS: Final = 2.0
_FINAL_ACTS: Final = frozenset({Act.END, Act.FAIL, Act.YIELD})


class SubmittedRun:
    """One run of a job, as a thread that submits, looks and cancels.

    It ends when it is stopped and its last submission has ended, or when that failed. When the
    service does not answer it tries again for as long as it takes.
    """

    def __init__(
        self, submission: Submission, run: int, inbox: Inbox, clock: Clock, backlog: SeenBacklog
    ) -> None:
        self._submission, self._run, self._inbox, self._clock = submission, run, inbox, clock
        self._backlog = backlog
        self._early, self._stopping = threading.Event(), threading.Event()
        self._ordinal = 0
        self._seen: RunSeen | None = None
        self._asked = False
        self._found: Sequence[RunSeen] | None = None
        self._began_at = self._due_at = float("-inf")
        self._cancelled_at = float("-inf")
        self._landed: str | None = None
        self._failures = 0
        self._trouble = ""

    def start(self) -> None:
        """Begin; returns at once."""
        name = f"submitted {self._submission.job.name}"
        threading.Thread(target=self._follow, name=name, daemon=True).start()

    def stop(self) -> None:
        """Let it cancel what is under way and end; returns at once."""
        self._stopping.set()
        self._early.set()

    def turn(self) -> float | None:
        """Decide and do it; seconds until the next turn, None when the job has ended."""
        decision = decide(self._facts())
        try:
            pause = self._carry_out(decision)
        except PolynyaError as error:
            pause = self._held_up(error)
        else:
            if decision.act in {Act.LOOK, Act.SUBMIT}:
                self._failures, self._trouble = 0, ""
        # What waits is looked at while there is time, and no other node waits for this one.
        if pause and not self._stopping.is_set():
            self._backlog.look(active=self._is_active, more=self._has_landed)
        return pause

    def _has_landed(self) -> bool:
        """Whether anything landed since the last submission; yes while that is unknown."""
        return self._landed is None or self._look_for_files() != self._landed

    @property
    def _is_active(self) -> bool:
        """Whether a run is under way, or may be."""
        return self._asked or (self._seen is not None and self._seen.state is RunState.ACTIVE)

    def _follow(self) -> None:
        try:
            while (pause := self.turn()) is not None:
                self._early.wait(pause)
                self._early.clear()
        except BaseException as failure:  # noqa: BLE001 - the edge of a thread
            self._end(as_polynya(failure))

    def _facts(self) -> RunFacts:
        now, idle = self._clock.monotonic(), self._submission.landed is not None
        due = now >= self._due_at
        wanted = self._seen is None and not self._stopping.is_set()
        landed = True
        if idle and due and wanted and now - self._began_at < IDLE_SECONDS:
            landed = self._look_for_files() != self._landed
        return RunFacts(
            label=self._submission.label(self._ordinal),
            stopping=self._stopping.is_set(),
            run=self._seen,
            asked=self._asked,
            found=self._found,
            due=due,
            landed=landed,
            cancel_due=now - self._cancelled_at >= _CANCEL_RETRY_SECONDS,
        )

    def _look_for_files(self) -> str | None:
        """A digest that stands for the landed files; None when they are unknown."""
        try:
            return self._submission.landed() if self._submission.landed is not None else None
        except (PolynyaError, OSError):
            # The run itself will say what is wrong.
            return None

    def _carry_out(self, decision: RunDecision) -> float | None:
        match decision.act:
            case Act.FIND:
                self._find()
            case Act.SUBMIT:
                self._submit()
            case Act.LOOK:
                return self._look(decision.run)
            case Act.CANCEL:
                self._cancel(decision)
            case Act.NEXT:
                self._next()
            case Act.REST:
                left = self._due_at - self._clock.monotonic()
                return max(left, self._submission.look_seconds)
            case Act.END:
                self._end(None)
            case Act.YIELD:
                self._end(JOB_RUN_FENCED(reason=decision.reason).by(epoch=decision.epoch))
            case Act.FAIL:
                self._end(self._failure(decision))
        return None if decision.act in _FINAL_ACTS else 0.0

    def _find(self) -> None:
        label = self._submission.label(self._ordinal)
        recent = self._submission.runs.recent(label.scope)
        others = [one for one in recent if one.label != label]
        for mine in (one for one in recent if one.label == label):
            self._take(mine.id)
        self._found = [one for one in others if one.state is RunState.ACTIVE]

    def _submit(self) -> None:
        submission = self._submission
        # Before the submission: what lands meanwhile is for the next run.
        self._landed = self._look_for_files()
        self._asked, self._began_at = True, self._clock.monotonic()
        order = submission.order(self._ordinal)
        try:
            run = submission.runs.submit(order)
        except PolynyaError:
            # It may have begun all the same.
            self._found = None
            raise
        self._take(run)

    def _take(self, run: str) -> None:
        """The service has the submission."""
        submission, label = self._submission, self._submission.label(self._ordinal)
        self._seen, self._asked = RunSeen(run, label, RunState.ACTIVE), False
        self._tell(
            JobRunStarted(
                subject=submission.job.name,
                service=submission.service,
                run=run,
                label=str(label),
            )
        )

    def _look(self, run: str) -> float:
        submission, stopping = self._submission, self._stopping.is_set()
        seen = submission.runs.look(run)
        self._seen = RunSeen(
            seen.id, submission.label(self._ordinal), seen.state, seen.why, seen.exit_code
        )
        self._inbox.put(RoundEnded(submission.job, self._run))
        if seen.state is RunState.ACTIVE:
            every = submission.look_seconds
            return min(every, _STOPPING_LOOK_SECONDS) if stopping else every
        self._tell(
            JobRunEnded(
                subject=submission.job.name,
                service=submission.service,
                run=run,
                state=seen.state,
                why=seen.why,
                seconds=round(self._clock.monotonic() - self._began_at, 1),
            )
        )
        return 0.0

    def _cancel(self, decision: RunDecision) -> None:
        submission = self._submission
        submission.runs.cancel(decision.run)
        if self._seen is not None:
            self._cancelled_at = self._clock.monotonic()
        else:
            self._found = [one for one in self._found or () if one.id != decision.run]
        self._tell(
            JobRunCancelled(
                subject=submission.job.name,
                service=submission.service,
                run=decision.run,
                reason=decision.reason,
            )
        )

    def _next(self) -> None:
        self._seen, self._found, self._ordinal = None, None, self._ordinal + 1
        self._backlog.ended()
        self._due_at = self._clock.monotonic() + self._submission.every_seconds

    def _held_up(self, error: PolynyaError) -> float:
        """The service refuses or does not answer: say so once, and try again."""
        self._failures += 1
        if self._trouble != str(error):
            self._trouble = str(error)
            submission = self._submission
            self._tell(
                JobRunTrouble(subject=submission.job.name, service=submission.service, error=error)
            )
        self._inbox.put(RoundEnded(self._submission.job, self._run, f"{error.code}: {error}"))
        pause: float = self._submission.look_seconds * 2.0 ** min(self._failures - 1, 16)
        return min(pause, _LONGEST_PAUSE_SECONDS)

    def _failure(self, decision: RunDecision) -> PolynyaError:
        seen, epoch = self._seen, self._submission.epoch
        if seen is not None and seen.exit_code == _CONFLICT_EXIT_CODE and epoch is not None:
            return JOB_RUN_FENCED(reason=decision.reason).by(epoch=epoch)
        # What a task, or a file, has to be changed for is not tried for ever.
        lasting = seen is not None and seen.exit_code in {1, 2}
        failed = JOB_RUN_FAILED.raising(OperationError if lasting else DependencyError)
        return failed(
            where=self._submission.job.name,
            run=decision.run,
            service=self._submission.service,
            reason=decision.reason,
        )

    def _end(self, error: PolynyaError | None) -> None:
        self._backlog.ended()
        self._inbox.put(RunEnded(self._submission.job, self._run, error))

    def _tell(self, event: Event) -> None:
        self._inbox.put(JobObserved(self._submission.job, event))
