"""Find the stored versions of some records: key columns first, the rest only where one matched.

Every data file is read row group by row group, several at a time. A row group whose range of keys
no touched key lies in is not read at all, one without a match gives only its keys. And what the
footer proves is not read (docs/adr/0041-applies-without-a-query.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.local.events import DELETES, FILE, FOUND, IN_CURRENT, PLACE, POS, RECORD
from polynya.lake.apply.local.records import Records
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.position_deletes import FILE_STEP
from polynya.lake.iceberg.reading import StoredFile, each_read
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles

Column = Mapping[str, Any]
Columns = Mapping[str, Column]


class Wanted(ABC):
    """What a fold needs of the stored versions; `columns` are those of the table, by name."""

    @abstractmethod
    def of(self, file: DataFile, stored: StoredFile, group: int, columns: Columns) -> list[str]:
        """Columns to read of the versions in a row group; empty where none of them matters."""

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
        found = [h.INSERTED_TIMESTAMP] if file.partition == Partition.CURRENT else []
        newest = stored.bounds(group, columns[h.CHANGE_IDENTIFIER])
        if newest is None or newest[1] >= self.oldest:
            found += [h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL]
        if not _is_plain(file, stored.bounds(group, columns[h.OPERATION])):
            found.append(h.OPERATION)
        latest = stored.bounds(group, columns[h.FROM_TIMESTAMP])
        if latest is None or latest[1] > self.earliest:
            found.append(h.FROM_TIMESTAMP)
        return found

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


@dataclass(frozen=True, slots=True)
class Probe:
    """What holds data files, these files, the columns of their table by name, those of its key."""

    store: DataFiles
    files: Sequence[tuple[DataFile, StoredFile]]
    columns: Columns
    keys: Sequence[Column]

    @span("probe")
    def find(self, records: Records, wanted: Wanted) -> pa.Table:
        """Stored versions of the records, dead ones among them.

        They have the columns FOUND, and data columns that are wanted.
        """
        parts = [
            (number, group) for number, (_, stored) in enumerate(self.files)
            for group in stored.groups
        ]  # fmt: skip
        read = each_read(self.store, lambda part: self._in_group(records, wanted, *part), parts)
        found = [one for one in read if one is not None]
        return pa.concat_tables([FOUND.empty_table(), *found], promote_options="default")

    def _in_group(
        self, records: Records, wanted: Wanted, number: int, group: int
    ) -> pa.Table | None:
        file, stored = self.files[number]
        needed = wanted.of(file, stored, group, self.columns)
        if not needed or self._is_elsewhere(records, stored, group):
            return None
        keys = stored.read(group, self.keys)
        numbers = records.of([one.combine_chunks() for one in keys.columns])
        hits = pc.indices_nonzero(numbers.is_valid())
        if len(hits) == 0:
            return None
        names = [name for name in needed if name not in keys.column_names]
        rows = stored.read(group, [self.columns[name] for name in names]).take(hits)
        pos = pc.add(hits.cast(pa.int64()), stored.starts[group])
        place = {
            RECORD: numbers.take(hits),
            FILE: pa.repeat(pa.scalar(number, pa.int32()), len(hits)),
            POS: pos,
            PLACE: pc.add(pos, number * FILE_STEP),
            IN_CURRENT: pa.repeat(pa.scalar(file.partition == Partition.CURRENT), len(hits)),
        }
        keys = keys.take(hits)
        both = [keys.column(index) for index in range(keys.num_columns)] + rows.columns
        named = dict(zip([*keys.column_names, *names], both, strict=True))
        return wanted.chosen(file, pa.table({**place, **named}))

    def _is_elsewhere(self, records: Records, stored: StoredFile, group: int) -> bool:
        """Whether the range of a key column says that no touched record is in a row group."""
        for index, column in enumerate(self.keys):
            bounds = stored.bounds(group, column) if column["type"] in ("int", "long") else None
            if bounds is not None:
                low, high = records.range_of(index)
                if bounds[1] < low or bounds[0] > high:
                    return True
        return False
