"""The plan of a native load or large copy: where files are split, and their columns.

Parquet, ORC and Avro files declare their columns. Of JSON and CSV the planner reads a first piece,
and the reports of the tasks correct what that piece did not show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from typing_extensions import override

from polynya.formats.base import ReadRequest
from polynya.formats.batch import (
    WHOLE_FILE,
    BatchLimits,
    DatasetBatch,
    FilePart,
    FileProgress,
    Rejected,
)
from polynya.formats.errors import UnreadableFileError
from polynya.formats.loads import (
    LoadFormat,
    LoadLimits,
    Split,
    SplitBoundary,
    SplitPlan,
    SplitReport,
)
from polynya.formats.native.format import read_native
from polynya.formats.native.load_reader import NativeSplits
from polynya.formats.native.settling import joined
from polynya.formats.native.splits import KINDS, RecordGroup
from polynya.formats.opening import is_packed, landed_file
from polynya.formats.records.csv import joined_text_types, text_builder
from polynya.formats.values.formatted import time_formats
from polynya.formats.values.names import schema_problem
from polynya.formats.values.rows import ObservedTypes, typed_records
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.types import DataType, Void
from polynya.store.object_store import ObjectStore


def splits_of(
    part: FilePart,
    pieces: Iterator[RecordGroup],
    place: SplitBoundary,
    *,
    number: int,
    split_bytes: int,
    most_bytes: int,
) -> tuple[list[Split], bool]:
    """Splits of a file from its record `part.start` on, and whether they reach its end.

    `number` is that of the first, `place` where the pieces begin. The splits end after the one with
    which `most_bytes` are reached.
    """
    cut = _FileCut(part, number, records=place.records, before=place.before)
    for piece in pieces:
        if cut.held and cut.held_bytes + piece.size > split_bytes:
            cut.close(piece.begin)
            if sum(split.size for split in cut.splits) >= most_bytes:
                return cut.splits, False
        cut.take(piece)
    if cut.held:
        cut.close(None)
    return cut.splits, True


@dataclass(slots=True)
class _FileCut:
    """The splits of a file so far, and the pieces of the next one."""

    part: FilePart
    number: int
    splits: list[Split] = field(default_factory=list)
    held: list[RecordGroup] = field(default_factory=list)
    held_bytes: int = 0
    records: int = 0
    before: int = 0

    def take(self, piece: RecordGroup) -> None:
        """Hold a piece, unless all of it was read before."""
        if not self.held and self.records + piece.records <= self.part.start:
            self.records += piece.records
            self.before += piece.size
            return
        self.held.append(piece)
        self.held_bytes += piece.size

    def close(self, end: int | None) -> None:
        """Make a split of what is held."""
        self.splits.append(
            Split(
                number=self.number + len(self.splits),
                file=self.part.path,
                first=self.records,
                skip=max(self.part.start - self.records, 0),
                before=self.before,
                size=self.held_bytes,
                begin=self.held[0].begin,
                end=end,
            )
        )
        self.records += sum(piece.records for piece in self.held)
        self.before += self.held_bytes
        self.held, self.held_bytes = [], 0


_START = SplitBoundary()
_SAMPLE = BatchLimits(max_rows=2_000, max_bytes=1024 * 1024)


@dataclass(slots=True)
class _LoadCut:
    """What is known of the files so far."""

    splits: list[Split] = field(default_factory=list)
    progress: dict[str, FileProgress] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)
    observed: ObservedTypes = field(default_factory=ObservedTypes)

    @property
    def size_bytes(self) -> int:
        return sum(split.size for split in self.splits)

    def take_whole(self, part: FilePart) -> None:
        """Let one task read a file, of which nobody knows how many records it has."""
        split = Split(len(self.splits), part.path, 0, part.start, before=0, size=part.size)
        self.splits.append(split)
        self.progress[part.path] = part.read(part.start, complete=True)

    def refuse(self, part: FilePart, why: str) -> None:
        """Reject a file as a whole; what earlier batches took of it stays."""
        self.rejected.append(Rejected(part.path, WHOLE_FILE, "unreadable_file", why, b""))
        self.progress[part.path] = part.read(part.start, complete=True)


class NativeLoads(LoadFormat):
    """Loads of native files."""

    @override
    def plan(
        self,
        request: ReadRequest,
        limits: LoadLimits,
        damaged: Mapping[str, str],
        places: Mapping[str, SplitBoundary],
    ) -> SplitPlan | str:
        kind = KINDS.get(request.table.dataset.landing.format)
        if kind is None:
            return "workbooks are read one after the other"
        cut = _LoadCut()
        for part in request.files:
            if cut.size_bytes >= limits.commit_bytes:
                break
            if part.path in damaged:
                cut.refuse(part, damaged[part.path])
            elif request.table.dataset.landing.delivery.record_path is not None:
                # Where its records begin is known only from its start.
                cut.take_whole(part)
            elif not _is_packed(request.store, part.path):
                place = places.get(part.path, _START)
                known = place if place.records == part.start else _START
                _cut_file(request, part, known, limits, cut)
            elif kind.is_read_whole:
                cut.take_whole(part)
            elif cut.splits:
                break
            else:
                return f"{part.path} is compressed"
        whole = [part for part in request.files if part.path not in damaged]
        return _planned(replace(request, files=whole), cut)

    @override
    def settled(self, plan: SplitPlan, reports: Mapping[int, SplitReport]) -> SplitPlan:
        reader = plan.reader
        assert isinstance(reader, NativeSplits)
        schema = dict(plan.schema)
        texts = KINDS[reader.dataset.landing.format].builder is text_builder
        join = joined_text_types if texts else joined
        for split in plan.splits:
            report = reports[split.number]
            found = _joined(schema, report.types, join)
            if report.refused is not None or found is None or _problem(reader.dataset, (), found):
                plan = plan.until(split.number)
                break
            schema = found
        if schema == plan.schema:
            return plan
        types = replace(reader.types, observed=schema)
        return replace(plan, schema=schema, reader=replace(reader, schema=schema, types=types))


def _problem(
    dataset: ResolvedDataset, known: Collection[str], schema: Mapping[str, DataType]
) -> str | None:
    excluded = dataset.events.except_columns
    return schema_problem(known, {n: kind for n, kind in schema.items() if n not in excluded})


def _joined(
    schema: Mapping[str, DataType],
    news: Mapping[str, DataType],
    join: Callable[[DataType, DataType], DataType | None],
) -> dict[str, DataType] | None:
    found = dict(schema)
    for name, kind in news.items():
        both = join(found.get(name, Void()), kind)
        if both is None:
            return None
        found[name] = both
    return found


def _is_packed(store: ObjectStore, path: str) -> bool:
    """Whether a file is compressed as a whole: no part of it can be read by itself."""
    try:
        with store.open(path) as file:
            return is_packed(file.read(8192), path)
    except OSError:
        # Cutting it says why.
        return False


def _cut_file(
    request: ReadRequest, part: FilePart, place: SplitBoundary, limits: LoadLimits, cut: _LoadCut
) -> None:
    dataset = request.table.dataset
    landing = dataset.landing
    try:
        with landed_file(
            request.store, part.path, landing.format, delivery=landing.delivery
        ) as file:
            pieces_of = KINDS[landing.format].pieces
            opened = pieces_of(file, dataset, limits.split_bytes, place.begin)
            splits, complete = splits_of(
                part,
                opened.pieces,
                place,
                number=len(cut.splits),
                split_bytes=limits.split_bytes,
                most_bytes=limits.commit_bytes - cut.size_bytes,
            )
    except UnreadableFileError as error:
        cut.refuse(part, str(error))
        return
    cut.observed.learn(opened.types)
    cut.splits += splits
    cut.progress[part.path] = part.read(part.start, complete=complete)


def _planned(request: ReadRequest, cut: _LoadCut) -> SplitPlan | str:
    dataset, known = request.table.dataset, request.table.schema
    events, policies = dataset.events, dataset.policies.schema_evolution
    if events.numbers is not None and not KINDS[dataset.landing.format].declares_types:
        return "`numbers` decides types, which tasks take from the values"
    types = cut.observed.column_types(
        known, events.columns, policies, excluded=events.except_columns
    )
    types = replace(types, formats=time_formats(dataset))
    if KINDS[dataset.landing.format].declares_types:
        found = typed_records([], types, needed=events.keys)
        schema, changes, met = found.schema(), bool(found.changes), found.met
    elif known:
        # A load that goes on. Tasks say when a record changes the columns.
        schema, changes, met = dict(known), False, frozenset()
    else:
        sample = _sampled(request)
        schema, changes = dict(sample.schema), bool(sample.changes)
        # Files that come later may name columns, without types.
        met = (sample.met or frozenset()) | frozenset(types.observed)
        schema |= {name: t for name, t in types.observed.items() if name not in schema}
        types = replace(types, observed=schema)
    named = {name: kind for name, kind in types.observed.items() if name not in schema}
    if problem := _problem(dataset, known, {**schema, **named}):
        return problem
    if known and (changes or dict(known) != dict(schema)):
        return "the files change the columns of the table"
    return SplitPlan(
        splits=tuple(cut.splits),
        schema=schema,
        declared=types.evolving.columns,
        progress=cut.progress,
        rejected=tuple(cut.rejected),
        reader=NativeSplits(request.store, dataset, schema, types, load=request.load),
        met=met,
        load=request.load,
    )


def _sampled(request: ReadRequest) -> DatasetBatch:
    """The first records, with their columns and what they change in those that are known."""
    return read_native(replace(request, limits=_SAMPLE))
