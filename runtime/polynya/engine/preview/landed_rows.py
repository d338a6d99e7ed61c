"""The good rows of a batch, each as an event of its record."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from polynya.engine.preview.fold import Event
from polynya.engine.preview.seen import SeenRecord
from polynya.formats.batch import DatasetBatch
from polynya.model.contract.headers import ALL_BUT

#: How the place of an event is called where no column tells it.
PLACE: Final = "change_identifier"


@dataclass(frozen=True, slots=True)
class LandedRow:
    """One row: its values with the service columns of a batch, and its operation."""

    values: Mapping[str, Any]
    operation: str

    def key(self, keys: Sequence[str]) -> tuple[Any, ...]:
        """The values of the key columns."""
        return tuple(self.values.get(name) for name in keys)

    def event(self, keys: Sequence[str], data: Collection[str], ignored: Collection[str]) -> Event:
        """The row as a change of its record.

        `data` are the columns of the table, `ignored` those that an update leaves out as NULL, or
        `ALL_BUT` for all of them.
        """
        values = {name: self.values.get(name) for name in data}
        old = self.values.get("__old")
        moved = old is not None and bool(self.values["__unsent"])
        old_key = repr(tuple(old.get(name) for name in keys)) if old is not None else None
        return Event(
            key=repr(self.key(keys)),
            place=str(self.values["__ci"]) + (self.values["__tail"] or ""),
            operation=self.operation,
            values=values,
            position=self.values["__position"],
            unsent=self._unsent(values, ignored) - set(keys),
            old_key=old_key if moved else None,
        )

    def _unsent(self, values: Mapping[str, Any], ignored: Collection[str]) -> frozenset[str]:
        said = set(self.values["__unsent"] or ())
        unsent = set(values) - said if ALL_BUT in said else said & set(values)
        if self.operation == "U" and ignored:
            named = values if ALL_BUT in ignored else ignored
            unsent |= {name for name in named if name in values and values[name] is None}
        return frozenset(unsent)

    def record(self, keys: Sequence[str], sequence_by: Sequence[str]) -> SeenRecord:
        """The row as a record that somebody looks for in its file."""
        place = str(self.values["__ci"] or "").lstrip("0")
        order = {name: self.values.get(name) for name in sequence_by}
        return SeenRecord(
            file=str(self.values["__file"]),
            number=int(self.values["__offset"]) + 1,
            operation=self.operation,
            sequence=order or {PLACE: place or "0"},
            key=dict(zip(keys, self.key(keys), strict=True)),
        )


def landed_rows(
    batch: DatasetBatch, operations: Sequence[str], without: Collection[int]
) -> Iterator[LandedRow]:
    """The rows of a batch with their operations, but for those at some indexes."""
    columns = batch.rows.drop_columns(["__raw"])
    for index, values in enumerate(columns.to_pylist()):
        if index not in without:
            yield LandedRow(_with_maps(values, columns.schema), operations[index])


def _with_maps(values: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """The values with their maps as dictionaries: Arrow gives lists of pairs."""
    return {
        one.name: dict(values[one.name])
        if pa.types.is_map(one.type) and values[one.name] is not None
        else values[one.name]
        for one in schema
    }
