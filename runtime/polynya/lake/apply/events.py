"""What both folds in memory share: columns, order, operations, figures."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.fold.shape import Shape
from polynya.lake.fold.stored import ApplyFigures
from polynya.model import headers as h

#: Of a row that is folded: the number of its record (`records.Records`).
RECORD = "hdr__record"
#: Of a stored version: whether it is in Current, the number of its data file, its position there,
#: and both as one number (`deletes.FILE_STEP`).
IN_CURRENT, FILE, POS, PLACE = "hdr__in_current", "hdr__file", "hdr__pos", "hdr__place"

TIME = pa.timestamp("us", "UTC")
NO = pa.scalar(value=False)
DELETES = pa.array(["D", "d"])
#: What is known of every stored version that was found; a column that nobody needs is NULL.
FOUND = pa.schema(
    {
        RECORD: pa.int32(),
        FILE: pa.int32(),
        POS: pa.int64(),
        PLACE: pa.int64(),
        IN_CURRENT: pa.bool_(),
        h.CHANGE_IDENTIFIER: pa.string(),
        h.SEQUENCE_TAIL: pa.string(),
        h.SOURCE_POSITION: pa.string(),
        h.OPERATION: pa.string(),
        h.TIMESTAMP: TIME,
        h.FROM_TIMESTAMP: TIME,
        h.TO_TIMESTAMP: TIME,
        h.INSERTED_TIMESTAMP: TIME,
        h.MODIFIED_TIMESTAMP: TIME,
        h.WAS_CURRENT_FROM: TIME,
        h.WAS_CURRENT_TO: TIME,
        h.UNSENT: pa.string(),
        h.OLD_KEY: pa.string(),
    }
)


@dataclass(frozen=True, slots=True)
class Versions:
    """Rows of the internal table that are written, and the figures of the apply."""

    rows: pa.Table
    figures: ApplyFigures


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
    missing, told = pc.invert(alive), pc.and_(fresh, pa.scalar(shape.tells_operations))
    conditions = {
        "events": fresh,
        "current": current,
        "prior": prior,
        "raised": raised,
        "insert_of_existing": pc.and_(pc.and_(pc.equal(sent, "I"), alive), told),
        "update_of_missing": pc.and_(pc.and_(pc.equal(sent, "U"), missing), told),
        "delete_of_missing": pc.and_(pc.and_(deletes, missing), fresh),
    }
    counted = {name: pc.sum(one).as_py() or 0 for name, one in conditions.items()}
    return ApplyFigures.of({**counted, "removed": removed})
