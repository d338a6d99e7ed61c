"""What a fold needs of the stored versions of touched records, and what the footers prove."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.events import DELETES
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.reading import StoredFile
from polynya.model import headers as h
from polynya.model.headers import Partition

Column = Mapping[str, Any]
Columns = Mapping[str, Column]


class Wanted(ABC):
    """What a fold needs of the stored versions; `columns` are those of the table, by name."""

    @abstractmethod
    def of(self, file: DataFile, stored: StoredFile, group: int, columns: Columns) -> list[str]:
        """Columns to read of the versions in a row group; empty where none of them matters."""

    @abstractmethod
    def always(self, file: DataFile) -> list[str]:
        """Columns of these that every version in a file may be asked for: an index keeps them."""

    @abstractmethod
    def chosen(self, file: DataFile, rows: pa.Table) -> pa.Table:
        """Those of the versions of touched records that matter."""


@dataclass(frozen=True, slots=True)
class Order(Wanted):
    """Without history: whether events are newer, in sequence and in time, than what is stored.

    `oldest` is the lowest change identifier of the events and `earliest` their earliest time. A row
    group whose footer proves both gives no more than the time at which each record was inserted,
    and of Prior nothing. Operations are read where Current may hold a delete, or Prior anything
    else: the dataset had history or soft deletes before.
    """

    oldest: str
    earliest: Any

    def of(self, file: DataFile, stored: StoredFile, group: int, columns: Columns) -> list[str]:
        """See `Wanted`."""
        found = self.always(file)
        newest = stored.bounds(group, columns[h.CHANGE_IDENTIFIER])
        if newest is None or newest[1] >= self.oldest:
            found += [h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL]
        if not _is_plain(file, stored.bounds(group, columns[h.OPERATION])):
            found.append(h.OPERATION)
        latest = stored.bounds(group, columns[h.FROM_TIMESTAMP])
        if latest is None or latest[1] > self.earliest:
            found.append(h.FROM_TIMESTAMP)
        return found

    def always(self, file: DataFile) -> list[str]:
        """See `Wanted`."""
        return [h.INSERTED_TIMESTAMP] if file.partition == Partition.CURRENT else []

    def chosen(self, _file: DataFile, rows: pa.Table) -> pa.Table:
        """See `Wanted`."""
        return rows


def _is_plain(file: DataFile, operations: tuple[Any, Any] | None) -> bool:
    """Whether a range of operations says that Current holds no delete, or Prior nothing else."""
    if operations is None:
        return False
    low, high = operations
    if file.partition == Partition.CURRENT:
        return not any(low <= one.as_py() <= high for one in DELETES)
    return low == high and low in DELETES.to_pylist()


@dataclass(frozen=True, slots=True)
class Whole(Wanted):
    """With history: the newest version of a record with all its columns, `names`.

    That is its row in Current, or its delete in Prior that nothing follows.
    """

    names: Sequence[str]

    def of(self, file: DataFile, stored: StoredFile, group: int, columns: Columns) -> list[str]:
        """See `Wanted`."""
        if file.partition == Partition.PRIOR and not self._may_be_open(stored, group, columns):
            return []
        return list(self.names)

    def always(self, _file: DataFile) -> list[str]:
        """See `Wanted`."""
        return []

    def chosen(self, file: DataFile, rows: pa.Table) -> pa.Table:
        """See `Wanted`."""
        if file.partition == Partition.CURRENT:
            return rows
        deletes = pc.is_in(rows.column(h.OPERATION), value_set=DELETES)
        return rows.filter(pc.and_(deletes, rows.column(h.TO_TIMESTAMP).is_null()))

    def _may_be_open(self, stored: StoredFile, group: int, columns: Columns) -> bool:
        operations = stored.bounds(group, columns[h.OPERATION])
        possible = operations is None or any(
            operations[0] <= one.as_py() <= operations[1] for one in DELETES
        )
        return possible and stored.nulls(group, columns[h.TO_TIMESTAMP]) != 0
