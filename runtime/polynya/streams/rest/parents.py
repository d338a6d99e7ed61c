"""The landed records of a parent, which fill in the paths of the resources below it.

They are read from the landing zone: they landed exactly once and stay there in their order, so a
position is the number of a batch and of a record in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from polynya.formats.errors import UnreadableFileError
from polynya.formats.landed import VALUE, Lost, opened_batch
from polynya.formats.opening import source_of
from polynya.formats.records.json_documents import value_of_page
from polynya.model.config.http_source import Resource
from polynya.model.error_catalogue.streams import NEWEST_BATCH_UNUSABLE
from polynya.store.object_store import ObjectStore
from polynya.streams.landing import LandedLog
from polynya.streams.rest.addresses import path_part


@dataclass(frozen=True, slots=True)
class ParentRecord:
    """The path that a record of the parent makes, and the fields that it needed, as JSON."""

    path: str
    fields: str


@dataclass(frozen=True, slots=True)
class ParentBatch:
    """The records of a landed batch, each path once, and those that make none.

    `lost` has one entry for each field that some records lack, `lost_records` counts the records.
    """

    number: int
    records: tuple[ParentRecord, ...]
    lost: tuple[Lost, ...] = ()
    lost_records: int = 0


class ParentRecords:
    """Reads the landed batches of a parent. Not for several threads."""

    def __init__(self, store: ObjectStore, folder: str, table: str, resource: Resource) -> None:
        self._store, self._resource = store, resource
        self._log = LandedLog(store, folder, table)
        self._table = table
        self._read: ParentBatch | None = None

    def after(self, number: int) -> ParentBatch | None:
        """The first batch with a higher number, None when there is none yet.

        Raises OperationError POLYNYA-STR-014.
        """
        self._log.look_again()
        newest = self._log.newest()
        if newest is None or newest.number <= number:
            return None
        batch = self.batch(number + 1)
        if batch is not None:
            return batch
        there = min(other for other in self._log.numbers() if other > number)
        gone = Lost(
            self._table, f"batch {number + 1}", f"batch {there}", "removed before it was read"
        )
        batch = self.batch(there)
        if batch is None:
            return None
        return ParentBatch(there, batch.records, (gone, *batch.lost), batch.lost_records + 1)

    def batch(self, number: int) -> ParentBatch | None:
        """A batch by its number, None when it is not there. Raises as `after`."""
        if self._read is None or self._read.number != number:
            self._read = self._opened(number)
        return self._read

    def _opened(self, number: int) -> ParentBatch | None:
        path = self._log.path(number)
        try:
            with source_of(self._store, path) as file:
                _, reader = opened_batch(file, path)
                values = reader.read(columns=[VALUE], use_threads=False).column(VALUE).to_pylist()
        except UnreadableFileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise NEWEST_BATCH_UNUSABLE(where=path, reason=error) from error
        records: dict[str, ParentRecord] = {}
        without: dict[str, list[int]] = {}
        for row, value in enumerate(values):
            found = self._record(value or b"")
            if isinstance(found, str):
                without.setdefault(found, []).append(row)
            else:
                records.setdefault(found.path, found)
        lost = tuple(
            Lost(
                f"{self._table}, batch {number}",
                f"record {rows[0]}",
                f"record {rows[-1] + 1}",
                f"{len(rows):,} records have no text and no whole number as `{field}`",
            )
            for field, rows in without.items()
        )
        count = sum(map(len, without.values()))
        return ParentBatch(number, tuple(records.values()), lost, count)

    def _record(self, value: bytes) -> ParentRecord | str:
        """The path of a record, or the field that it lacks."""
        fields: dict[str, object] = {}
        parts: dict[str, str] = {}
        for name in self._resource.placeholders:
            try:
                found = value_of_page(value, name.split("."))
            except UnreadableFileError:
                found = None
            part = path_part(found)
            if part is None:
                return name
            fields[name], parts[name] = found, part
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        return ParentRecord(self._resource.path_for(parts), text)
