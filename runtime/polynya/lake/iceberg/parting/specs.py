"""Partition specs of a table, and how rows in Arrow are parted by one.

Changes, states and all else that is found by `PARTITION` alone are written with the spec that
tables are made with. Current and Prior are written with the newest one, which may part them by
more columns (docs/adr/0032-partitioning-and-sorting.md). What Iceberg's Java side does for Spark,
`Parting` does for rows in Arrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.files import Slot
from polynya.lake.iceberg.parting.values import NULL, json_values
from polynya.model.contract.headers import PARTITION, Partition

#: Partitions whose files are written with the newest spec.
LAID_OUT: Final = frozenset({str(Partition.CURRENT), str(Partition.PRIOR)})


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a spec, as Iceberg's specification writes it in JSON."""

    number: int
    source: int
    transform: str
    name: str


@dataclass(frozen=True, slots=True)
class Spec:
    """A partition spec: its id, and its fields in their order."""

    number: int
    fields: tuple[PartitionField, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """A spec out of its JSON."""
        told = json.loads(text)
        fields = (
            PartitionField(one["field-id"], one["source-id"], one["transform"], one["name"])
            for one in told["fields"]
        )
        return cls(told["spec-id"], tuple(fields))

    @property
    def is_plain(self) -> bool:
        """Whether it has one field only, which is that of `PARTITION`."""
        return len(self.fields) == 1

    def slot(self, values: str) -> Slot:
        """The partition of Iceberg with these values, a list in JSON."""
        at = next(n for n, one in enumerate(self.fields) if one.name == PARTITION)
        return Slot(str(json.loads(values)[at]), self.number, values)


@dataclass(frozen=True, slots=True)
class Parting:
    """How rows in Arrow are parted by a spec; `sources` are column and type of each field."""

    spec: Spec
    sources: tuple[tuple[str, str], ...]

    @classmethod
    def by(cls, spec: Spec, columns: Sequence[Mapping[str, Any]]) -> Self:
        """By a spec of a table with these columns, in JSON as Iceberg's specification has them."""
        known = {one["id"]: one for one in columns}
        found = (known[one.source] for one in spec.fields)
        return cls(spec, tuple((one["name"], str(one["type"])) for one in found))

    def parts(self, rows: pa.Table) -> Iterator[tuple[Slot, pa.Table]]:
        """The rows of each partition of Iceberg, in the order that they have in `rows`.

        Their columns are as `as_stored` gives them; one that is not there is NULL.
        """
        codes, slots = self.numbered(rows)
        ordered = pc.sort_indices(codes)
        at = 0
        for number, count in _counted(codes.take(ordered)):
            yield slots[number], rows.take(ordered.slice(at, count))
            at += count

    def numbered(self, rows: pa.Table) -> tuple[pa.Array, list[Slot]]:
        """Partitions of Iceberg, and the number of its partition for each row."""
        each = [self._values(rows, number) for number in range(len(self.spec.fields))]
        codes = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
        for values in each:
            codes = pc.add(pc.multiply(codes, len(values.dictionary)), values.indices)
            # Small again, however many columns there are.
            codes = codes.dictionary_encode().indices.cast(pa.int64())
        # Numbers are given in the order in which they are met.
        firsts = pc.index_in(pa.arange(0, len(pc.unique(codes))), value_set=codes).to_pylist()
        slots = [
            self.spec.slot(f"[{','.join(values[first].as_py() for values in each)}]")
            for first in firsts
        ]
        return codes, slots

    def _values(self, rows: pa.Table, number: int) -> pa.DictionaryArray:
        name, kind = self.sources[number]
        if name not in rows.column_names:
            return pa.repeat(pa.scalar(NULL), rows.num_rows).dictionary_encode()
        column = rows.column(name).combine_chunks()
        return json_values(column, self.spec.fields[number].transform, kind)


def _counted(ordered: pa.Array) -> Iterator[tuple[int, int]]:
    """Each number of ascending ones, and how often it is there."""
    for one in pc.value_counts(ordered).to_pylist():
        yield one["values"], one["counts"]
