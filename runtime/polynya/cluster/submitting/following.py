"""One job whose work is submitted: carries out what `decide.py` decides until it has ended."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from polynya.cluster.messages import Inbox, Observed, RoundEnded, RunEnded
from polynya.cluster.submitting.backlog import SeenBacklog
from polynya.cluster.submitting.decide import Act, Decision, Facts, decide
from polynya.cluster.submitting.submission import IDLE_SECONDS, Submission
from polynya.engine.errors import as_polynya
from polynya.model.errors import DependencyError, FencedError, OperationError, PolynyaError
from polynya.observe.events import Event
from polynya.observe.submitted import JobRunCancelled, JobRunEnded, JobRunStarted, JobRunTrouble
from polynya.store.clock import Clock
from polynya.store.job_runs import RunSeen, RunState

#: Exit code of a process that met a newer owner (docs/reference/cli.md).
_CONFLICT: Final = 5
#: Longest time between two attempts to reach a service, and between two to cancel, in seconds.
_LONGEST_PAUSE: Final = 60.0
_CANCEL_AGAIN: Final = 30.0
#: Others wait for the end of a run that is cancelled: looked for at least as often, in seconds.
_STOPPING_LOOK: Final = 2.0
_LAST: Final = frozenset({Act.END, Act.FAIL, Act.YIELD})


class SubmittedRun:
    """One run of a job, as a thread that submits, looks and cancels.

    It ends when it is told to and its last submission has ended, or when that failed. When the
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
        """Whether anything landed since the last submission; yes while that cannot be told."""
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

    def _facts(self) -> Facts:
        now, idle = self._clock.monotonic(), self._submission.landed is not None
        due = now >= self._due_at
        wanted = self._seen is None and not self._stopping.is_set()
        landed = True
        if idle and due and wanted and now - self._began_at < IDLE_SECONDS:
            landed = self._look_for_files() != self._landed
        return Facts(
            label=self._submission.label(self._ordinal),
            stopping=self._stopping.is_set(),
            run=self._seen,
            asked=self._asked,
            found=self._found,
            due=due,
            landed=landed,
            cancel_due=now - self._cancelled_at >= _CANCEL_AGAIN,
        )

    def _look_for_files(self) -> str | None:
        """What stands for the files that landed; None when that cannot be told."""
        try:
            return self._submission.landed() if self._submission.landed is not None else None
        except (PolynyaError, OSError):
            # The run itself will say what is wrong.
            return None

    def _carry_out(self, decision: Decision) -> float | None:
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
                self._end(_fenced(decision.epoch, decision.reason))
            case Act.FAIL:
                self._end(self._failure(decision))
        return None if decision.act in _LAST else 0.0

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
            return min(every, _STOPPING_LOOK) if stopping else every
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

    def _cancel(self, decision: Decision) -> None:
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
        return min(pause, _LONGEST_PAUSE)

    def _failure(self, decision: Decision) -> PolynyaError:
        seen, epoch = self._seen, self._submission.epoch
        if seen is not None and seen.exit_code == _CONFLICT and epoch is not None:
            return _fenced(epoch, decision.reason)
        # What a task, or a file, has to be changed for is not tried for ever.
        lasting = seen is not None and seen.exit_code in {1, 2}
        return (OperationError if lasting else DependencyError)(
            "POLYNYA-AGT-071",
            f"run {decision.run} of {self._submission.service} failed: {decision.reason}",
            where=self._submission.job.name,
            state="as after the last completed commit; every commit is atomic",
            fix="its log says more; the agent submits it again",
        )

    def _end(self, error: PolynyaError | None) -> None:
        self._backlog.ended()
        self._inbox.put(RunEnded(self._submission.job, self._run, error))

    def _tell(self, event: Event) -> None:
        self._inbox.put(Observed(self._submission.job, event))


def _fenced(epoch: int, reason: str) -> FencedError:
    return FencedError(
        "POLYNYA-AGT-072",
        f"another owner has the unit: {reason}",
        epoch=epoch,
        owner="",
        state="nothing of this step was written; the other owner goes on",
        fix="nothing: the agent looks up who has this work",
    )
