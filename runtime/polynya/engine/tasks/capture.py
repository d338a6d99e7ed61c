"""A storage task over Debezium files: datasets are discovered, one file feeds many of them.

A file is read once for all datasets. Each dataset's commit holds its own position in the file; the
ledger is committed last. After a crash in between the file is read again, and each dataset skips
what it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from polynya.engine.tasks.members import as_it_is, policy_of_new, scope_of
from polynya.engine.tasks.native import landed_files
from polynya.engine.work.context import EngineContext
from polynya.engine.work.evolution import suspend_new
from polynya.engine.work.ledger import ledger_dataset
from polynya.engine.work.steps import (
    bring_up,
    copy_step,
    looked_at_again,
    opened,
    progress_of,
    tell_found,
)
from polynya.engine.work.threads import in_threads
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart, FileProgress
from polynya.formats.debezium.reader import DebeziumBatch, read_debezium
from polynya.formats.files.discovery import Discovery, discover
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import datasets_of_sources
from polynya.model.config.task import StorageTask
from polynya.model.errors import ConfigErrors, SuspendedError


class DebeziumTask:
    """Brings all datasets of one task up to date with its landed files."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._limits = BatchLimits(task.batch.max_rows, task.batch.max_bytes)
        self._targets: dict[str, DatasetTable] = {}
        self._ledger: DatasetTable | None = None
        self._without: frozenset[str] = frozenset()

    def run(self) -> None:
        """Copy all that has landed and apply what is worth it."""
        try:
            self._run()
        except SuspendedError:
            raise
        except BaseException:
            # What this owner believes of the tables may be wrong now.
            self._ledger, self._targets = None, {}
            raise

    def _run(self) -> None:
        ledger = self._open()
        waiting = list(self._targets)
        while waiting:
            source = waiting.pop(0)
            target = looked_at_again(self._context, self._targets[source])
            self._targets[source] = target
            if target.state.copy.behind and target.state.copy.suspended is None:
                waiting += self._catch_up(ledger, source, target)
        while not self._context.stop.is_set():
            found = self._unread(progress_of(ledger))
            tell_found(self._context, ledger, found)
            if not found.files:
                break
            self._copy(ledger, found.files)
        self._settle(ledger)
        in_threads(
            lambda target: bring_up(self._context, target, self._task.apply, _nothing),
            self._targets.values(),
        )

    def _settle(self, ledger: DatasetTable) -> None:
        """Remember that the tables of the first run are known; there may be many batches of it."""
        state = ledger.state.copy
        if state.members and not state.settled and not self._context.stop.is_set():
            ledger.take_over()
            ledger.commit_copy_state(replace(state, settled=True), "settled")

    def _unread(self, done: Mapping[str, FileProgress]) -> Discovery:
        return discover(self._context.landing, self._task.landing.path, "**/*", done)

    def _copy(self, ledger: DatasetTable, parts: Sequence[FilePart]) -> None:
        batch = self._read(parts)
        state = ledger.state.copy
        known = {*state.members, *self._targets} if state.settled else ()
        new = policy_of_new(self._task, known, batch.datasets)
        if new.ignored:
            self._without |= new.ignored
            batch = self._read(parts)
        routes, errors = datasets_of_sources(self._task, [*self._targets, *batch.datasets])
        if self._meet(routes, new.suspended):
            # A table that this task had already fed before a crash: skip what it has.
            batch = self._read(parts)
        live = landed_files(self._context, self._task.landing.path)
        good = [
            (source, part)
            for source, part in batch.datasets.items()
            if source in routes and not self._targets[source].state.copy.behind
        ]
        in_threads(lambda item: self._copy_part(*item, live), good)
        if errors:
            # The files are not marked as done, so that nothing of the refused tables is lost.
            raise ConfigErrors(errors)
        self._commit(ledger, batch.unrouted, live)

    def _copy_part(self, source: str, part: DatasetBatch, live: set[str]) -> None:
        """Copy the events of one table. If that suspends it the files are read on without it."""
        with suppress(SuspendedError):
            copy_step(self._context, self._targets[source], part, live)

    def _catch_up(self, ledger: DatasetTable, source: str, target: DatasetTable) -> list[str]:
        """Copy what was read on without a table while it was suspended.

        Returns tables that parted from it, which have to catch up too.
        """
        parted: list[str] = []
        while not self._context.stop.is_set():
            found = self._unread(progress_of(target))
            if not found.files:
                target.take_over()
                target.commit_copy_state(replace(target.state.copy, behind=False), "caught-up")
                break
            batch = self._read(found.files, only=source)
            live = landed_files(self._context, self._task.landing.path)
            parted += self._part(ledger, batch.left)
            try:
                copy_step(self._context, target, batch.datasets[source], live)
            except SuspendedError:
                break
        return parted

    def _part(self, ledger: DatasetTable, sources: Collection[str]) -> list[str]:
        """Take new names of a renamed table for tables of their own, read from the start on.

        They are known before the table that they part from is copied: after a crash in between
        nobody else would look for their events, which the ledger counts as read.
        """
        if not sources:
            return []
        routes, errors = datasets_of_sources(self._task, [*self._targets, *sources])
        if errors:
            raise ConfigErrors(errors)
        self._meet(routes)
        for source in sources:
            target = self._targets[source]
            target.take_over()
            target.commit_copy_state(replace(target.state.copy, behind=True), "parted")
        ledger.take_over()
        members = sorted({*ledger.state.copy.members, *self._targets})
        ledger.commit_copy_state(replace(ledger.state.copy, members=members), "parted")
        return list(sources)

    def _read(self, parts: Sequence[FilePart], *, only: str | None = None) -> DebeziumBatch:
        tables = self._targets
        scope = as_it_is(scope_of(self._task), tables)
        return read_debezium(
            self._context.landing,
            replace(scope, only=only, without=self._without),
            parts,
            {source: target.known_schema() for source, target in tables.items()},
            self._limits,
            done={
                source: {path: progress[1] for path, progress in target.state.copy.files.items()}
                for source, target in tables.items()
            },
            keys={source: tuple(target.state.copy.keys) for source, target in tables.items()},
        )

    def _meet(self, routes: Mapping[str, ResolvedDataset], suspended: Collection[str] = ()) -> bool:
        """Open the tables of new sources; True when one of them turns out to have a position."""
        new = sorted(set(routes) - set(self._targets))
        for source in new:
            self._targets[source] = self._table(routes[source])
            if source in suspended:
                suspend_new(self._context, self._targets[source], source)
        return any(self._targets[source].state.copy.files for source in new)

    def _commit(self, ledger: DatasetTable, unrouted: DatasetBatch, live: Iterable[str]) -> None:
        members = sorted({*ledger.state.copy.members, *self._targets})
        ledger.state = replace(ledger.state, copy=replace(ledger.state.copy, members=members))
        copy_step(self._context, ledger, unrouted, live)

    def _open(self) -> DatasetTable:
        """The ledger and the tables it knows; opened once, as long as nobody takes over."""
        if self._ledger is None:
            ledger = self._table(ledger_dataset(self._task))
            routes, _ = datasets_of_sources(self._task, ledger.state.copy.members)
            self._targets = {source: self._table(dataset) for source, dataset in routes.items()}
            self._ledger = ledger
        return self._ledger

    def _table(self, dataset: ResolvedDataset) -> DatasetTable:
        return opened(self._context, dataset)


def _nothing() -> None:
    """What is left to copy for a dataset whose files were read for all of them."""
