"""Rows in memory: their columns, and the numbers of the records that they belong to.

Each key that an event touches has a number, and stored versions are looked up by their key. Keys
are compared exactly, column by column. A key of several columns becomes one number step by step, so
that no hash can mix two records.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.key_index_file import SortedRows
from polynya.model import headers as h
from polynya.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

#: Of a row that is folded: the number of its record (`TouchedRecords`).
RECORD = "hdr__record"
#: Of a stored version: whether it is in Current, the number of its data file, its position there,
#: and both as one number (`deletes.FILE_STEP`).
IN_CURRENT, FILE, POS, PLACE = "hdr__in_current", "hdr__file", "hdr__pos", "hdr__place"

TIME = pa.timestamp("us", "UTC")
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
_EXACT = (BIGINT, BINARY, BOOLEAN, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ)


def is_exact(kind: DataType) -> bool:
    """Whether values of a type are equal here when they are for Spark; of floats some are not."""
    return kind in _EXACT or isinstance(kind, Decimal)


class TouchedRecords:
    """The records that some rows touch. `keys` are the key columns of those rows."""

    def __init__(self, keys: Sequence[pa.Array]) -> None:
        self._keys = keys
        self._values: list[pa.Array] = []
        self._pairs: list[pa.Array] = []
        self._ordered: dict[int, pa.Array] = {}
        for column in keys:
            self._values.append(_distinct(_whole(column)))
        numbers = _places_among(keys[0], self._values[0])
        for index, column in enumerate(keys[1:], 1):
            pairs = self._paired(numbers, column, index)
            self._pairs.append(_distinct(pairs))
            numbers = _places_among(pairs, self._pairs[-1])
        #: Number of the record of each row, int32.
        self.numbers: pa.Array = numbers

    def of(self, keys: Sequence[pa.Array]) -> pa.Array:
        """Number of the record of other rows, int32; NULL for a record that is not known."""
        numbers = _looked_up(keys[0], self._values[0])
        for index, column in enumerate(keys[1:], 1):
            pairs = self._paired(numbers, column, index)
            numbers = _looked_up(pairs, self._pairs[index - 1])
        return numbers

    def places(self, numbers: pa.Array) -> pa.Array:
        """Where each record is among other rows, by the numbers that `of` gives these, int32.

        NULL for a record that is not among them; each is there once at most.
        """
        places = pc.inverse_permutation(_whole(numbers), max_index=self.count - 1)
        return places.slice(0, self.count)

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self._pairs[-1] if self._pairs else self._values[0])

    def keys(self) -> list[pa.Array]:
        """The keys of each record once, in the order of their numbers."""
        keys = [_whole(column) for column in self._keys]
        if self.count == len(self.numbers):
            return keys
        numbers = pa.arange(0, self.count).cast(pa.int32())
        first = pc.index_in(numbers, value_set=_whole(self.numbers))
        return [column.take(first) for column in keys]

    def has_nulls(self, column: int) -> bool:
        """Whether NULL is among the values of one key column."""
        return bool(self._values[column].null_count)

    def within(self, column: int, low: object, high: object) -> int:
        """How many values of one key column are in a range, its ends included."""
        if column not in self._ordered:
            values = self._values[column]
            self._ordered[column] = values.take(pc.sort_indices(values)).drop_null()
        return count_within(self._ordered[column], low, high)

    def by_key(self, names: Sequence[str]) -> SortedRows | None:
        """Every record once, by key, with its number as RECORD; None where a key is NULL.

        The rows also have the key columns, under their `names`.
        """
        if any(column.null_count for column in self._keys):
            return None
        index = SortedRows.of(self.keys(), RECORD)
        columns = [*index.rows.columns, *index.keys]
        return SortedRows(index.keys, pa.RecordBatch.from_arrays(columns, [RECORD, *names]))

    def _paired(self, numbers: pa.Array, column: pa.Array, index: int) -> pa.Array:
        values = self._values[index]
        indices = _looked_up(column, values).cast(pa.int64())
        return pc.add(pc.multiply(numbers.cast(pa.int64()), len(values)), indices)


def _rises(values: pa.Array) -> bool:
    """Whether each value is greater than the one before it, so that none is there twice."""
    if values.null_count:
        return False
    greater = pc.less(values.slice(0, max(0, len(values) - 1)), values.slice(1))
    return bool(pc.all(greater, min_count=0).as_py())


def _distinct(values: pa.Array) -> pa.Array:
    """The distinct values, in the order of their first rows.

    To see that values rise takes a hundredth of the time of a hash table of them.
    """
    return values if _rises(values) else pc.unique(values)


def _looked_up(rows: pa.Array | pa.ChunkedArray, distinct: pa.Array) -> pa.Array:
    """Where the value of each row is among distinct ones, int32; NULL for one that is not there.

    As many rows as there are values are mostly in about the same order. Then a binary search of a
    million takes a third of the time that a hash table takes, which does not fit into the cache.
    """
    rows = _whole(rows)
    many = len(rows) > 2 * len(distinct) or not len(distinct)
    if many or pa.types.is_decimal(rows.type) or not _rises(distinct):
        return pc.index_in(rows, value_set=distinct)
    last = pa.scalar(len(distinct) - 1, pa.uint64())
    at = pc.min_element_wise(pc.search_sorted(distinct, rows), last)
    same = pc.equal(distinct.take(at), rows)
    return pc.if_else(same, at, pa.scalar(None, pa.uint64())).cast(pa.int32())


def _places_among(rows: pa.Array, distinct: pa.Array) -> pa.Array:
    """Where the value of each row is among the distinct ones, which are in the order of the rows.

    int32. To look up a million values takes longer than to make them distinct.
    """
    if len(distinct) == len(rows):
        return pa.arange(0, len(rows)).cast(pa.int32())
    return _looked_up(rows, distinct)


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def count_within(values: pa.Array, low: object, high: object) -> int:
    """How many of some sorted values are in a range, its ends included."""
    first = pc.search_sorted(values, pa.scalar(low, values.type), side="left")
    end = pc.search_sorted(values, pa.scalar(high, values.type), side="right")
    return int(end.as_py() - first.as_py())
