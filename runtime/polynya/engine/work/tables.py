"""The tables that one unit of work holds open, with its ledger.

As long as nobody takes a table over, nobody else changes it: each is opened once. After a failure
nothing is believed of them any more, and all are opened again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.ledger import ledger_dataset
from polynya.engine.work.turns.threads import in_threads
from polynya.formats.batch import DatasetBatch
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask

#: Does the work of one source table, or refuses to, or notes that it cannot be done.
Attempt: TypeAlias = Callable[[str, Callable[[], None]], object]


def _without_more_ado(_source: str, work: Callable[[], None]) -> None:
    work()


class OpenTables:
    """The open tables of a native dataset, or of a task that finds its datasets in the data."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._open: dict[str, WorkingDataset] = {}
        self._doubted: frozenset[str] = frozenset()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """One round of work. A failure makes it the last one with these tables.

        A suspended dataset is looked at again at the beginning of a round, since somebody may have
        resumed it, and one whose apply failed.
        """
        try:
            for name, one in self._open.items():
                if name in self._doubted and one.table.is_applied:
                    # To open it again would take it from the apply that is at work.
                    with one.table.changing:
                        one.table.reload()
                elif name in self._doubted or _is_looked_at_again(one):
                    self._open[name] = self._opened(one.table.dataset)
            self._doubted = frozenset()
            yield
        except BaseException:
            self._open = {name: one for name, one in self._open.items() if one.table.is_applied}
            self._doubted = frozenset(self._open)
            raise

    def of(self, dataset: ResolvedDataset) -> WorkingDataset:
        """The table of a dataset.

        Raises ConflictError while another process that took the table over goes on with it.
        """
        name = dataset.relations.internal
        if name not in self._open:
            self._open[name] = self._opened(dataset)
        return self._open[name]

    @property
    def ledger(self) -> WorkingDataset:
        """The position of the whole task."""
        return self.of(ledger_dataset(self._task))

    @property
    def by_source(self) -> dict[str, WorkingDataset]:
        """The open tables of datasets, by source table."""
        found = ((one.table.dataset.landing.source, one) for one in self._open.values())
        return {source: one for source, one in found if source is not None}

    def meet(
        self,
        routes: Mapping[str, ResolvedDataset],
        suspended: Collection[str] = (),
        attempt: Attempt = _without_more_ado,
    ) -> list[WorkingDataset]:
        """Open the tables of source tables that are new, and return them.

        `suspended` are those that wait for a decision from their first moment on. `attempt` opens
        one, unless it may not or cannot be opened.
        """

        def opened(source: str) -> None:
            attempt(source, lambda: self._met(routes[source], suspends=source in suspended))

        new = sorted(set(routes) - set(self.by_source))
        in_threads(opened, new)
        found = self.by_source
        return [found[source] for source in new if source in found]

    def _met(self, dataset: ResolvedDataset, *, suspends: bool) -> None:
        one = self.of(dataset)
        source = one.table.dataset.landing.source
        if suspends and source is not None:
            one.suspend_new(source)

    def drop(self, source: str) -> None:
        """Believe nothing of one table any more: it is opened again when it is met again."""
        self._open = {
            name: one
            for name, one in self._open.items()
            if one.table.dataset.landing.source != source
        }

    def remember(
        self,
        sources: Iterable[str],
        unrouted: DatasetBatch,
        live_files: Iterable[str],
        refused: Iterable[str] | None = None,
    ) -> None:
        """Commit to the ledger which tables there are, and what was read that belongs to none.

        `refused` are the tables without which the files were read; None: those of before.
        """
        table = self.ledger.table
        before = table.state.copy
        after = before.with_members({*before.membership.members, *sources}, refused)
        if after.membership == before.membership and not unrouted.files:
            return
        table.state = replace(table.state, copy=after)
        self.ledger.copy(unrouted, live_files=live_files)

    def _opened(self, dataset: ResolvedDataset) -> WorkingDataset:
        """Open a table, with the views that it should have.

        The process before may have been killed between a commit and its views. If it was killed
        between a change of columns and the commit of the state, the next batch makes both.
        """
        one = WorkingDataset.open(self._context, dataset)
        if self._context.epoch is None:
            # With a grant a table is this owner's, or opening it has just failed.
            self._context.truce.wait_for_quiet(one.table, self._context.clock.monotonic())
        shape = one.table.shape()
        if shape.data and set(shape.data) <= one.table.table.column_names():
            one.publish(shape)
        return one


def _is_looked_at_again(one: WorkingDataset) -> bool:
    return one.table.distrusted or (one.is_suspended and not one.table.is_applied)
