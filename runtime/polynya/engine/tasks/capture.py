"""A storage task whose datasets share their files: one file feeds many of them.

A file is read once for all datasets. Each dataset's commit holds its own position in the file; the
ledger is committed last. After a crash in between the file is read again, and each dataset skips
what it has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from polynya.engine.tasks.new_sources import policy_of_new
from polynya.engine.work.context import EngineContext
from polynya.engine.work.dataset import WorkingDataset
from polynya.engine.work.landing import TaskLanding
from polynya.engine.work.tables import OpenTables
from polynya.engine.work.tidying.beside import MaintenanceBeside
from polynya.engine.work.turns.threads import in_threads
from polynya.engine.work.turns.unit import IDLE, TOO_LONG, Ended, Turn
from polynya.formats.base import ReadBatch
from polynya.formats.batch import DatasetBatch, FilePart, FileProgress
from polynya.formats.landed.reached import gone_between
from polynya.model.config.sources import datasets_of_sources
from polynya.model.config.task import StorageTask
from polynya.model.contract.landed_position import Gone
from polynya.model.errors import ConfigErrors, SuspendedError
from polynya.observe.streams import StreamLost


class CaptureTask:
    """Brings all datasets of one task up to date with its landed files."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._landing = TaskLanding(context, task)
        self._tables = OpenTables(context, task)
        self._without: frozenset[str] = frozenset()
        self._maintenance: dict[str, MaintenanceBeside] = {}

    def step(self, turn: Turn) -> Ended:
        """Copy the next batch of all datasets; when all is copied apply what is worth it."""
        with self._tables.in_use():
            return self._step(turn)

    def _step(self, turn: Turn) -> Ended:
        ledger = self._tables.ledger
        routes, _ = datasets_of_sources(self._task, ledger.table.state.copy.membership.members)
        self._tables.meet(routes)
        self._begin_new_names(ledger)
        waiting = [one for one in self._tables.by_source.values() if _is_to_catch_up(one)]
        if waiting and not turn.long:
            return TOO_LONG
        while waiting:
            waiting += filter(_is_to_catch_up, self._catch_up(waiting.pop(0)))
        ended = self._copy_next(ledger, turn)
        if ended.more:
            return ended
        self._settle()
        if self._context.stop.is_set():
            return ended
        tables = self._tables.by_source.values()
        applied = in_threads(lambda table: self._apply(table, turn), tables)
        if TOO_LONG in applied:
            return TOO_LONG
        refused = next((one.refused for one in applied if one.refused), None)
        return self._maintained(replace(ended, refused=refused))

    def _maintained(self, ended: Ended) -> Ended:
        """The same, with the maintenance of each table that may have some."""
        for source, table in self._tables.by_source.items():
            known = self._maintenance
            beside = known.get(source) or known.setdefault(
                source, MaintenanceBeside(table.table.dataset)
            )
            ended = beside.after(table, ended)
        return ended

    def _copy_next(self, ledger: WorkingDataset, turn: Turn) -> Ended:
        """Copy the next batch of the shared files, unless it is to wait for more."""
        landing, clock = self._landing, self._context.clock
        found = landing.unread(ledger, landing.files())
        ledger.found(found)
        if not found.files:
            return IDLE
        decision = landing.pace.decide(found, turn, clock.monotonic())
        if not decision.copy:
            return Ended(look_again=decision.wait)
        if turn.must_wait_for(found.size_bytes):
            return TOO_LONG
        with ledger.copying(found):
            files = self._copy(found.files)
        landing.pace.copied(found, files, clock.monotonic())
        return turn.more

    def _settle(self) -> None:
        """Remember that the tables of the first run are known; there may be many batches of it."""
        ledger = self._tables.ledger.table
        state = ledger.state.copy
        known = state.membership
        if known.members and not known.settled and not self._context.stop.is_set():
            ledger.take_over()
            settled = replace(state, membership=replace(known, settled=True))
            ledger.commit_copy_state(settled, "settled")

    def _copy(self, parts: Sequence[FilePart]) -> Mapping[str, FileProgress]:
        """Copy one batch of the files; how far each was read."""
        began = self._context.clock.monotonic()
        batch = self._read(parts)
        before = self._tables.ledger.table.state.copy.membership
        known = {*before.members, *self._tables.by_source} if before.settled else ()
        new = policy_of_new(self._task, known, batch.datasets)
        if new.ignored:
            self._without |= new.ignored
            batch = self._read(parts)
        routes, errors = datasets_of_sources(self._task, [*self._tables.by_source, *batch.datasets])
        if any(one.progress for one in self._tables.meet(routes, new.suspended)):
            # A table that this task had already fed before a crash: skip what it has.
            batch = self._read(parts)
        live = self._landing.paths()
        tables = self._tables.by_source
        good = [
            (tables[source], part)
            for source, part in batch.datasets.items()
            if source in routes and not tables[source].is_behind
        ]
        in_threads(lambda item: _copy_part(*item, began, live), good)
        if errors:
            # The files are not marked as done, so that nothing of the refused tables is lost.
            self._remember_members("members")
            raise ConfigErrors(errors)
        assert batch.unrouted is not None, "what has no table is accounted for"
        done = self._tables.ledger.progress
        self._tables.remember(tables, batch.unrouted, live)
        self._tell_lost(gone_between(done, batch.unrouted.files))
        return batch.unrouted.files

    def _tell_lost(self, lost: Mapping[str, Sequence[Gone]]) -> None:
        """Say which landed batches were gone before anybody copied them."""
        for folder, missing in lost.items():
            for one in missing:
                event = StreamLost.of_landing(self._task.name, folder, one)
                self._context.sink(replace(event, task=self._task.name))

    def _apply(self, table: WorkingDataset, turn: Turn) -> Ended:
        """Apply one table, whose files were read for all of them."""
        return table.bring_up(self._task.apply, turn, lambda: IDLE)

    def _begin_new_names(self, ledger: WorkingDataset) -> None:
        """Let a dataset with a new name read what the files had for its source before.

        The ledger counts these files as read, since the dataset of the old name did so.
        """
        for source in ledger.table.state.copy.membership.members:
            table = self._tables.by_source.get(source)
            if table is not None and ledger.progress and _is_unfed(table):
                _set_behind(table, "begins", behind=True)

    def _catch_up(self, table: WorkingDataset) -> list[WorkingDataset]:
        """Copy what was read on without a table while it was suspended.

        Returns tables that parted from it, which have to catch up too.
        """
        source = table.table.dataset.landing.source
        assert source is not None, "only a table of a capture is ever behind"
        parted: list[WorkingDataset] = []
        while not self._context.stop.is_set():
            found = self._landing.unread(table, self._landing.files())
            if not found.files:
                _set_behind(table, "caught-up", behind=False)
                break
            began = self._context.clock.monotonic()
            batch = self._read(found.files, only=source)
            live = self._landing.paths()
            parted += self._part(batch.left)
            try:
                table.copy(batch.datasets[source], began=began, live_files=live)
            except SuspendedError:
                break
        return parted

    def _part(self, sources: Collection[str]) -> list[WorkingDataset]:
        """Take new names of a renamed table for tables of their own, read from the start on.

        They are known before the table that they part from is copied: after a crash in between
        nobody else would look for their events, which the ledger counts as read.
        """
        if not sources:
            return []
        routes, errors = datasets_of_sources(self._task, [*self._tables.by_source, *sources])
        if errors:
            raise ConfigErrors(errors)
        self._tables.meet(routes)
        tables = self._tables.by_source
        parted = [tables[source] for source in sources]
        for table in parted:
            _set_behind(table, "parted", behind=True)
        self._remember_members("parted")
        return parted

    def _remember_members(self, step: str) -> None:
        """Commit to the ledger which tables there are, and nothing that was read."""
        ledger = self._tables.ledger.table
        known = ledger.state.copy.membership.members
        members = sorted({*known, *self._tables.by_source})
        if members != known:
            ledger.take_over()
            ledger.commit_copy_state(ledger.state.copy.with_members(members), step)

    def _read(self, parts: Sequence[FilePart], *, only: str | None = None) -> ReadBatch:
        tables = self._tables.by_source
        return self._landing.read_shared(tables, parts, only=only, without=self._without)


def _copy_part(table: WorkingDataset, part: DatasetBatch, began: float, live: set[str]) -> None:
    """Copy the events of one table. If that suspends it the files are read on without it."""
    with suppress(SuspendedError):
        table.copy(part, began=began, live_files=live)


def _set_behind(table: WorkingDataset, step: str, *, behind: bool) -> None:
    """Commit whether a table has to catch up with the ledger."""
    table.table.take_over()
    state = table.table.state.copy.with_behind(behind=behind)
    if not behind:
        state = replace(state, membership=replace(state.membership, task=table.table.dataset.task))
    table.table.commit_copy_state(state, step)


def _is_unfed(table: WorkingDataset) -> bool:
    """Whether nothing was ever read for a table."""
    state = table.table.state.copy
    return state.membership.task is None and not table.is_behind and not state.books.totals


def _is_to_catch_up(table: WorkingDataset) -> bool:
    """Whether the files were read on without a table that may be copied again."""
    return table.is_behind and not table.is_suspended
