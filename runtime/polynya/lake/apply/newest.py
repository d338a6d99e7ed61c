"""Fold pending events with the newest version of each record that they touch, by one query."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from polynya.lake.apply.collected import Collected, are_few, collected
from polynya.lake.apply.folding import folded
from polynya.lake.apply.run import Folded, Run
from polynya.lake.apply.way import Touched
from polynya.lake.fold import stored
from polynya.lake.fold.truncates import Truncate


class Newest:
    """See the module. The result of up to `few_events` comes here, and is written without Spark.

    It suffices when no event is late. Without history all that is kept of a record counts as its
    newest version.
    """

    def __init__(self, few_events: int) -> None:
        self._few_events = few_events

    def fold(
        self, run: Run, truncates: Sequence[Truncate], now: datetime
    ) -> Folded | Collected | None:
        """See `Way`."""
        if run.shape.links:
            return None
        few = are_few(run, self._few_events)
        touched = Touched.by(run, in_one_task=few)
        found = newest(run, touched.keys, touched.condition)
        result: Folded | Collected
        if few:
            result = collected(run, found, touched.view, truncates, now)
        else:
            frame = run.sql(found).unionByName(touched.events)
            result = folded(run, frame, truncates)
        return result if needs_only_newest(run) or not result.late else None


def newest(run: Run, touched: str, condition: str, *, oldest: bool = False) -> str:
    """Query of newest versions; keys and headers only where a replaced one leaves nothing behind.

    `touched` is a relation of `stored.touched_keys`, whose `__oldest` is selected on request.
    """
    return stored.newest(
        run.shape,
        run.table,
        touched,
        values=run.shape.fills_deletes,
        condition=condition,
        oldest=oldest,
    )


def needs_only_newest(run: Run) -> bool:
    """Whether the newest version of a record is all that is kept of it."""
    return run.shape.fills_deletes and not run.shape.history
