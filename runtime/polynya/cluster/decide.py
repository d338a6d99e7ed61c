"""What to do about one job: a pure function from facts to a decision with its reason.

A job is what fails for itself: a dataset, or a whole task that finds its datasets. All times are
monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from polynya.cluster.sharing.rights import Right


class Action(StrEnum):
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
class Rules:
    """When a job is suspended: so many failures in a row, no more seconds apart than `window`."""

    failures: int = 5
    window: float = 600.0


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is known of one job.

    Attributes:
        wanted: the version that the configuration in force asks for, None when it has no such job.
        running: the version that runs, None when nothing does.
        stopping: what runs was asked to end between two steps.
        tried: the version that `failures` are of.
        failures: in a row; a round that went well empties them.
        task_ended: why a policy ended the whole task in its wanted version, else None.
        right: whether this node may run it; None where nodes share nothing.
        epoch: under which it runs, or ran last.
        fenced: the epoch of its table that ended its last run, None when none did.
        asked: what is to be done before its work goes on, in words; None when nothing is.
        doing: what runs does that, instead of its work.
        held: why nothing that is asked is begun, None when it may be.
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
    asked: str | None = None
    doing: bool = False
    held: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, why, and for WAIT until when."""

    action: Action
    reason: str
    until: float | None = None


#: Pause after the first failure, in seconds; it doubles with each further one.
FIRST_PAUSE: Final = 2.0
#: Longest pause: as long as the one of `polynya run`.
LONGEST_PAUSE: Final = 300.0


def pause_after(failures: int, draw: float) -> float:
    """Seconds until the next attempt after so many failures in a row.

    `draw` in [0, 1) spreads it over the upper half of the limit ("equal jitter", AWS Architecture
    Blog, Exponential Backoff And Jitter, 2015): never at once, and not all at the same time.
    """
    limit = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 32))
    return limit * (0.5 + draw / 2)


def decide(facts: JobFacts, *, now: float, draining: bool, rules: Rules) -> Decision:
    """Decide about one job."""
    if facts.running is not None:
        return _of_running(facts, draining=draining)
    if facts.wanted is None:
        return Decision(Action.FORGET, "it is no longer in the configuration")
    if draining:
        return Decision(Action.WAIT, "the node drains")
    if facts.right is not None and (unable := _without_right(facts, facts.right)) is not None:
        return unable
    if facts.task_ended is not None:
        return Decision(Action.SUSPEND, facts.task_ended)
    if facts.tried != facts.wanted or not facts.failures:
        begins = facts.asked if facts.held is None else None
        return Decision(Action.START, begins or _why_now(facts))
    return _of_failed(facts.failures, now, rules)


def _without_right(facts: JobFacts, right: Right) -> Decision | None:
    """What is done instead of starting a job that this node may not run, None when it may."""
    if right.epoch is None:
        return Decision(Action.YIELD, right.reason)
    if facts.fenced is not None and right.epoch <= facts.fenced:
        reason = f"its table is in epoch {facts.fenced}; whose it is by now is looked up"
        return Decision(Action.WAIT, reason)
    return None


def _why_now(facts: JobFacts) -> str:
    if facts.right is None:
        return "new" if facts.tried is None else "its file changed"
    if facts.tried is None:
        return facts.right.reason
    if facts.tried != facts.wanted:
        return "its file changed"
    return f"it goes on in epoch {facts.right.epoch}"


def _of_running(facts: JobFacts, *, draining: bool) -> Decision:
    if facts.stopping:
        return Decision(Action.KEEP, "ends after the step that is running")
    if draining:
        return Decision(Action.STOP, "the node drains")
    if facts.wanted is None:
        return Decision(Action.STOP, "it is no longer in the configuration")
    if facts.wanted != facts.running:
        return Decision(Action.STOP, "its file changed")
    if facts.task_ended is not None:
        return Decision(Action.STOP, facts.task_ended)
    if facts.right is not None and facts.right.epoch is None:
        return Decision(Action.STOP, facts.right.reason)
    if facts.right is not None and facts.right.epoch != facts.epoch:
        return Decision(Action.STOP, f"it goes on in epoch {facts.right.epoch}")
    return _of_asked(facts) or Decision(Action.KEEP, "runs")


def _of_asked(facts: JobFacts) -> Decision | None:
    """What becomes of a job that runs because of what is asked of it, None: it runs on."""
    if facts.doing:
        withdrawn = Decision(Action.STOP, "what was asked was withdrawn")
        return withdrawn if facts.asked is None else Decision(Action.KEEP, facts.asked)
    if facts.asked is not None and facts.held is None:
        return Decision(Action.STOP, facts.asked)
    return None


def _of_failed(failures: tuple[Failure, ...], now: float, rules: Rules) -> Decision:
    last = failures[-1]
    # Seen from the last failure and not from now: what is suspended stays so as time passes.
    lasting = [one for one in failures if not one.passing and last.at - one.at <= rules.window]
    if len(lasting) >= rules.failures:
        span = lasting[-1].at - lasting[0].at
        reason = f"failed {len(lasting)} times in {span:.0f} s, last: {lasting[-1].reason}"
        return Decision(Action.SUSPEND, reason)
    due = last.at + last.pause
    if now >= due:
        return Decision(Action.START, f"failed {len(failures)} times in a row, tried again")
    return Decision(Action.WAIT, last.reason, until=due)
