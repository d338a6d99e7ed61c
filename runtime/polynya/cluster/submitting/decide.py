"""What to do about the work of one unit that is submitted: facts become a decision with its reason.

One submission of a unit is under way at a time. What makes that safe is not this: each commit
names the epoch of its owner (docs/semantics.md section 11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from polynya.store.job_runs import Label, RunSeen, RunState


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
class Facts:
    """What is known of the submissions of one unit.

    Attributes:
        label: of the submission that is wanted or made.
        stopping: no run is wanted any more.
        run: the run of that label, None when there is none or nobody knows.
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
class Decision:
    """What to do, why, and with which run. `epoch` is that of the newer owner of YIELD."""

    act: Act
    reason: str
    run: str = ""
    epoch: int = 0


def decide(facts: Facts) -> Decision:
    """Decide about the submissions of one unit."""
    if facts.run is not None:
        return _of_run(facts, facts.run)
    if facts.stopping and not facts.asked:
        return Decision(Act.END, "nothing is submitted")
    if facts.found is None:
        lost = "the answer to its submission was lost"
        return Decision(Act.FIND, lost if facts.asked else "an earlier run may still work")
    if facts.stopping:
        return Decision(Act.END, "its submission was not taken")
    return _of_others(facts, facts.found) or _of_next(facts)


def _of_run(facts: Facts, run: RunSeen) -> Decision:
    if run.state is RunState.ACTIVE:
        if not facts.stopping:
            return Decision(Act.LOOK, "it works", run.id)
        if facts.cancel_due:
            return Decision(Act.CANCEL, "the job is told to stop", run.id)
        return Decision(Act.LOOK, "it was told to end", run.id)
    if facts.stopping:
        return Decision(Act.END, "it has ended", run.id)
    if run.state is RunState.SUCCEEDED:
        return Decision(Act.NEXT, "it has succeeded", run.id)
    return Decision(Act.FAIL, run.why or _NO_REASON[run.state], run.id)


_NO_REASON: Final = {
    RunState.FAILED: "the service gave no reason",
    RunState.CANCELLED: "somebody cancelled it",
}


def _of_others(facts: Facts, found: Sequence[RunSeen]) -> Decision | None:
    """About a run that somebody else left or has, None when there is none."""
    label = facts.label
    others = [(one.label.epoch, one.id) for one in found if one.label is not None]
    newest = max(others, default=(0, ""))
    # Who shares nothing has no epochs to compare.
    if label.epoch and newest[0] > label.epoch:
        reason = f"run {newest[1]} works on it in epoch {newest[0]}"
        return Decision(Act.YIELD, reason, newest[1], newest[0])
    if others:
        return Decision(Act.CANCEL, "an earlier owner left it", min(others)[1])
    return None


def _of_next(facts: Facts) -> Decision:
    if facts.asked:
        return Decision(Act.SUBMIT, "its submission was not taken")
    if not facts.due:
        return Decision(Act.REST, "the pause between two runs")
    if not facts.landed:
        return Decision(Act.REST, "nothing has landed since the last run")
    return Decision(Act.SUBMIT, "it is due")
