"""Reading a split in a task: as columns where every value is an ordinary one, exactly otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from polynya.formats.batch import BatchLimits, DatasetBatch
from polynya.formats.columnar import places_of
from polynya.formats.errors import UnreadableFileError
from polynya.formats.loads import Split, SplitReader, SplitReport, Tell, task_schema
from polynya.formats.native.columnar import ColumnarRecords
from polynya.formats.native.format import to_batch
from polynya.formats.native.keys import KeyWatch
from polynya.formats.native.load_rows import rows_of_batch, rows_of_chunk
from polynya.formats.native.settling import (
    has_say,
    holds_untold,
    joined,
    records_with_say,
    unforeseen,
)
from polynya.formats.native.splits import KINDS, SplitFormat, SplitTarget
from polynya.formats.opening import landed_file
from polynya.formats.records.columnar import RawRecord
from polynya.formats.records.csv import text_builder, text_type
from polynya.formats.records.openers import builder_of
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import Builder
from polynya.formats.values.exact import NumberSpelling
from polynya.formats.values.rows import ColumnTypes
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.errors import PolynyaError
from polynya.model.types import DataType, Void
from polynya.store.object_store import ObjectStore

_NO_LIMITS = BatchLimits(1 << 62, 1 << 62)


@dataclass(frozen=True, slots=True)
class NativeSplits(SplitReader):
    """Reads splits of a dataset, whose columns are assumed to be those of `types`.

    `schema` is what comes of `types`: the columns in the order of the table. `load`: the records
    are those of a full load, else they are changes.
    """

    store: ObjectStore
    dataset: ResolvedDataset
    schema: Mapping[str, DataType]
    types: ColumnTypes
    load: bool = True

    @override
    def read(self, split: Split, tell: Tell) -> Iterator[pa.RecordBatch]:
        reading = _Reading(self, split)
        try:
            with landed_file(
                self.store,
                split.file,
                self.dataset.landing.format,
                delivery=self.dataset.landing.delivery,
            ) as file:
                yield from reading.rows(file)
        except UnreadableFileError as error:
            reading.damaged = str(error)
        except PolynyaError as error:
            # Raised here it would arrive as a text inside of Spark's own error.
            reading.failed = error
        tell(split.number, reading.report())


@dataclass(slots=True)
class _Reading:
    """One split while it is read. Once it cannot be used any more its rows are no longer made."""

    splits: NativeSplits
    split: Split
    records: int = 0
    damaged: str | None = None
    failed: PolynyaError | None = None
    refused: str | None = None
    newest: int | None = None
    copied_to: str | None = None
    unparsed: int = 0
    news: dict[str, DataType] = field(default_factory=dict)
    keys: KeyWatch = field(default_factory=KeyWatch)

    def report(self) -> SplitReport:
        return SplitReport(
            records=self.records,
            types=self.news,
            refused=self.refused,
            damaged=self.damaged,
            failed=self.failed,
            newest=self.newest,
            copied_to=self.copied_to,
            keys=self.keys.range,
            unparsed=self.unparsed,
        )

    def rows(self, file: BinaryIO) -> Iterator[pa.RecordBatch]:
        skip = self.split.skip
        wanted = SplitTarget(self.splits.dataset, self.splits.schema)
        try:
            for portion in self._kind.portions(file, self.split, wanted):
                chunk = None if skip else portion.chunk(self._at)
                if chunk is not None:
                    yield self._placed(chunk)
                    continue
                kept = max(portion.count - skip, 0)
                if kept:
                    records = islice(portion.records(), skip, None)
                    yield from self._exactly(records, kept)
                skip = max(skip - portion.count, 0)
        except self._kind.damage as error:
            raise UnreadableFileError(f"damaged: {error}") from error

    @property
    def _kind(self) -> SplitFormat:
        return KINDS[self.splits.dataset.landing.format]

    @property
    def _spelling(self) -> NumberSpelling:
        return NumberSpelling.of(self.splits.dataset.landing.delivery)

    @property
    def _builder(self) -> Builder:
        return builder_of(self.splits.dataset.landing.format, self._spelling)

    def _placed(self, chunk: ColumnarRecords) -> pa.RecordBatch:
        splits = self.splits
        places = places_of(
            chunk.columns, splits.schema, splits.dataset, count=chunk.count, load=splits.load
        )
        rows = rows_of_chunk(chunk, places, splits.dataset.events.keys, self._schema)
        self.records += chunk.count
        self._see(rows, places.newest)
        return rows

    def _exactly(self, records: Iterator[RawRecord], count: int) -> Iterator[pa.RecordBatch]:
        buffer = RecordBuffer(_NO_LIMITS)
        for offset, (raw, record) in enumerate(records, self._at):
            buffer.add(self.split.file, offset, raw, record)
        self.records += count
        batch = self._typed(buffer)
        if batch is None:
            return
        self.unparsed += batch.unparsed
        newest = pc.max(batch.rows.column("__ts").cast(pa.int64())).as_py()
        for rows in rows_of_batch(batch, self._schema):
            self._see(rows, newest)
            yield rows

    def _typed(self, buffer: RecordBuffer) -> DatasetBatch | None:
        """The records as a batch; None when its columns are others than was assumed."""
        splits, kind = self.splits, self._kind
        batch = to_batch(buffer, splits.dataset, splits.types, self._builder, load=splits.load)
        if kind.declares_types or splits.types.known:
            self.refused = self.refused or unforeseen(batch, splits.schema)
        elif kind.builder is text_builder:
            self._learn_of_texts(buffer, batch)
        elif has_say(batch, buffer.records, splits.schema):
            self._learn(buffer)
        return None if self.news or self.refused else batch

    def _learn_of_texts(self, buffer: RecordBuffer, batch: DatasetBatch) -> None:
        """Let the texts of columns that nobody declared say what they need."""
        splits = self.splits
        heard = records_with_say(batch, buffer)
        for name in dict.fromkeys([*splits.schema, *chain.from_iterable(heard)]):
            if name not in splits.dataset.events.columns:
                before = self.news.get(name, splits.schema.get(name, Void()))
                texts = [record.get(name) for record in heard]
                needed = text_type(before, texts, self._spelling)
                if needed != splits.schema.get(name):
                    self.news[name] = needed

    def _learn(self, buffer: RecordBuffer) -> None:
        """Join the types that these records would have by themselves with what is assumed."""
        splits = self.splits
        alone = replace(splits.types, observed={})
        batch = to_batch(buffer, splits.dataset, alone, self._builder, load=splits.load)
        for name, kind in batch.schema.items():
            assumed = self.news.get(name, splits.schema.get(name, Void()))
            both = joined(assumed, kind)
            if both is None or holds_untold(buffer.records, name, both):
                self.refused = f"the values of column {name} have types that must be read together"
            elif both != splits.schema.get(name):
                self.news[name] = both

    @property
    def _at(self) -> int:
        """Index in the file of the next record."""
        return self.split.first + self.split.skip + self.records

    def _see(self, rows: pa.RecordBatch, newest: int | None) -> None:
        if newest is not None:
            self.newest = newest if self.newest is None else max(self.newest, newest)
        if "__ci" in rows.schema.names:
            highest = pc.max(rows.column("__ci")).as_py()
            self.copied_to = max(filter(None, (self.copied_to, highest)), default=None)
        names = self.splits.dataset.events.keys
        self.keys.see([rows.column(name) for name in names],
                      [self.splits.schema[name] for name in names])  # fmt: skip

    @property
    def _schema(self) -> pa.Schema:
        placed = bool(self.splits.dataset.events.sequence_by)
        return task_schema(self.splits.schema, placed=placed, timed=not self.splits.load)
