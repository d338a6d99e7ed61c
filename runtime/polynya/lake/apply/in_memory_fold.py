"""The fold of events in order, in memory: with history and without.

Events in order are newer than every stored version of their record, and no two events of a record
share a sequence. Where that does not hold, or the times of a record go backwards, the result is
None.

With history every version stays, and the stored one ends. The rows of a record are its newest
stored version, if it has one, and its pending events. Sorted, they are a chain in which each
version ends where the next one begins.

Without history, and with values that nothing inherits, the newest event of a record becomes its row
in Current, every delete a tombstone in Prior, and the row that was there goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.records import DELETES, IN_CURRENT, RECORD, TIME, TouchedRecords
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.stored import ApplyFigures
from polynya.model import headers as h
from polynya.model.headers import Partition

NO = pa.scalar(value=False)
#: Of a row: whether it is stored, and its place in the order of events.
_OWN, _SEQUENCE = "hdr__own", "hdr__sequence"
#: What a version keeps of its event.
_EVENT_HEADERS = (
    h.CHANGE_IDENTIFIER,
    h.SEQUENCE_TAIL,
    h.SOURCE_POSITION,
    h.TIMESTAMP,
    h.UNSENT,
    h.OLD_KEY,
)


@dataclass(frozen=True, slots=True)
class Versions:
    """Rows of the internal table that are written, and the figures of the apply."""

    rows: pa.Table
    figures: ApplyFigures


def fold_chains(
    events: pa.Table, records: TouchedRecords, matches: pa.Table, shape: Shape, now: datetime
) -> Versions | None:
    """Versions that `events`, rows of Changes, make; None when they are not in order.

    `matches` are the newest live versions of their records, with the columns
    `records.FOUND` and all of their data.
    """
    own = pa.repeat(pa.scalar(value=True), matches.num_rows)
    stored = matches.append_column(_OWN, own)
    fresh = events.append_column(RECORD, records.numbers)
    rows = pa.concat_tables([stored, fresh], promote_options="default")
    rows = rows.append_column(_SEQUENCE, sequences(rows))
    order = [(RECORD, "ascending"), (_SEQUENCE, "ascending")]
    chains = _Chains.of(rows.take(pc.sort_indices(rows, sort_keys=order)).combine_chunks())
    if chains is None:
        return None
    return Versions(_chained_rows(chains, shape, now), chains.figures(shape))


@dataclass(frozen=True, slots=True)
class _Chains:
    """Sorted rows of all records, and one value for each of what they are.

    `own` are stored versions, and `first` is the index of the first row of the record.
    """

    rows: pa.Table
    own: pa.Array
    first: pa.Array
    followed: pa.Array
    deletes: pa.Array
    alive: pa.Array
    start: pa.Array

    @classmethod
    def of(cls, rows: pa.Table) -> _Chains | None:
        """None where rows are not in order."""
        own = column(rows, _OWN).fill_null(NO)
        follows = follows_on(column(rows, RECORD))
        sequence, time = column(rows, _SEQUENCE), column(rows, h.TIMESTAMP)
        tied = pc.and_(follows, pc.equal(shifted(sequence), sequence))
        late = pc.and_(follows, own)
        events = pc.and_(follows, pc.invert(pc.fill_null(shifted(own), NO)))
        backwards = pc.and_(events, pc.less(time, shifted(time)))
        start = pc.if_else(own, column(rows, h.FROM_TIMESTAMP), time)
        if start.null_count or any(pc.any(mask).as_py() for mask in (tied, late, backwards)):
            return None
        index = pa.arange(0, len(rows))
        first = pc.fill_null_forward(pc.if_else(follows, pa.scalar(None, pa.int64()), index))
        begin = start.take(first)
        deletes = pc.is_in(column(rows, h.OPERATION), value_set=DELETES)
        return cls(
            rows=rows,
            own=own,
            first=first,
            followed=pa.concat_arrays([follows[1:], pa.array([False])]),
            deletes=deletes,
            alive=pc.and_(follows, pc.invert(pc.fill_null(shifted(deletes), NO))),
            start=pc.if_else(pc.greater(begin, start), begin, start),
        )

    def current(self, shape: Shape) -> pa.Array:
        """Which versions belong to Current."""
        last = pc.invert(self.followed)
        return last if shape.soft_delete else pc.and_(last, pc.invert(self.deletes))

    def shown(self) -> pa.Array:
        """Index of the row whose values each version shows: a delete those that were before it."""
        index = pa.arange(0, len(self.rows))
        silent = pc.and_(self.deletes, pc.invert(self.own))
        source = pc.fill_null_forward(pc.if_else(silent, pa.scalar(None, pa.int64()), index))
        return pc.if_else(pc.less(source, self.first), pa.scalar(None, pa.int64()), source)

    def figures(self, shape: Shape) -> Any:
        """What the apply counts."""
        fresh, current = pc.invert(self.own), self.current(shape)
        return figures(
            shape,
            sent=column(self.rows, h.OPERATION),
            fresh=fresh,
            deletes=self.deletes,
            alive=self.alive,
            raised=pc.and_(fresh, pc.greater(self.start, column(self.rows, h.TIMESTAMP))),
            current=current,
            prior=pc.invert(current),
            removed=pc.sum(self.own).as_py() or 0,
        )


def _chained_rows(chains: _Chains, shape: Shape, now: datetime) -> pa.Table:
    """Each version as a row of the internal table."""
    rows, own, current = chains.rows, chains.own, chains.current(shape)
    engine, nothing = pa.scalar(now, TIME), pa.scalar(None, TIME)
    sent = column(rows, h.OPERATION)
    operation = pc.if_else(own, sent, operations(sent, chains.deletes, chains.alive))
    inserted = pc.coalesce(
        column(rows, h.INSERTED_TIMESTAMP).take(chains.first),
        pc.if_else(pc.equal(operation, "L"), chains.start, engine),
    )
    entered = pc.coalesce(column(rows, h.WAS_CURRENT_FROM), column(rows, h.MODIFIED_TIMESTAMP))
    was_prior = pc.and_(own, pc.invert(column(rows, IN_CURRENT).fill_null(NO)))
    left = pc.if_else(was_prior, pc.coalesce(column(rows, h.WAS_CURRENT_TO), engine), engine)
    ends = pc.if_else(chains.followed, _next(chains.start), nothing)
    hashes = column(rows, h.KEY_HASH)
    made = {
        h.PARTITION: pc.if_else(current, str(Partition.CURRENT), str(Partition.PRIOR)),
        # A stored version comes first and has an event after it.
        h.KEY_HASH: pc.if_else(own, _next(hashes), hashes),
        h.OPERATION: operation,
        h.FROM_TIMESTAMP: chains.start,
        h.TO_TIMESTAMP: ends,
        h.INSERTED_TIMESTAMP: pc.if_else(current, inserted, nothing),
        h.MODIFIED_TIMESTAMP: pc.if_else(current, engine, nothing),
        h.WAS_CURRENT_FROM: pc.if_else(own, pc.coalesce(entered, engine), engine),
        h.WAS_CURRENT_TO: pc.if_else(current, nothing, left),
        **{name: rows.column(name) for name in (*_EVENT_HEADERS, *shape.keys)},
    }
    shown = chains.shown()
    return pa.table({**made, **{name: rows.column(name).take(shown) for name in shape.values}})


def column(rows: pa.Table, name: str) -> pa.Array:
    """One column in one piece."""
    return rows.column(name).combine_chunks()


def _next(values: pa.Array) -> pa.Array:
    """Each value one place earlier; the last is NULL."""
    return pa.concat_arrays([values[1:], pa.nulls(min(1, len(values)), values.type)])


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """What is stored of each touched record, by its number: NULL or false where nothing is.

    `sequence` is its highest one, NULL where it is known to be older than every event; `start` its
    latest time of validity; `inserted` and `current` are of its row in Current.
    """

    sequence: pa.Array
    start: pa.Array
    inserted: pa.Array
    current: pa.Array

    @classmethod
    def of(cls, matches: pa.Table, records: int) -> StoredVersions:
        """Out of live versions with the columns `records.FOUND`."""
        record = matches.column(RECORD).combine_chunks()
        known = pa.table(
            {
                "record": record,
                "sequence": sequences(matches),
                "start": matches.column(h.FROM_TIMESTAMP),
                "inserted": matches.column(h.INSERTED_TIMESTAMP),
                "current": matches.column(IN_CURRENT),
            }
        )
        if pc.count_distinct(record).as_py() < len(record):
            highest = {"sequence": "max", "start": "max", "inserted": "min", "current": "any"}
            grouped = known.group_by("record", use_threads=False).aggregate([*highest.items()])
            known = grouped.rename_columns(
                {f"{name}_{function}": name for name, function in highest.items()}
            )
        numbers = pa.arange(0, records).cast(pa.int32())
        at = pc.index_in(numbers, value_set=known.column("record").combine_chunks())
        sequence, start, inserted, current = (
            known.column(name).take(at).combine_chunks()
            for name in ("sequence", "start", "inserted", "current")
        )
        return cls(sequence, start, inserted, current.fill_null(NO))


def fold_latest(
    events: pa.Table, records: TouchedRecords, matches: pa.Table, shape: Shape, now: datetime
) -> Versions | None:
    """Versions that `events`, rows of Changes, make; None when they are not in order.

    Nor is there an answer where Current holds a delete or Prior something else.

    `matches` are the live stored versions of their records, with the columns `records.FOUND`.
    """
    places = pa.table({"record": records.numbers, "sequence": sequences(events)})
    if records.count < events.num_rows:
        by = [("record", "ascending"), ("sequence", "ascending")]
        order = pc.sort_indices(places, sort_keys=by)
        events, places = events.take(order), places.take(order)
    record = places.column("record").combine_chunks()
    sequence = places.column("sequence").combine_chunks()
    time = events.column(h.TIMESTAMP).combine_chunks()
    stored = StoredVersions.of(matches, 1 + (pc.max(record).as_py() or 0))
    follows = follows_on(record)
    late = pc.greater_equal(stored.sequence.take(record), sequence)
    tied = pc.and_(follows, pc.equal(shifted(sequence), sequence))
    backwards = pc.and_(follows, pc.less(time, shifted(time)))
    deleted = pc.is_in(matches.column(h.OPERATION), value_set=DELETES)
    other = pc.and_(
        matches.column(h.OPERATION).is_valid(), pc.equal(deleted, matches.column(IN_CURRENT))
    )
    if time.null_count or any(pc.any(mask).as_py() for mask in (late, tied, backwards, other)):
        return None
    marks = _Marks.of(events, record, follows, stored)
    written = pc.or_(marks.current, marks.deletes)
    rows = _latest_rows(events, marks, shape, now).filter(written)
    counted = figures(
        shape,
        sent=events.column(h.OPERATION),
        fresh=time.is_valid(),
        deletes=marks.deletes,
        alive=marks.alive,
        raised=pc.and_(pc.greater(marks.start, time), written),
        current=marks.current,
        prior=marks.deletes,
        removed=pc.sum(matches.column(IN_CURRENT)).as_py() or 0,
    )
    return Versions(rows, counted)


def newest_events(events: pa.Table, keys: Sequence[str], stored: pa.Table) -> pa.Table | None:
    """Of rows of Changes the newest one of each record whose stored versions are older.

    `stored` are all versions of the records with an event that may be late: they have the keys, and
    their place in the order of events. The result has any order, and is None where two events, or
    an event and a stored version, share a place.
    """
    if any(rows.column(h.CHANGE_IDENTIFIER).null_count for rows in (events, stored)):
        return None
    records = TouchedRecords([column(events, key) for key in keys])
    places = pa.table({RECORD: records.numbers, _SEQUENCE: sequences(events)})
    if records.count < events.num_rows:
        newest, tied = _newest(places)
        if tied:
            return None
        events, places = events.take(newest), places.take(newest)
    if not stored.num_rows:
        return events
    numbers = records.of([column(stored, key) for key in keys])
    known = pa.table({RECORD: numbers, _SEQUENCE: sequences(stored)})
    known = known.take(_newest(known)[0])
    at = pc.index_in(column(places, RECORD), value_set=column(known, RECORD))
    highest, sequence = column(known, _SEQUENCE).take(at), column(places, _SEQUENCE)
    if pc.any(pc.equal(highest, sequence)).as_py():
        return None
    return events.filter(pc.invert(pc.fill_null(pc.greater(highest, sequence), NO)))


def _newest(places: pa.Table) -> tuple[pa.Array, bool]:
    """Where the newest row of each record is, and whether two rows of one share their place."""
    by = [(name, "ascending") for name in places.column_names]
    order = pc.sort_indices(places, sort_keys=by)
    record, sequence = (column(places, name).take(order) for name in places.column_names)
    follows = follows_on(record)
    tied = pc.any(pc.and_(follows, pc.equal(shifted(sequence), sequence))).as_py()
    last = pc.invert(pa.concat_arrays([follows[1:], pa.array([False])]))
    return order.filter(last), bool(tied)


@dataclass(frozen=True, slots=True)
class _Marks:
    """What the events of a table are, one value each: all boolean but times and operations."""

    deletes: pa.Array
    alive: pa.Array
    current: pa.Array
    start: pa.Array
    inserted: pa.Array

    @classmethod
    def of(
        cls, events: pa.Table, record: pa.Array, follows: pa.Array, stored: StoredVersions
    ) -> _Marks:
        time = events.column(h.TIMESTAMP).combine_chunks()
        deletes = pc.is_in(events.column(h.OPERATION).combine_chunks(), value_set=DELETES)
        start = stored.start.take(record)
        last = pc.invert(pa.concat_arrays([follows[1:], pa.array([False])]))
        return cls(
            deletes=deletes,
            alive=pc.if_else(follows, pc.invert(shifted(deletes)), stored.current.take(record)),
            current=pc.and_(last, pc.invert(deletes)),
            start=pc.if_else(pc.fill_null(pc.greater(start, time), NO), start, time),
            inserted=stored.inserted.take(record),
        )


def _latest_rows(events: pa.Table, marks: _Marks, shape: Shape, now: datetime) -> pa.Table:
    """The version of each event as a row of the internal table."""
    sent = events.column(h.OPERATION).combine_chunks()
    operation = operations(sent, marks.deletes, marks.alive)
    engine = pa.scalar(now, TIME)
    first = pc.if_else(pc.equal(operation, "L"), marks.start, engine)
    inserted = pc.coalesce(marks.inserted, first)
    nothing = pa.scalar(None, TIME)
    part = pc.if_else(marks.current, str(Partition.CURRENT), str(Partition.PRIOR))
    made: dict[str, Any] = {
        h.PARTITION: part,
        h.OPERATION: operation,
        h.FROM_TIMESTAMP: marks.start,
        h.INSERTED_TIMESTAMP: pc.if_else(marks.current, inserted, nothing),
        h.MODIFIED_TIMESTAMP: pc.if_else(marks.current, engine, nothing),
        h.WAS_CURRENT_FROM: pa.repeat(engine, events.num_rows),
        h.WAS_CURRENT_TO: pc.if_else(marks.current, nothing, engine),
    }
    kept = (h.KEY_HASH, h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL, h.SOURCE_POSITION, h.TIMESTAMP)
    return pa.table({**made, **{name: events.column(name) for name in (*kept, *shape.data)}})


def sequences(rows: pa.Table) -> pa.ChunkedArray:
    """The place of rows of the internal table in the order of events, as one text."""
    tail = pc.fill_null(rows.column(h.SEQUENCE_TAIL), "")
    return pc.binary_join_element_wise(rows.column(h.CHANGE_IDENTIFIER), tail, "")


def shifted(values: pa.Array) -> pa.Array:
    """Each value one place later; the first is NULL."""
    return pa.concat_arrays([pa.nulls(min(1, len(values)), values.type), values[:-1]])


def follows_on(record: pa.Array) -> pa.Array:
    """Whether each row has the record of the row before it."""
    return pc.fill_null(pc.equal(record, shifted(record)), NO)


def operations(sent: pa.Array, deletes: pa.Array, alive: pa.Array) -> pa.Array:
    """Operation of each version: whether it inserts or updates depends on what is before it."""
    reloaded = pc.is_in(sent, value_set=pa.array(["i", "u"]))
    upsert = pc.if_else(reloaded, pc.if_else(alive, "u", "i"), pc.if_else(alive, "U", "I"))
    loaded = pc.and_(pc.equal(sent, "L"), pc.invert(alive))
    return pc.if_else(pc.or_(deletes, loaded), sent, upsert)


def figures(
    shape: Shape,
    *,
    sent: pa.Array,
    fresh: pa.Array,
    deletes: pa.Array,
    alive: pa.Array,
    raised: pa.Array,
    current: pa.Array,
    prior: pa.Array,
    removed: int,
) -> ApplyFigures:
    """What an apply counts: `fresh` are events, `current` and `prior` versions that it writes."""
    missing, tells_operations = pc.invert(alive), pc.and_(fresh, pa.scalar(shape.tells_operations))
    conditions = {
        "events": fresh,
        "current": current,
        "prior": prior,
        "inserts": pc.and_(fresh, pc.and_(pc.invert(deletes), missing)),
        "updates": pc.and_(fresh, pc.and_(pc.invert(deletes), alive)),
        "deletes": pc.and_(fresh, deletes),
        "raised": raised,
        "insert_of_existing": pc.and_(pc.and_(pc.equal(sent, "I"), alive), tells_operations),
        "update_of_missing": pc.and_(pc.and_(pc.equal(sent, "U"), missing), tells_operations),
        "delete_of_missing": pc.and_(pc.and_(deletes, missing), fresh),
    }
    counted = {name: pc.sum(condition).as_py() or 0 for name, condition in conditions.items()}
    return ApplyFigures.of({**counted, "removed": removed})
