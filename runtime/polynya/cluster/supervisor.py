"""Keeps the jobs of a configuration as it asks for them: carries out what `decide.py` decides.

Lives in one thread; all it learns comes as messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Final

from polynya.cluster.configuration.accept import WantedTask
from polynya.cluster.control.unit_wishes import Asked, Settled
from polynya.cluster.decide import Action, Decision, Rules, decide
from polynya.cluster.jobs import Job
from polynya.cluster.messages import ErrandEnded, Observed, RoundEnded, RunEnded, Workers
from polynya.cluster.sharing.rights import Rights
from polynya.cluster.unit import JobKey
from polynya.observe import node
from polynya.observe.events import Event, EventSink
from polynya.store.clock import Clock


class Supervisor:
    """The jobs of one node.

    `draw` gives numbers in [0, 1) that spread pauses; `tell` gets every decision that is new.
    """

    def __init__(
        self,
        workers: Workers,
        clock: Clock,
        tell: EventSink,
        draw: Callable[[], float],
        rules: Rules | None = None,
    ) -> None:
        self.jobs: dict[JobKey, Job] = {}
        self._workers, self._clock, self._tell, self._draw = workers, clock, tell, draw
        self._rules = rules or Rules()
        self._numbers = count(1)
        self._settled: list[Settled] = []

    @property
    def idle(self) -> bool:
        """Whether no job works."""
        return all(job.running is None for job in self.jobs.values())

    def configure(self, tasks: Mapping[str, WantedTask]) -> None:
        """Want these tasks from now on, by name."""
        wanted = {
            JobKey(name, job): one
            for name, one in tasks.items()
            for job in self._workers.jobs(one.task)
        }
        for key, one in wanted.items():
            job = self.jobs.setdefault(key, Job(key, one.task, one.version))
            job.task, job.wanted = one.task, one.version
        for key, job in self.jobs.items():
            if key not in wanted:
                job.wanted = None

    def take(self, message: Observed | RoundEnded | RunEnded | ErrandEnded) -> None:
        """Take note of what happened; what an earlier run of a job still says changes nothing."""
        job = self.jobs.get(message.job)
        if job is None:
            return
        if isinstance(message, Observed):
            job.observed(message.event, self._clock.now())
        elif message.run == job.number:
            if isinstance(message, RoundEnded):
                job.went_well(message.held)
            elif isinstance(message, ErrandEnded):
                self._settle(job, message)
            else:
                job.ended(message.error, self._clock.monotonic(), self._draw)

    def _settle(self, job: Job, message: ErrandEnded) -> None:
        if (asked := job.settle()) is not None:
            epoch = job.epoch or 0
            self._settled.append(Settled(job.key, asked, message.done, message.text, epoch))

    def settled(self) -> list[Settled]:
        """What was done with units since this was called last, or cannot be."""
        found, self._settled = self._settled, []
        return found

    def ask(self, asked: Mapping[JobKey, Asked]) -> None:
        """Want this done with units before their work goes on, and nothing else."""
        for key, job in self.jobs.items():
            job.ask(asked.get(key))

    def forgive(self, tasks: Collection[str]) -> None:
        """Forget what failed in these tasks: their suspended and waiting jobs start again."""
        for job in self.jobs.values():
            if job.key.task in tasks:
                job.failures = []

    def act(self, *, draining: bool, rights: Rights | None = None, held: str | None = None) -> None:
        """Decide about every job and do it.

        `rights` None: nodes share nothing. `held` is why nothing that is asked of units is begun.
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
            if decision.action is Action.START:
                self._start(job, epoch, job.asked if held is None else None)
            else:
                self._carry_out(job, decision.action)

    def _start(self, job: Job, epoch: int | None, asked: Asked | None) -> None:
        """Let a job work, or first do what is asked of it."""
        number = next(self._numbers)
        job.prepare(self._clock.monotonic())
        run = (
            self._workers.start(job.key, job.task, number, job.backlog, epoch)
            if asked is None
            else self._workers.send(job.key, job.task, number, asked.errand, epoch)
        )
        job.started(run, number, epoch, asked)

    def _carry_out(self, job: Job, action: Action) -> None:
        if action is Action.STOP and job.run is not None:
            job.stopping = True
            job.run.stop()
        elif action is Action.YIELD:
            job.yielded()
        elif action is Action.FORGET:
            del self.jobs[job.key]

    def _tell_news(self, job: Job, decision: Decision, now: float) -> None:
        before, job.decision = job.decision, decision
        waits = decision.action is Action.WAIT and decision.until is None
        if decision == before or waits or decision.action in _NO_NEWS:
            return
        self._tell(_event(job.key, decision, now))


def _event(key: JobKey, decision: Decision, now: float) -> Event:
    if decision.until is not None:
        return node.JobWaits(
            subject=key.name,
            task=key.task,
            reason=decision.reason,
            in_seconds=round(decision.until - now, 1),
        )
    return _DECIDED[decision.action](subject=key.name, task=key.task, reason=decision.reason)


#: A job that another node has is no news: its owner tells of it.
_NO_NEWS: Final = frozenset({Action.KEEP, Action.YIELD})
_DECIDED: Final = {
    Action.START: node.JobStarted,
    Action.STOP: node.JobStopped,
    Action.SUSPEND: node.JobSuspended,
    Action.FORGET: node.JobForgotten,
}
