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
        return KnownTable(
            dataset=of_source(self.dataset),
            schema=self.before.source,
            keys=self.dataset.mapping.of_source(columns.keys),
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
    known: PreviewTable
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

    def looks(self, task: StorageTask) -> Iterator[NextRecords]:
        """The datasets of a task, each with what is next. Raises what reading the state raises."""
        rules = rules_of(task.landing.format)
        landed = self.only or list(self.landing.list(task.landing.path))
        if rules.shares_files:
            yield from self._shared(task, landed)
        elif rules.finds_tables:
            yield from self._in_folders(task, landed)
        else:
            for one in task.datasets:
                dataset = resolved(task, one)
                if self.wanted(task, dataset):
                    yield self._declared(task, self.known(dataset), landed)

    def known(self, dataset: ResolvedDataset) -> PreviewTable:
        """What is known of a dataset."""
        table = None if self.catalog is None else inspect.load(self.catalog, dataset)
        if table is None:
            return PreviewTable(dataset)
        copy, apply = inspect.states(table)
        found = PreviewTable(in_force(dataset, copy), copy, apply, is_new=False)
        if not self.only:
            return found
        return replace(found, copy=replace(copy, position=replace(copy.position, files={})))

    def _declared(
        self, task: StorageTask, known: PreviewTable, landed: Sequence[ObjectInfo]
    ) -> NextRecords:
        extracts = known.dataset.landing.extracts
        if self.only:
            return self._read(task, known, self._given(task, known))
        if extracts is not None:
            return self._extract(task, known, extracts, landed)
        notes: list[str] = []
        files = self._without_reload(task, known, landed, notes)
        return self._read(task, known, self._unread(task, known, files), notes)

    def _given(self, task: StorageTask, known: PreviewTable) -> Discovery:
        """The files that were given, also where no glob names them."""
        found = self._unread(task, known, self.only)
        if found.files:
            return found
        parts = tuple(FilePart.of(info) for info in self.only)
        return Discovery(parts, (), load=known.dataset.landing.extracts is not None)

    def _extract(
        self,
        task: StorageTask,
        known: PreviewTable,
        settings: Extracts,
        landed: Sequence[ObjectInfo],
    ) -> NextRecords:
        """The next full extract."""
        position = known.copy.position
        found = landed_extracts(
            landed, known.dataset, settings, position.files, position.last_extract
        )
        notes = [f"{name} waits for {settings.marker}" for name in found.waiting]
        if not found.due:
            return NextRecords(task, known, None, notes=tuple(notes))
        due = found.due[0]
        notes.append(f"full extract {due.name}: a run compares it with what the table holds")
        parts = tuple(FilePart.of(info) for info in due.files)
        return self._read(task, known, Discovery(parts, (), load=True), notes)

    def _unread(
        self, task: StorageTask, known: PreviewTable, files: Iterable[ObjectInfo]
    ) -> Discovery:
        return format_of(task).unread(files, known.copy.position.files, known.dataset)

    def _without_reload(
        self, task: StorageTask, known: PreviewTable, landed: Sequence[ObjectInfo], notes: list[str]
    ) -> Sequence[ObjectInfo]:
        """Files that are not those of a reload which is under way."""
        reloading = None if self.only else known.copy.reloading
        if reloading is None:
            return landed
        try:
            load = format_of(task).full_load(landed, known.dataset, reloading.glob)
        except OperationError:
            return landed
        notes.append("a reload is under way, and its files are left to it")
        theirs = {info.path for info in load}
        return [info for info in landed if info.path not in theirs]

    def _read(
        self, task: StorageTask, known: PreviewTable, found: Discovery, notes: Iterable[str] = ()
    ) -> NextRecords:
        """Read the next batch of a dataset with files of its own."""
        said = [*notes, *(f"{one.path} changed after it was copied" for one in found.changed)]
        if not found.files:
            return NextRecords(task, known, None, notes=tuple(said))
        table = known.table
        request = ReadRequest(
            self.landing, found.files, {table.source: table}, self.limits, load=found.load
        )
        batch = format_of(task).read(request).one
        return NextRecords(task, known, batch, len(found.files), found.load, tuple(said))

    def _in_folders(self, task: StorageTask, landed: Sequence[ObjectInfo]) -> Iterator[NextRecords]:
        """The tables that have folders."""
        ledger = self.known(ledger_dataset(task))
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
            known = self.known(dataset)
            files = self._without_reload(task, known, folders.tables.get(source, ()), notes)
            yield self._read(task, known, self._unread(task, known, files), notes)
        rest = unrouted(folders, ledger.copy.position.files)
        yield from _rest(task, ledger, rest, map(str, errors), len(rest.files))

    def _shared(self, task: StorageTask, landed: Sequence[ObjectInfo]) -> Iterator[NextRecords]:
        """The tables that one read of shared files finds."""
        ledger = self.known(ledger_dataset(task))
        membership = ledger.copy.membership
        datasets = named_datasets(task, membership.members)
        tables = {source: self.known(dataset) for source, dataset in datasets.items()}
        found = self._unread(task, ledger, landed)
        if not found.files:
            yield from (
                NextRecords(task, one, None)
                for one in tables.values()
                if self.wanted(task, one.dataset)
            )
            return
        known = {source: one.table for source, one in tables.items()}
        read = format_of(task).read(ReadRequest(self.landing, found.files, known, self.limits))
        new = policy_for_new(task, tables if membership.settled else (), read.datasets)
        routes, errors = datasets_of_sources(task, {*tables, *read.datasets}, known=tables)
        for source, batch in read.datasets.items():
            dataset = routes.get(source)
            if dataset is None or not self.wanted(task, dataset):
                continue
            one = tables.get(source) or self.known(dataset)
            yield NextRecords(task, one, batch, len(found.files), notes=tuple(_news(source, new)))
        assert read.unrouted is not None, "what has no table is accounted for"
        yield from _rest(task, ledger, read.unrouted, map(str, errors), len(found.files))


def _news(source: str, new: NewSources) -> Iterator[str]:
    """What the policy says of a source table that was not there before."""
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
