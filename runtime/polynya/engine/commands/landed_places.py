"""Where the events of a record landed: the files of the landing zone are read once more for them.

A table does not keep the file of each row: it would cost every row some bytes, and a file may be
gone any time. So the files that may hold an event are read again as a copy reads them, those that
landed last before it was copied first, within limits. What was not looked at is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog

from polynya.engine.ledger import ledger_dataset
from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.errors import UnreadableFileError
from polynya.formats.landed import Messages, batch_name, is_landed_batch, opened_batch
from polynya.formats.opening import landed_file
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.task import StorageTask
from polynya.model.errors import PolynyaError
from polynya.model.formats import STREAM, rules_of
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo, ObjectStore

#: Objects of the landing zone that are listed at most.
_MOST_LISTED: Final = 100_000
#: A file may have landed so many seconds after a copy by its clock: clocks differ.
_SLACK_SECONDS: Final = 120.0
#: Digits of the places of streamed records: 20 of the landed batch, 15 of the record.
_OWN_PLACE_DIGITS: Final = 35


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What one search may read, and how long it may take."""

    files: int = 50
    size_bytes: int = 128 * 2**20
    seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class SoughtEvent:
    """An event that is looked for: its place in the order, "" for a row of a full load.

    `copied_at` is when it was copied, at the latest; None: nobody knows. `position` breaks ties.
    """

    sequence: str
    copied_at: datetime | None = None
    position: str | None = None


@dataclass(frozen=True, slots=True)
class LandedPlace:
    """Where an event landed: the object, and its number there, from 0.

    `message` is the place of its message in the source, such as `kafka:clicks/3/1234`.
    """

    file: str
    number: int
    message: str | None = None


@dataclass(frozen=True, slots=True)
class LandedPlaces:
    """Where events landed, by their sequence; `why` says why others were not found.

    `looked_at` files of `files` that may hold them were read.
    """

    places: Mapping[str, LandedPlace] = field(default_factory=dict)
    looked_at: int = 0
    files: int = 0
    why: str | None = None


@dataclass(frozen=True, slots=True)
class LandingSearch:
    """Looks through the landing zone of a target. `catalog` holds the tables."""

    landing: ObjectStore
    catalog: Catalog | None
    clock: Clock
    limits: SearchLimits = SearchLimits()

    def find(
        self,
        task: StorageTask,
        dataset: ResolvedDataset,
        key: Mapping[str, pa.Array],
        events: Sequence[SoughtEvent],
    ) -> LandedPlaces:
        """Where the events of a record landed. It raises nothing: what fails is the reason."""
        if isinstance(task, DerivedTask):
            return LandedPlaces(why="a query makes its rows of other tables")
        if isinstance(task, DirectTask):
            return LandedPlaces(why="the table reads its source itself: nothing landed")
        try:
            return self._find(task, dataset, key, events)
        except (PolynyaError, OSError, ValueError, pa.ArrowException) as error:
            return LandedPlaces(why=f"the landing zone could not be read: {error}")

    def _find(
        self,
        task: StorageTask,
        dataset: ResolvedDataset,
        key: Mapping[str, pa.Array],
        events: Sequence[SoughtEvent],
    ) -> LandedPlaces:
        began, size = self.clock.monotonic(), 0
        landed = []
        for info in self.landing.list(task.landing.path):
            landed.append(info)
            too_long = self.clock.monotonic() - began > self.limits.seconds
            if too_long or len(landed) > _MOST_LISTED:
                return LandedPlaces(why=f"more than {len(landed) - 1:,} objects landed")
        # Start-up time of the server: it knows how a task copies.
        from polynya.engine.commands.preview_records import PreviewReader

        reader = PreviewReader(self.landing, self.catalog, BatchLimits(), lambda *_: True)
        table = replace(reader.preview_table(dataset).table, done={})
        candidates = _candidates(task, dataset, landed, events)
        missing = {one.sequence: one for one in events}
        found: dict[str, LandedPlace] = {}
        looked_at = 0
        for part, is_load in candidates:
            if not missing:
                break
            size += part.size
            spent = self.clock.monotonic() - began
            if looked_at >= self.limits.files or (looked_at and size > self.limits.size_bytes):
                break
            if spent > self.limits.seconds:
                break
            looked_at += 1
            for batch in self._batches(task, table, part, is_load=is_load):
                for sequence, place in _places(batch, dataset, key, missing):
                    found[sequence] = place
                    missing.pop(sequence, None)
        found = {sequence: self._with_message(place) for sequence, place in found.items()}
        why = None
        if missing:
            why = "no file that is still there holds it"
            if looked_at < len(candidates):
                why = f"{looked_at} of {len(candidates)} files were looked through"
        return LandedPlaces(found, looked_at, len(candidates), why)

    def _batches(
        self, task: StorageTask, table: KnownTable, part: FilePart, *, is_load: bool
    ) -> Iterator[DatasetBatch]:
        """All records of one file for the table."""
        # Start-up time: the readers of all formats.
        from polynya.formats.registry import format_of

        while True:
            request = ReadRequest(
                self.landing,
                (part,),
                {table.source: table},
                BatchLimits(),
                load=is_load,
                only=table.source if rules_of(task.landing.format).shares_files else None,
            )
            read = format_of(task).read(request)
            batch = read.datasets.get(table.source)
            progress = batch.files.get(part.path) if batch is not None else None
            if batch is not None:
                yield batch
            if progress is None or progress.complete or progress.records <= part.start:
                return
            part = replace(part, start=progress.records)

    def _with_message(self, place: LandedPlace) -> LandedPlace:
        """The place with that of its message, where the object is a landed batch of a stream."""
        if not is_landed_batch(place.file):
            return place
        try:
            with landed_file(self.landing, place.file, "parquet") as file:
                footer, opened = opened_batch(file, place.file)
                messages = Messages.of(place.file, footer, opened)
            if footer.counts.records == len(messages) > place.number:
                return replace(place, message=messages.place(place.number))
        except (UnreadableFileError, OSError, KeyError):
            pass
        return place


def _candidates(
    task: StorageTask,
    dataset: ResolvedDataset,
    landed: Sequence[ObjectInfo],
    events: Sequence[SoughtEvent],
) -> list[tuple[FilePart, bool]]:
    """The files that may hold the events, the likeliest first, each with whether it is a load."""
    # Start-up time: the readers of all formats.
    from polynya.formats.registry import format_of

    rules, reads = rules_of(task.landing.format), format_of(task)
    files: Sequence[ObjectInfo] = landed
    if rules.shares_files:
        dataset = ledger_dataset(task)
    elif rules.finds_tables:
        files = reads.tables(landed).tables.get(dataset.landing.source or dataset.name, ())
    first = reads.unread(files, {}, dataset)
    parts = [(part, first.load) for part in first.files]
    if first.load:
        read = {one.path: one.read(0, complete=True) for one in first.files}
        parts += [(part, False) for part in reads.unread(files, read, dataset).files]
    ordered = bool(dataset.events.sequence_by)
    is_stream = task.landing.format == STREAM.name
    named = {
        name
        for one in events
        if is_stream and (name := _batch_of(one, ordered=ordered)) is not None
    }
    if named and len(named) == len(events):
        return [(part, load) for part, load in parts if part.path.rpartition("/")[2] in named]
    written = {one.path: one.written for one in landed}
    loads = any(not one.sequence for one in events)
    times = [one.copied_at.timestamp() for one in events if one.copied_at is not None]
    return sorted(
        ((part, load) for part, load in parts if loads or not load),
        key=lambda one: _distance(written.get(one[0].path), times),
    )


def _batch_of(event: SoughtEvent, *, ordered: bool) -> str | None:
    """The landed batch of a stream that the place of an event names; `ordered`: by its columns."""
    for place in (event.position, None if ordered else event.sequence):
        if place is not None and len(place) == _OWN_PLACE_DIGITS and place.isdecimal():
            return batch_name(int(place[:20]))
    return None


def _distance(written: float | None, times: Sequence[float]) -> float:
    """How long before the next of the copies a file had landed; late ones come last."""
    if written is None or not times:
        return 0.0
    before = [at - written for at in times if at + _SLACK_SECONDS >= written]
    return min((abs(one) for one in before), default=float("inf"))


def _places(
    batch: DatasetBatch,
    dataset: ResolvedDataset,
    key: Mapping[str, pa.Array],
    missing: Mapping[str, SoughtEvent],
) -> Iterator[tuple[str, LandedPlace]]:
    """The events of the record in a batch, each with its place."""
    rows = batch.rows
    places = pc.binary_join_element_wise(
        pc.fill_null(rows["__ci"], ""), pc.fill_null(rows["__tail"], ""), ""
    )
    rows = rows.filter(pc.is_in(places, value_set=pa.array(list(missing), pa.string())))
    names = [dataset.mapping.of_source((name,)) for name in key]
    for row in rows.to_pylist():
        same = all(
            not of_source or _text(row.get(of_source[0])) == _text(value[0].as_py())
            for of_source, value in zip(names, key.values(), strict=True)
        )
        if same:
            sequence = f"{row['__ci'] or ''}{row['__tail'] or ''}"
            place: tuple[str, int] = (row["__file"], row["__offset"])
            if batch.place_of is not None:
                place = batch.place_of(*place)
            yield sequence, LandedPlace(*place)


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
