"""The fold of events in order without history, in memory.

Events in order are newer than every stored version of their record, and no two of a record share a
sequence. Where that does not hold, or the times of a record go backwards, there is no answer here.
Without history and with values that nothing inherits, the newest event of a record becomes its row
in Current, every delete a tombstone in Prior, and the row that was there goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.local.events import (
    DELETES,
    IN_CURRENT,
    NO,
    RECORD,
    TIME,
    Versions,
    figures,
    follows_on,
    operations,
    sequences,
    shifted,
)
from polynya.lake.apply.local.records import Records
from polynya.lake.fold.shape import Shape
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of each touched record, by its number: NULL or false where nothing is.

    `sequence` is its highest one, NULL where it is known to be older than every event; `start` its
    latest time of validity; `inserted` and `current` are of its row in Current.
    """

    sequence: pa.Array
    start: pa.Array
    inserted: pa.Array
    current: pa.Array

    @classmethod
    def of(cls, found: pa.Table, records: int) -> Stored:
        """Out of live versions with the columns `events.FOUND`."""
        grouped = (
            pa.table(
                {
                    "record": found.column(RECORD),
                    "sequence": sequences(found),
                    "start": found.column(h.FROM_TIMESTAMP),
                    "inserted": found.column(h.INSERTED_TIMESTAMP),
                    "current": found.column(IN_CURRENT),
                }
            )
            .group_by("record", use_threads=False)
            .aggregate(
                [("sequence", "max"), ("start", "max"), ("inserted", "min"), ("current", "any")]
            )
        )
        numbers = pa.array(range(records), pa.int32())
        at = pc.index_in(numbers, value_set=grouped.column("record").combine_chunks())
        sequence, start, inserted, current = (
            grouped.column(name).take(at).combine_chunks()
            for name in ("sequence_max", "start_max", "inserted_min", "current_any")
        )
        return cls(sequence, start, inserted, current.fill_null(NO))


def fold_latest(
    events: pa.Table, records: Records, found: pa.Table, shape: Shape, now: datetime
) -> Versions | None:
    """Versions that `events`, rows of Changes, make; None when they are not in order.

    Nor is there an answer where Current holds a delete or Prior something else.

    `found` are the live stored versions of their records, with the columns `events.FOUND`.
    """
    places = pa.table({"record": records.numbers, "sequence": sequences(events)})
    order = pc.sort_indices(places, sort_keys=[("record", "ascending"), ("sequence", "ascending")])
    events, places = events.take(order), places.take(order)
    record = places.column("record").combine_chunks()
    sequence = places.column("sequence").combine_chunks()
    time = events.column(h.TIMESTAMP).combine_chunks()
    stored = Stored.of(found, 1 + (pc.max(record).as_py() or 0))
    follows = follows_on(record)
    late = pc.greater_equal(stored.sequence.take(record), sequence)
    tied = pc.and_(follows, pc.equal(shifted(sequence), sequence))
    backwards = pc.and_(follows, pc.less(time, shifted(time)))
    deleted = pc.is_in(found.column(h.OPERATION), value_set=DELETES)
    other = pc.and_(
        found.column(h.OPERATION).is_valid(), pc.equal(deleted, found.column(IN_CURRENT))
    )
    if time.null_count or any(pc.any(one).as_py() for one in (late, tied, backwards, other)):
        return None
    marks = _Marks.of(events, record, follows, stored)
    written = pc.or_(marks.current, marks.deletes)
    rows = _rows(events, marks, shape, now).filter(written)
    counted = figures(
        shape,
        sent=events.column(h.OPERATION),
        fresh=time.is_valid(),
        deletes=marks.deletes,
        alive=marks.alive,
        raised=pc.and_(pc.greater(marks.start, time), written),
        current=marks.current,
        prior=marks.deletes,
        removed=pc.sum(found.column(IN_CURRENT)).as_py() or 0,
    )
    return Versions(rows, counted)


@dataclass(frozen=True, slots=True)
class _Marks:
    """What the events of a table are, one value each: all boolean but times and operations."""

    deletes: pa.Array
    alive: pa.Array
    current: pa.Array
    start: pa.Array
    inserted: pa.Array

    @classmethod
    def of(cls, events: pa.Table, record: pa.Array, follows: pa.Array, stored: Stored) -> _Marks:
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


def _rows(events: pa.Table, marks: _Marks, shape: Shape, now: datetime) -> pa.Table:
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
