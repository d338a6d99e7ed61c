"""How much is taken of what was read of partitions, and where that cuts them: pure.

What was read are the columns of a landed batch, and perhaps the column `cut`. Who reads may leave
the content of a large record out and say there how many bytes it has: it is not taken, nor is what
follows in its partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.landed.batch import SCHEMAS, VALUE
from polynya.streaming.kafka.plan import Partition, Reads

TOPIC, PARTITION, OFFSET = "hdr__kafka_topic", "hdr__kafka_partition", "hdr__kafka_offset"
KEY, HEADERS, TIMESTAMP = "hdr__kafka_key", "hdr__kafka_headers", "hdr__kafka_timestamp"
#: Bytes of the first record of a partition that was not taken, whose row has no content. NULL for a
#: record.
CUT: Final = "cut"
#: What a record holds, and what may be large of it.
CONTENT: Final = (KEY, HEADERS, VALUE)
#: The columns of what was taken.
MARKED: Final = SCHEMAS["kafka"].append(pa.field(CUT, pa.int64()))


def budgets(reads: Reads, max_bytes: int) -> dict[Partition, int]:
    """How many bytes each partition may have: in proportion to what it has to give."""
    all_of_them = max(1, reads.offsets)
    return {
        place: max(1, max_bytes * (one.end - one.begin) // all_of_them)
        for place, one in reads.ranges.items()
    }


def sizes(rows: pa.Table | pa.RecordBatch) -> Any:
    """Bytes of key, headers and value of each record, as they are landed."""
    parts = [pc.binary_length(rows.column(name)) for name in CONTENT]
    filled = [pc.fill_null(part, 0).cast(pa.int64()) for part in parts]
    return pc.add(pc.add(filled[0], filled[1]), filled[2])


def bounded(
    pieces: Iterable[pa.RecordBatch], most: Mapping[Partition, int]
) -> Iterator[pa.RecordBatch]:
    """The records of one partition until their bytes reach its limit, at least one.

    A row without content follows when it was cut: the first that was not taken, with its bytes in
    the column `cut`.
    """
    used = 0
    for piece in pieces:
        if not piece.num_rows:
            continue
        limit = most[_partition_of(piece)]
        size = sizes(piece)
        after = pc.add(pc.cumulative_sum(size), used)
        before = pc.subtract(after, size)
        count = int(pc.sum(pc.less(before, max(1, limit))).as_py())
        count = min(count, _with_content(piece))
        if count:
            yield _taken(piece.slice(0, count))
            used = int(after[count - 1].as_py())
        if count < piece.num_rows:
            yield _left(piece.slice(count, 1), size[count])
            return


def all_bounded(rows: pa.Table, most: Mapping[Partition, int]) -> pa.Table:
    """The same for several partitions, one after the other in a table."""
    pieces = (piece for batch in rows.to_batches() if batch.num_rows for piece in _parts(batch))
    found = [one for _, own in groupby(pieces, key=_partition_of) for one in bounded(own, most)]
    return pa.Table.from_batches(found, MARKED)


def cuts(rows: pa.Table) -> dict[Partition, int]:
    """The first offset that was not taken, of each partition that was not read to its end."""
    left = rows.filter(pc.is_valid(rows[CUT]))
    places = zip(left[TOPIC].to_pylist(), left[PARTITION].to_pylist(), strict=True)
    return dict(zip(places, left[OFFSET].to_pylist(), strict=True))


def records(rows: pa.Table) -> pa.Table:
    """The records that were taken, in the columns of a landed batch."""
    if rows[CUT].null_count < rows.num_rows:
        rows = rows.filter(pc.is_null(rows[CUT]))
    return rows.drop_columns([CUT]).cast(SCHEMAS["kafka"])


def largest(rows: pa.Table) -> int:
    """Bytes of the largest record, be it one that was not taken; 0 of none."""
    return max(pc.max(sizes(rows)).as_py() or 0, pc.max(rows[CUT]).as_py() or 0)


def _partition_of(piece: pa.RecordBatch) -> Partition:
    return piece.column(TOPIC)[0].as_py(), piece.column(PARTITION)[0].as_py()


def _parts(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The records of each partition: a task that reads several may have put some together."""
    begin = 0
    while begin < rows.num_rows:
        rest = rows.slice(begin)
        topic, number = _partition_of(rest)
        own = pc.and_(pc.equal(rest.column(TOPIC), topic), pc.equal(rest.column(PARTITION), number))
        other = pc.index(own, value=False).as_py()
        count = rest.num_rows if other < 0 else other
        yield rest.slice(0, count)
        begin += count


def _with_content(piece: pa.RecordBatch) -> int:
    """How many records come before the first whose content was left out."""
    if CUT not in piece.schema.names:
        return int(piece.num_rows)
    first = pc.index(pc.is_valid(piece.column(CUT)), value=True).as_py()
    return int(piece.num_rows) if first < 0 else int(first)


def _taken(piece: pa.RecordBatch) -> pa.RecordBatch:
    columns = [piece.column(field.name).cast(field.type) for field in SCHEMAS["kafka"]]
    unmarked = pa.nulls(piece.num_rows, pa.int64())
    return pa.RecordBatch.from_arrays([*columns, unmarked], schema=MARKED)


def _left(piece: pa.RecordBatch, size: pa.Scalar) -> pa.RecordBatch:
    """One row without key, headers and value, which may be large."""
    told = piece.column(CUT)[0] if CUT in piece.schema.names else None
    row = {name: piece.column(name)[0].as_py() for name in (TOPIC, PARTITION, OFFSET)}
    row[CUT] = size.as_py() if told is None or not told.is_valid else told.as_py()
    return pa.RecordBatch.from_pylist([row], MARKED)
