"""The next records of a task's tables, read as a run would read them; nothing is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pyiceberg.catalog import Catalog

from polynya.engine.ledger import ledger_dataset
from polynya.engine.tasks.storage import NewSources, policy_for_new
from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.extracts import landed_extracts
from polynya.formats.files import Discovery, unrouted
from polynya.formats.registry import format_of
from polynya.lake.copy.mapping import Before
from polynya.lake.read import inspect
from polynya.lake.table.shaping import in_force
from polynya.lake.table.state import ApplyState, CopyState
from polynya.model.config.dataset import ResolvedDataset, of_source
from polynya.model.config.evolution import policy_in_words
from polynya.model.config.settings import Extracts
from polynya.model.config.sources import datasets_of_sources, named_datasets
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import OperationError
from polynya.model.formats import rules_of
from polynya.store.object_store import ObjectInfo, ObjectStore
from polynya.transform.rules import with_rules

#: Whether a dataset is part of the preview.
IsWanted = Callable[[StorageTask, ResolvedDataset], bool]


@dataclass(frozen=True, slots=True)
class PreviewTable:
    """A dataset as its next batch is read, and the states of its table if it has one."""

    dataset: ResolvedDataset
    copy: CopyState = field(default_factory=CopyState)
    apply: ApplyState = field(default_factory=ApplyState)
    is_new: bool = True

    @property
    def table(self) -> KnownTable:
        """What reading its files has to know."""
        columns, position = self.copy.columns, self.copy.position
        dataset = with_rules(self.dataset, self.before.source)
        return KnownTable(
            dataset=of_source(dataset),
            schema=self.before.source,
            keys=dataset.mapping.of_source(columns.keys),
            done={path: progress.records for path, progress in position.files.items()},
            called=self.copy.membership.called,
            key_names=[tuple(names) for names in columns.key_names],
            eras=position.eras,
        )

    @property
    def before(self) -> Before:
        """The types of its columns, and of those of its source."""
        return Before.of(self.dataset, self.copy.columns)


@dataclass(frozen=True, slots=True)
class NextRecords:
    """The next records of one dataset.

    `waiting` counts the files that are there to be read. `is_rest`: they belong to no dataset.
    """

    task: StorageTask
    table: PreviewTable
    batch: DatasetBatch | None
    waiting: int = 0
    load: bool = False
    notes: tuple[str, ...] = ()
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class PreviewReader:
    """Where landed files and tables are, and how many records are read.

    `catalog` None: there are no tables. `only` are files that are looked at instead of what has
    landed, whether they were copied or not.
    """

    landing: ObjectStore
    catalog: Catalog | None
    limits: BatchLimits
    wanted: IsWanted
    only: tuple[ObjectInfo, ...] = ()

    def next_records(self, task: StorageTask) -> Iterator[NextRecords]:
        """The datasets of a task, each with what is next. Raises what reading the state raises."""
        rules = rules_of(task.landing.format)
        landed = self.only or list(self.landing.list(task.landing.path))
        if rules.shares_files:
            yield from self._shared(task, landed)
        elif rules.finds_tables:
            yield from self._in_folders(task, landed)
        else:
            for declared in task.datasets:
                dataset = resolved(task, declared)
                if self.wanted(task, dataset):
                    yield self._declared(task, self.preview_table(dataset), landed)

    def preview_table(self, dataset: ResolvedDataset) -> PreviewTable:
        """A dataset with the states of its table."""
        table = None if self.catalog is None else inspect.load(self.catalog, dataset)
        if table is None:
            return PreviewTable(dataset)
        copy, apply = inspect.states(table)
        preview = PreviewTable(in_force(dataset, copy), copy, apply, is_new=False)
        if not self.only:
            return preview
        return replace(preview, copy=replace(copy, position=replace(copy.position, files={})))

    def _declared(
        self, task: StorageTask, table: PreviewTable, landed: Sequence[ObjectInfo]
    ) -> NextRecords:
        extracts = table.dataset.landing.extracts
        if self.only:
            return self._read(task, table, self._given(task, table))
        if extracts is not None:
            return self._extract(task, table, extracts, landed)
        notes: list[str] = []
        files = self._without_reload(task, table, landed, notes)
        return self._read(task, table, self._unread(task, table, files), notes)

    def _given(self, task: StorageTask, table: PreviewTable) -> Discovery:
        """The files that were given, also where no glob names them."""
        discovery = self._unread(task, table, self.only)
        if discovery.files:
            return discovery
        parts = tuple(FilePart.of(info) for info in self.only)
        return Discovery(parts, (), load=table.dataset.landing.extracts is not None)

    def _extract(
        self,
        task: StorageTask,
        table: PreviewTable,
        settings: Extracts,
        landed: Sequence[ObjectInfo],
    ) -> NextRecords:
        """The next full extract."""
        position = table.copy.position
        extracts = landed_extracts(
            landed, table.dataset, settings, position.files, position.last_extract
        )
        notes = [f"{name} waits for {settings.marker}" for name in extracts.waiting]
        if not extracts.due:
            return NextRecords(task, table, None, notes=tuple(notes))
        due = extracts.due[0]
        notes.append(f"full extract {due.name}: a run compares it with what the table holds")
        parts = tuple(FilePart.of(info) for info in due.files)
        return self._read(task, table, Discovery(parts, (), load=True), notes)

    def _unread(
        self, task: StorageTask, table: PreviewTable, files: Iterable[ObjectInfo]
    ) -> Discovery:
        return format_of(task).unread(files, table.copy.position.files, table.dataset)

    def _without_reload(
        self, task: StorageTask, table: PreviewTable, landed: Sequence[ObjectInfo], notes: list[str]
    ) -> Sequence[ObjectInfo]:
        """The files without those of a running reload."""
        reloading = None if self.only else table.copy.reloading
        if reloading is None:
            return landed
        try:
            load = format_of(task).full_load(landed, table.dataset, reloading.glob)
        except OperationError:
            return landed
        notes.append("a reload is under way, and its files are left to it")
        theirs = {info.path for info in load}
        return [info for info in landed if info.path not in theirs]

    def _read(
        self,
        task: StorageTask,
        known: PreviewTable,
        discovery: Discovery,
        notes: Iterable[str] = (),
    ) -> NextRecords:
        """Read the next batch of a dataset with files of its own."""
        remarks = [
            *notes,
            *(f"{file.path} changed after it was copied" for file in discovery.changed),
        ]
        if not discovery.files:
            return NextRecords(task, known, None, notes=tuple(remarks))
        table = known.table
        request = ReadRequest(
            self.landing, discovery.files, {table.source: table}, self.limits, load=discovery.load
        )
        batch = format_of(task).read(request).one
        return NextRecords(task, known, batch, len(discovery.files), discovery.load, tuple(remarks))

    def _in_folders(self, task: StorageTask, landed: Sequence[ObjectInfo]) -> Iterator[NextRecords]:
        """The tables that have folders."""
        ledger = self.preview_table(ledger_dataset(task))
        folders = format_of(task).tables(landed)
        members = ledger.copy.membership.members
        new = policy_for_new(task, members, folders.tables)
        wanted = {*members, *folders.tables} - new.ignored
        routes, errors = datasets_of_sources(task, wanted, known=members)
        for source, dataset in routes.items():
            if not self.wanted(task, dataset):
                continue
            notes = [*_news(source, new)]
            waiting = folders.waiting.get(source, {})
            notes += [f"{file} waits for {other}" for file, other in waiting.items()]
            table = self.preview_table(dataset)
            files = self._without_reload(task, table, folders.tables.get(source, ()), notes)
            yield self._read(task, table, self._unread(task, table, files), notes)
        rest = unrouted(folders, ledger.copy.position.files)
        yield from _rest(task, ledger, rest, map(str, errors), len(rest.files))

    def _shared(self, task: StorageTask, landed: Sequence[ObjectInfo]) -> Iterator[NextRecords]:
        """The tables that one read of shared files finds."""
        ledger = self.preview_table(ledger_dataset(task))
        membership = ledger.copy.membership
        datasets = named_datasets(task, membership.members)
        tables = {source: self.preview_table(dataset) for source, dataset in datasets.items()}
        discovery = self._unread(task, ledger, landed)
        if not discovery.files:
            yield from (
                NextRecords(task, table, None)
                for table in tables.values()
                if self.wanted(task, table.dataset)
            )
            return
        known_tables = {source: table.table for source, table in tables.items()}
        read = format_of(task).read(
            ReadRequest(self.landing, discovery.files, known_tables, self.limits)
        )
        new = policy_for_new(task, tables if membership.settled else (), read.datasets)
        routes, errors = datasets_of_sources(task, {*tables, *read.datasets}, known=tables)
        for source, batch in read.datasets.items():
            dataset = routes.get(source)
            if dataset is None or not self.wanted(task, dataset):
                continue
            table = tables.get(source) or self.preview_table(dataset)
            notes = [*_news(source, new)]
            if batch.part is not None and batch.keys:
                notes.append("a scheduled load: a run compares it with what the table holds")
            yield NextRecords(task, table, batch, len(discovery.files), notes=tuple(notes))
        assert read.unrouted is not None, "what has no table is accounted for"
        yield from _rest(task, ledger, read.unrouted, map(str, errors), len(discovery.files))


def _news(source: str, new: NewSources) -> Iterator[str]:
    """A note on a new source table, with its policy."""
    if source in new.names:
        yield f"{source} is a new source table: policy `{policy_in_words(new.policy)}`"


def _rest(
    task: StorageTask,
    ledger: PreviewTable,
    batch: DatasetBatch,
    errors: Iterable[str],
    waiting: int,
) -> Iterator[NextRecords]:
    """What belongs to no table, if there is any."""
    notes = tuple(errors)
    if batch.rejected or batch.rows_filtered or batch.counters or notes:
        yield NextRecords(task, ledger, batch, waiting, notes=notes, is_rest=True)
