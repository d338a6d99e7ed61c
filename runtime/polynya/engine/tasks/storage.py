"""Storage tasks: declared datasets, a folder per table, new tables, full extracts.

The unit that copies asks for an apply (`ApplyUnit`), and the scheduler gives that unit a time
slice like any other. Both hold the same open table, but each commits its own state, so neither
undoes the other (docs/adr/0007-one-commit-per-step.md).

`FolderTask` finds tables by their folders. From then on each is a unit of work with its own
position, like a native dataset. The ledger remembers the tables, also before they hold data, and
counts the files without a table.

`ExtractsDataset` compares each full extract with the table. An extract is a reload that starts by
itself (docs/adr/0021-reloads-and-extracts.md): it gathers its rows in a partition of their own and
moves them in one commit, so a killed run continues where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from typing_extensions import override

from polynya.engine.context import EngineContext
from polynya.engine.dataset import OpenTables, WorkingDataset
from polynya.engine.landing import Listed, TaskLanding, listing_of, reader_of
from polynya.engine.listing import ListingReader, SharedListing
from polynya.engine.maintenance import MaintenanceUnit
from polynya.engine.pending import apply_decision, why_copies_wait
from polynya.engine.tasks.file_reloads import FileReloads
from polynya.engine.tasks.full_loads import FullLoad, finish_reload, gather
from polynya.engine.unit import AGAIN_SOON, IDLE, OVER, TOO_LONG, StepResult, TimeSlice, Unit
from polynya.formats.batch import FilePart
from polynya.formats.extracts import Extract, LandedExtracts, landed_extracts, refused_batch
from polynya.formats.files import Discovery, Folders, unread, unrouted
from polynya.lake.copy import reload as lake
from polynya.lake.table.state import Reloading
from polynya.model.config.dataset import DELETING, KEEPING, ReloadMode, ResolvedDataset
from polynya.model.config.evolution import Policy, SchemaEvolution
from polynya.model.config.settings import Extracts
from polynya.model.config.sources import datasets_of_sources, is_declared
from polynya.model.config.task import StorageTask
from polynya.model.error_catalogue.lake import TASK_STOPPED_BY_POLICY
from polynya.model.errors import ConfigErrors
from polynya.model.headers import Partition
from polynya.observe.engine import ExtractApplied, ExtractRestarted, ExtractWaiting, FileWaiting
from polynya.store.object_store import ObjectInfo

_DATA_PARTITIONS = (Partition.CURRENT, Partition.PRIOR, Partition.CHANGES)


class DeclaredDataset:
    """Brings one dataset up to date with its landed files."""

    def __init__(
        self,
        context: EngineContext,
        task: StorageTask,
        dataset: ResolvedDataset,
        listing: SharedListing,
    ) -> None:
        self._dataset = dataset
        self._listed = reader_of(context, listing)
        self._landing = TaskLanding(context, task)
        self._tables = OpenTables(context, task)
        self._applies = ApplyUnit(task, dataset)
        self._maintenance = MaintenanceUnit(dataset)
        settings = dataset.landing.reload
        self._reloads: FileReloads | None = None
        if settings is not None:
            self._reloads = FileReloads(context, dataset, settings, self._landing)

    def step(self, time_slice: TimeSlice) -> StepResult:
        """Copy the next batch, first full load first; when all is copied apply if it is worth it.

        Copies continue during an apply: in a run that continues the apply is a unit of its own. A
        reload that is due comes first.
        """
        if self._reloads is None:
            return self._step(time_slice)
        with self._tables.in_use():
            table = self._tables.of(self._dataset)
            refused = self._reloads.step(table, time_slice)
            must_wait = not time_slice.long and refused is None and self._reloads.is_due(table)
        if must_wait:
            return TOO_LONG
        result = self._step(time_slice)
        return result if result.refused is not None else replace(result, refused=refused)

    def _step(self, time_slice: TimeSlice) -> StepResult:
        with self._tables.in_use():
            table = self._tables.of(self._dataset)
            result = self._applies.copy_or_wait(
                table,
                time_slice,
                lambda: self._landing.copy_next(table, time_slice, self._listed),
            )
            if time_slice.more_comes:
                return result
            return self._maintenance.request_if_due(
                table, self._applies.apply_or_request(table, time_slice, result)
            )


@dataclass(frozen=True, slots=True)
class _FolderListing:
    """The last listing.

    `sources` are the tables that are taken, `live` every file that exists; `listed` lists them.
    """

    folders: Folders
    sources: frozenset[str]
    live: frozenset[str]
    listed: ListingReader


#: A table copies from a list that is younger, in seconds: two polls of the task that lists.
_FOLDER_LIST_SECONDS: Final = 4.0


class _FolderFiles(Listed):
    """The files of one table, as the task listed them last.

    `folders` sorts files by their tables.
    """

    def __init__(
        self,
        source: str,
        listing: _FolderListing,
        folders: Callable[[Iterable[ObjectInfo]], Folders],
    ) -> None:
        self._source, self._listed, self._folders = source, listing.listed, folders
        self._ready, self._live = listing.folders.tables.get(source, ()), listing.live

    @override
    def files(self, time_slice: TimeSlice, /) -> Iterable[ObjectInfo]:
        return self._ready

    @override
    def refreshed(self, time_slice: TimeSlice, /) -> Iterable[ObjectInfo] | None:
        newer = self._listed.refreshed(time_slice, _FOLDER_LIST_SECONDS)
        if newer is None:
            return None
        self._live = newer.paths
        return self._folders(newer).tables.get(self._source, ())

    @override
    def paths(self) -> Collection[str]:
        return self._live


class FolderTask:
    """Finds the tables of one task by their folders."""

    def __init__(self, context: EngineContext, task: StorageTask) -> None:
        self._context = context
        self._task = task
        self._landing = TaskLanding(context, task)
        self._listed = reader_of(context, listing_of(context, task, reused_seconds=0.0))
        self._tables = OpenTables(context, task)
        self._units: dict[str, Unit] = {}
        self._listing: _FolderListing | None = None

    def step(self, time_slice: TimeSlice) -> StepResult:
        """List the tables; each is brought up to date by a unit of its own."""
        with self._tables.in_use():
            return self._find(time_slice)

    def _find(self, time_slice: TimeSlice) -> StepResult:
        ledger = self._tables.ledger
        landed = self._listed.files(time_slice)
        folders = self._landing.format.tables(landed)
        if self._has_news(folders, ledger):
            # The ledger forgets files that a list does not have: an old list may lack some.
            landed = self._listed.refreshed(time_slice) or landed
            folders = self._landing.format.tables(landed)
        live = landed.paths
        members = ledger.table.state.copy.membership.members
        new = policy_for_new(self._task, members, folders.tables)
        wanted = set(folders.tables) - new.ignored
        routes, errors = datasets_of_sources(self._task, [*members, *wanted], known=members)
        for source in sorted(new.suspended & set(routes)):
            WorkingDataset.open(self._context, routes[source]).suspend_new(source)
        # New tables are remembered before they hold data, and after the policy decided: one that
        # is remembered is not new.
        self._tables.remember(routes, unrouted(folders, ledger.progress), live)
        self._listing = _FolderListing(folders, frozenset(routes), live, self._listed)
        for source in sorted(set(routes) - set(self._units)):
            table = FolderTable(
                self._context, self._task, routes[source], source, self._last_listing
            )
            self._units[source] = Unit(
                routes[source].relations.current, self._task.name, table.step
            )
        return StepResult(
            ready_units=tuple(self._units[source] for source in sorted(routes)),
            # The files of these tables stay where they are, unread.
            refused=ConfigErrors(errors) if errors else None,
        )

    def _has_news(self, folders: Folders, ledger: WorkingDataset) -> bool:
        """Whether there is a table that was never seen, or an unknown file without a table."""
        seen = self._listing.folders.tables if self._listing is not None else ()
        known = {*ledger.table.state.copy.membership.members, *seen}
        return bool(set(folders.tables) - known or unrouted(folders, ledger.progress).files)

    def _last_listing(self) -> _FolderListing:
        assert self._listing is not None, "a table exists only after a listing"
        return self._listing


class FolderTable:
    """Brings one table up to date with its folder, as the task last listed it."""

    def __init__(
        self,
        context: EngineContext,
        task: StorageTask,
        dataset: ResolvedDataset,
        source: str,
        listing: Callable[[], _FolderListing],
    ) -> None:
        self._context = context
        self._dataset = dataset
        self._source = source
        self._last_listing = listing
        self._landing = TaskLanding(context, task)
        self._tables = OpenTables(context, task)
        self._applies = ApplyUnit(task, dataset)
        self._maintenance = MaintenanceUnit(dataset)

    def step(self, time_slice: TimeSlice) -> StepResult:
        """Copy the next batch; when all is copied apply if it is worth it."""
        listing = self._last_listing()
        if self._source not in listing.sources:
            return IDLE
        files = _FolderFiles(self._source, listing, self._landing.format.tables)
        with self._tables.in_use():
            table = self._tables.of(self._dataset)
            self._tell_waiting(table, listing.folders.waiting.get(self._source, {}))
            result = self._applies.copy_or_wait(
                table,
                time_slice,
                lambda: self._landing.copy_next(table, time_slice, files),
            )
            return self._maintenance.request_if_due(
                table, self._applies.apply_or_request(table, time_slice, result)
            )

    def _tell_waiting(self, table: WorkingDataset, companions: Mapping[str, str]) -> None:
        """Report files that cannot be read before another one has landed."""
        for file, companion in companions.items():
            if self._context.is_news(f"{table.name} file {file}", companion):
                table.tell(FileWaiting(subject=table.name, file=file, waits_for=companion))


class ExtractsDataset:
    """Brings one dataset up to date with its landed extracts."""

    def __init__(
        self,
        context: EngineContext,
        task: StorageTask,
        dataset: ResolvedDataset,
        settings: Extracts,
    ) -> None:
        self._context = context
        self._task = task
        self._dataset = dataset
        self._settings = settings
        self._landing = TaskLanding(context, task)
        self._listed = reader_of(context, listing_of(context, task))
        self._tables = OpenTables(context, task)
        self._maintenance = MaintenanceUnit(dataset)

    def step(self, time_slice: TimeSlice) -> StepResult:
        """Load one complete extract; when there is no other one, apply if it is worth it."""
        with self._tables.in_use():
            table = self._tables.of(self._dataset)
            result = table.copy_and_apply(
                self._task.apply, time_slice, lambda: self._next(table, time_slice)
            )
            return self._maintenance.request_if_due(table, result)

    def _next(self, table: WorkingDataset, time_slice: TimeSlice) -> StepResult:
        seen = self._sorted(table, self._listed.files(time_slice))
        if not (seen.due or seen.refused or table.table.state.copy.reloading):
            self._tell(table, seen)
            return IDLE
        self._listed.expect_more()
        waiting = sum(info.size for extract in seen.due for info in extract.files)
        if time_slice.must_wait_for(waiting):
            return TOO_LONG
        return time_slice.more if self._take_in(table) else IDLE

    def _take_in(self, table: WorkingDataset) -> bool:
        """Load one extract; returns whether there may be another one now."""
        landed = self._landed(table)
        self._tell(table, landed)
        if landed.refused:
            batch = refused_batch(landed.refused, self._landing.read(table, (), load=True))
            table.copy(batch, live_files=self._landing.paths())
        reloading = table.table.state.copy.reloading
        if reloading is None:
            if not landed.due:
                return False
            reloading = self._begin(table, landed.due[0])
        if reloading.extract is None:
            self._wait(table, reloading.mode, "`polynya reload` ends what it began")
            return False
        table.table.take_over()
        if all(extract.name != reloading.extract for extract in landed.due):
            self._give_up(table, reloading.extract, "it left the landing zone")
            return True
        changed = gather(table, self._load(table, reloading.extract))
        if changed is not None:
            # Whoever writes it may not be done: the next run begins with it again.
            self._give_up(table, reloading.extract, f"{changed} changed or left")
            return False
        if not self._context.stop.is_set():
            self._finish(table, lake.under_way(table.table))
        return True

    def _give_up(self, table: WorkingDataset, extract: str, why: str) -> None:
        lake.abandon(table.table)
        table.tell(ExtractRestarted(subject=table.name, extract=extract, reason=why))

    def _wait(self, table: WorkingDataset, what: str, why: str) -> None:
        if self._context.is_news(f"{table.name} extract {what}", why):
            table.tell(ExtractWaiting(subject=table.name, extract=what, reason=why))

    def _landed(self, table: WorkingDataset) -> LandedExtracts:
        return self._sorted(table, self._landing.files())

    def _sorted(self, table: WorkingDataset, landed: Iterable[ObjectInfo]) -> LandedExtracts:
        last = table.table.state.copy.position.last_extract
        return landed_extracts(landed, self._dataset, self._settings, table.progress, last)

    def _begin(self, table: WorkingDataset, extract: Extract) -> Reloading:
        now = extract.time or self._context.clock.now()
        snapshot = table.table.state.snapshot
        mode: ReloadMode = DELETING if self._settings.absent == "delete" else KEEPING
        if not any(table.table.table.files(partition, snapshot) for partition in _DATA_PARTITIONS):
            # The first full load: there is nothing to compare with.
            mode = "drop_and_create"
        return lake.begin(table.table, mode, now=now, extract=extract.name)

    def _load(self, table: WorkingDataset, name: str) -> FullLoad:
        def files_of_extract() -> Extract:
            return next(
                (extract for extract in self._landed(table).due if extract.name == name),
                Extract(name, None, ()),
            )

        return FullLoad(
            find=lambda done: unread(files_of_extract().files, done, may_grow=False),
            landing=self._landing,
        )

    def _finish(self, table: WorkingDataset, gathered: Reloading) -> None:
        applied = finish_reload(
            table, incomplete=self._settings.incomplete, live_files=self._landing.paths()
        )
        table.tell(
            ExtractApplied(
                subject=table.name,
                extract=gathered.extract,
                time=gathered.started,
                rows_loaded=gathered.rows,
                rows_quarantined=gathered.quarantined,
                complete=gathered.is_whole,
            )
        )
        table.tell_applied(applied)

    def _tell(self, table: WorkingDataset, landed: LandedExtracts) -> None:
        due = [FilePart.of(info) for extract in landed.due for info in extract.files]
        table.report_discovery(Discovery(tuple(due), tuple(landed.changed)))
        for folder in landed.waiting:
            self._wait(table, folder, f"its file {self._settings.marker} has not landed")


class ApplyUnit:
    """The applies of one dataset of a task."""

    def __init__(self, task: StorageTask, dataset: ResolvedDataset) -> None:
        self.unit = Unit(f"{dataset.relations.current} (apply)", task.name, self._step)
        self._policy = task.apply
        self._table: WorkingDataset | None = None

    def copy_or_wait(
        self, table: WorkingDataset, time_slice: TimeSlice, copy_next: Callable[[], StepResult]
    ) -> StepResult:
        """Copy what is next, or wait where an apply cannot follow.

        `apply_or_request` reports the apply that copies wait for as ready. A run that ends when all
        is done applies here and continues.
        """
        if why_copies_wait(table.context, table.table, self._policy) is not None:
            if not time_slice.at_once:
                return AGAIN_SOON
            if table.apply_if_worth_it(self._policy, time_slice) is TOO_LONG:
                return TOO_LONG
        return table.copy_if_allowed(copy_next)

    def apply_or_request(
        self, table: WorkingDataset, time_slice: TimeSlice, result: StepResult
    ) -> StepResult:
        """The result of a step that copied everything, with the apply ready if it is worth it.

        A run that ends when all is done applies in the same step: nothing else is left to copy.
        """
        if time_slice.at_once:
            return table.apply_when_copied(result, self._policy, time_slice)
        if result.more or table.context.stop.is_set() or table.table.is_applied:
            return result
        if not apply_decision(table.context, table.table, self._policy).apply:
            return result
        self._table = table
        return result.with_ready_unit(self.unit)

    def _step(self, time_slice: TimeSlice) -> StepResult:
        table = self._table
        if table is None or table.table.distrusted:
            return OVER
        try:
            applied = table.apply_if_worth_it(self._policy, time_slice)
        except BaseException:
            table.table.distrusted = True
            raise
        return applied if applied.more else OVER


@dataclass(frozen=True, slots=True)
class NewSources:
    """Source tables that appeared after the first run, and the policy for them."""

    policy: Policy
    names: frozenset[str]

    @property
    def ignored(self) -> frozenset[str]:
        """The ignored ones."""
        return self.names if self.policy == "ignore" else frozenset()

    @property
    def suspended(self) -> frozenset[str]:
        """The suspended ones."""
        return self.names if self.policy == "suspend" else frozenset()


def policy_for_new(task: StorageTask, known: Collection[str], sources: Iterable[str]) -> NewSources:
    """The policy for source tables that appeared after the first run.

    Tables of the first run and declared tables are not new.

    Raises:
        TaskStoppedError: there is a new one, and the policy is `stop`.
    """
    policies = task.defaults.schema_evolution or SchemaEvolution()
    policy = policies.policy("new_dataset")
    new = sorted(
        source for source in set(sources) - set(known) if known and not is_declared(task, source)
    )
    if new and policy == "stop":
        raise TASK_STOPPED_BY_POLICY(
            where=f"task {task.name}",
            fix="declare the table, exclude it with `exclude`, or change "
            "`defaults.schema_evolution.new_dataset`",
            subject=task.name,
            reason=f"there is a new source table {new[0]}",
            policy="defaults.schema_evolution.new_dataset",
        )
    return NewSources(policy, frozenset(new))
