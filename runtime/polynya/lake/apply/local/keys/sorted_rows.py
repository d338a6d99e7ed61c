"""Rows sorted by their key, and a search for many keys at once.

Keys are compared exactly, column by column, in the order of Arrow. All keys take the steps of a
binary search together, so that a step is a few Arrow kernels, whatever the type of a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Compare = Callable[[Any, Any], Any]
_INT = pa.int32()
_ONE = pa.scalar(1, _INT)


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows sorted by `keys`, columns without a NULL, and what is known of each row."""

    keys: tuple[pa.Array, ...]
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.keys[0])

    @classmethod
    def of(cls, keys: Sequence[pa.Array], place: str) -> SortedRows:
        """Sort rows of which nothing is known but their number as `place`, int32.

        Rows of one key stay in their order.
        """
        order = sorting(keys)
        rows = pa.RecordBatch.from_arrays([order.cast(_INT)], [place])
        return cls(tuple(key.take(order) for key in keys), rows)

    def matches(self, wanted: SortedRows) -> pa.Table:
        """Pairs of a row here and a wanted one with the same key: the columns of both.

        A key may have several rows here, but only one in `wanted`. Both have keys of the same
        types.
        """
        wanted = wanted._between(self)
        first = self._bound(wanted.keys, pc.less)
        hits = pc.indices_nonzero(self._is_at(first, wanted.keys))
        keys, first = [key.take(hits) for key in wanted.keys], first.take(hits)
        given = wanted.rows.take(hits)
        if pc.any(self._is_at(pc.add(first, _ONE), keys)).as_py():
            run, first = _each(first, pc.subtract(self._bound(keys, pc.less_equal), first))
            given = given.take(run)
        found = self.rows.take(first)
        names = [*given.schema.names, *found.schema.names]
        return pa.Table.from_arrays([*given.columns, *found.columns], names)

    def _between(self, other: SortedRows) -> SortedRows:
        """Those rows whose key is neither before the first nor after the last of `other`."""
        if not len(self) or not len(other):
            return self._slice(0, 0)
        start = self._bound([key[:1] for key in other.keys], pc.less)[0].as_py()
        end = self._bound([key[-1:] for key in other.keys], pc.less_equal)[0].as_py()
        return self._slice(start, end)

    def _slice(self, start: int, end: int) -> SortedRows:
        keys = tuple(key[start:end] for key in self.keys)
        return SortedRows(keys, self.rows.slice(start, end - start))

    def _bound(self, keys: Sequence[pa.Array], compare: Compare) -> pa.Array:
        """For each key, how many rows are before it (`less`), or not after it (`less_equal`)."""
        at = pa.repeat(pa.scalar(0, _INT), len(keys[0]))
        if not len(self) or not len(at):
            return at
        # What is looked for is at least `at`, and at most `length` more.
        length = len(self)
        while length > 1:
            half = length // 2
            middle = pc.add(at, pa.scalar(half, _INT))
            at = pc.if_else(self._is(compare, pc.subtract(middle, _ONE), keys), middle, at)
            length -= half
        return pc.add(at, self._is(compare, at, keys).cast(_INT))

    def _is(self, compare: Compare, at: pa.Array, keys: Sequence[pa.Array]) -> pa.Array:
        """Whether the row at each place is less than a key; or equal, if `compare` says so."""
        last = len(keys) - 1
        here = self._taken(last, at)
        found = compare(here, keys[last])
        for column in range(last - 1, -1, -1):
            here = self._taken(column, at)
            tied = pc.and_(pc.equal(here, keys[column]), found)
            found = pc.or_(pc.less(here, keys[column]), tied)
        return found

    def _is_at(self, at: pa.Array, keys: Sequence[pa.Array]) -> pa.Array:
        """Whether the row at each place, which may be that after the last, has a key."""
        last = pa.scalar(len(self) - 1, _INT)
        found = pc.less_equal(at, last)
        if not len(self):
            return found
        there = pc.min_element_wise(at, last)
        for column, key in enumerate(keys):
            found = pc.and_(found, pc.equal(self._taken(column, there), key))
        return found

    def _taken(self, column: int, at: pa.Array) -> pa.Array:
        return pc.take(self.keys[column], at, boundscheck=False)


def count_within(values: pa.Array, low: object, high: object) -> int:
    """How many of some sorted values are in a range, its ends included."""
    first = pc.search_sorted(values, pa.scalar(low, values.type), side="left")
    end = pc.search_sorted(values, pa.scalar(high, values.type), side="right")
    return int(end.as_py() - first.as_py())


def _each(first: pa.Array, sizes: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Every place of some runs of places, and before it the number of its run."""
    ends = pc.cumulative_sum(sizes)
    numbers = pa.array(range(len(first)), _INT)
    run = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, numbers))
    before = pc.subtract(pc.subtract(ends, sizes), first).take(run)
    return run, pc.subtract(pa.array(range(len(run)), _INT), before)


def sorting(keys: Sequence[pa.Array]) -> pa.Array:
    """The places of rows in the order of their keys, uint64."""
    if len(keys) == 1:
        return pc.sort_indices(keys[0])
    names = [str(number) for number in range(len(keys))]
    table = pa.Table.from_arrays(list(keys), names)
    return pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names])
