"""The maintenance of one dataset as a unit of its own, which has time.

The unit that copies says when there may be something to do, which costs it nothing. The queue gives
the maintenance a turn when no copy and no apply wants one; it gives the turn back as soon as one
does, or some seconds later when it has given way before. Whatever goes wrong in it stops no data.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from polynya.engine.errors import as_polynya
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.tidying.act import act, chosen, looked, tell_health
from polynya.engine.work.tidying.patience import Patience
from polynya.engine.work.turns.unit import OVER, Ended, Turn, Unit
from polynya.engine.work.upkeep.choose import Verdict
from polynya.lake.maintenance.base import Limits
from polynya.lake.maintenance.look.facts import TableFacts
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.errors import ConflictError, FencedError
from polynya.observe.upkeep import MaintenanceFailed

#: A table that changes is looked at this often, in seconds.
LOOK_SECONDS: Final = 30.0
#: Longest that a run works on one dataset for whose end somebody waits, in seconds.
ONCE_SECONDS: Final = 5.0
#: After a failure nothing is tried for so long at first, in seconds, and for an hour at most.
_FIRST_PAUSE: Final = 60.0
_LONGEST_PAUSE: Final = 3600.0


class MaintenanceBeside:
    """The maintenance of one dataset of a task. Times in monotonic seconds."""

    def __init__(self, dataset: ResolvedDataset) -> None:
        name = f"{dataset.relations.current} (maintenance)"
        self.unit = Unit(name, dataset.task, self._step, has_time=True)
        self._on = dataset.maintenance.enabled
        self._table: WorkingDataset | None = None
        self._seen: int | None = None
        self._not_before = 0.0
        self._again_at: float | None = None
        self._pause = 0.0
        self._patience = Patience()

    def after(self, table: WorkingDataset, ended: Ended) -> Ended:
        """How a turn ends of the unit that copies: with maintenance asked for if there may be any.

        A table that did not change and of which nothing expires meanwhile costs no look.
        """
        if not self._on or ended.more or ended.failure is not None:
            return ended
        if table.context.stop.is_set() or not self._may_have_work(table):
            return ended
        self._table = table
        return ended.finding(self.unit)

    def _may_have_work(self, table: WorkingDataset) -> bool:
        now, snapshot = table.context.clock.monotonic(), table.table.state.snapshot
        if snapshot is None or now < self._not_before or table.reloading is not None:
            return False
        return snapshot != self._seen or (self._again_at is not None and now >= self._again_at)

    def _step(self, turn: Turn) -> Ended:
        """Look, choose, and take one action."""
        table = self._table
        if table is None or table.table.distrusted:
            return OVER
        try:
            taken = self._look(table, turn)
            if taken is None:
                return OVER
            verdict, facts = taken
        except Exception as error:  # noqa: BLE001 - maintenance ends no run
            return self._failed(table, "look", error)
        try:
            return self._act(table, verdict, facts, turn)
        except Exception as error:  # noqa: BLE001 - maintenance ends no run
            ended = self._failed(table, verdict.action, error)
            _read_again(table)
            return ended

    def _look(self, table: WorkingDataset, turn: Turn) -> tuple[Verdict, TableFacts] | None:
        """The action to take now, with the facts that it was chosen by."""
        context = table.context
        now = context.clock.monotonic()
        self._seen, self._not_before = table.table.state.snapshot, now + LOOK_SECONDS
        facts = looked(table)
        budget = table.table.dataset.maintenance.budget
        left = context.upkeep.left(budget, now, cheap_only=turn.at_once)
        if turn.at_once and context.upkeep_seconds is not None:
            rest = context.upkeep_seconds - context.upkeep.seconds
            left = replace(left, cheap_only=False).within(rest)
        choice = chosen(table, facts, left)
        tell_health(table, facts, choice)
        self._again_at = None
        if choice.look_at is not None:
            wait = max(choice.look_at - facts.at, timedelta()).total_seconds()
            self._again_at = now + wait
        return None if choice.taken is None else (choice.taken, facts)

    def _act(self, table: WorkingDataset, verdict: Verdict, facts: TableFacts, turn: Turn) -> Ended:
        context = table.context
        began = context.clock.monotonic()
        budget = table.table.dataset.maintenance.budget
        submitted, longest = context.upkeep_seconds, ONCE_SECONDS
        if submitted is not None:
            longest = submitted - context.upkeep.seconds

        def give_way() -> bool:
            worked = context.clock.monotonic() - began
            late = turn.at_once and worked > longest
            wanted = worked >= self._patience.seconds and turn.is_wanted()
            return late or context.stop.is_set() or wanted

        left = context.upkeep.left(budget, began).written_bytes
        limits = Limits(context.clock.now(), budget_bytes=left, give_way=give_way)
        outcome = act(table, verdict, facts, limits).outcome
        ended = context.clock.monotonic()
        context.upkeep.took(outcome.written_bytes, ended - began, ended)
        self._pause = 0.0
        self._patience.ended(whole=outcome.whole)
        # There may be more to do, and other actions may pay.
        self._not_before = ended if outcome.whole else ended + 1.0
        if not outcome.whole:
            self._seen = None
        # Nobody asks for another turn in a run that ends.
        return Ended(more=True) if turn.at_once and submitted is not None else OVER

    def _failed(self, table: WorkingDataset, action: str, error: Exception) -> Ended:
        """Say so once, and leave the table alone for a while.

        Only a newer owner ends more than this: a job with a grant.
        """
        context, failure = table.context, as_polynya(error)
        now = context.clock.monotonic()
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
        self._not_before = now + self._pause
        self._seen = None
        if isinstance(failure, ConflictError):
            context.truce.lost(failure, now)
        elif context.is_news(f"{table.name} is maintained", str(failure)):
            table.tell(MaintenanceFailed(subject=table.name, action=action, error=failure))
        is_fenced = context.epoch is not None and isinstance(failure, FencedError)
        return replace(OVER, failure=failure) if is_fenced else OVER


def _read_again(table: WorkingDataset) -> None:
    """What is known of a table may no longer be so. An apply that is at work keeps it."""
    try:
        with table.table.changing:
            table.table.reload()
    except Exception:  # noqa: BLE001 - who copies meets the same, and says so
        table.table.distrusted = True
