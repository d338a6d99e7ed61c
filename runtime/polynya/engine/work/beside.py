"""The applies of one dataset as a unit of their own, so that it is copied while it is applied.

The unit that copies asks for an apply; the queue then gives that a turn like any other. Both hold
the same open table: what they commit stands in two states, so that neither undoes the other
(docs/adr/0007-one-commit-per-step.md).
"""

from __future__ import annotations

from collections.abc import Callable

from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.pending import apply_decision, why_copies_wait
from polynya.engine.work.turns.unit import LOOK_SOON, OVER, TOO_LONG, Ended, Turn, Unit
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask


class AppliesBeside:
    """The applies of one dataset of a task."""

    def __init__(self, task: StorageTask, dataset: ResolvedDataset) -> None:
        self.unit = Unit(f"{dataset.relations.current} (apply)", task.name, self._step)
        self._policy = task.apply
        self._table: WorkingDataset | None = None

    def copied(self, table: WorkingDataset, turn: Turn, copy_next: Callable[[], Ended]) -> Ended:
        """Copy what is next, or wait where an apply cannot follow.

        The apply that copies wait for is asked for by `bring_up`. A run that ends when all is done
        applies here, and goes on.
        """
        if why_copies_wait(table.context, table.table, self._policy) is not None:
            if not turn.at_once:
                return LOOK_SOON
            if table.apply_if_worth_it(self._policy, turn) is TOO_LONG:
                return TOO_LONG
        return table.copied(copy_next)

    def bring_up(self, table: WorkingDataset, turn: Turn, ended: Ended) -> Ended:
        """How a turn ends that copied all there was: with an apply that is worth it asked for.

        A run that ends when all is done applies in the same turn: nothing else is to be copied.
        """
        if turn.at_once:
            return table.apply_after(ended, self._policy, turn)
        if ended.more or table.context.stop.is_set() or table.table.is_applied:
            return ended
        if not apply_decision(table.context, table.table, self._policy).apply:
            return ended
        self._table = table
        return ended.finding(self.unit)

    def _step(self, turn: Turn) -> Ended:
        table = self._table
        if table is None or table.table.distrusted:
            return OVER
        try:
            applied = table.apply_if_worth_it(self._policy, turn)
        except BaseException:
            table.table.distrusted = True
            raise
        return applied if applied.more else OVER
