"""Data files of a table without Spark, and what a probe finds in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.apply.build import IndexSource
from polynya.lake.apply.key_index import Builds, Costs, Folder, KeyIndexes
from polynya.lake.apply.probe import NeededOrder, NeededVersions, Probe
from polynya.lake.apply.records import FOUND, PLACE, TouchedRecords
from polynya.lake.iceberg.arrow_columns import arrow_type, as_stored
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.reading import TableFile
from polynya.model import headers as h
from polynya.store.data_files import LocalFiles
from tests.oracle.values import EPOCH

#: An index is built when a file was read once, and always used.
EAGER = Costs(least_rows=0, read_ns=10**9, build_ns=0, step_ns=0, look_up_ns=0)
#: One thread for all tests.
BUILDS = Builds()
HEADERS = {
    h.INSERTED_TIMESTAMP: "timestamptz",
    h.CHANGE_IDENTIFIER: "string",
    h.SEQUENCE_TAIL: "string",
    h.OPERATION: "string",
    h.FROM_TIMESTAMP: "timestamptz",
    h.TO_TIMESTAMP: "timestamptz",
}
#: Events are newer than all that is stored.
NEWER = NeededOrder("9", EPOCH.replace(year=EPOCH.year + 1))


@dataclass
class Files:
    """A table of data files in a folder; `keys` are its key columns with their Iceberg types."""

    folder: Path
    keys: Mapping[str, str]
    files: list[tuple[DataFile, Any]] = field(default_factory=list)

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        """All columns as Iceberg writes them."""
        types = {**self.keys, "v": "long", **HEADERS}
        return {
            name: {"id": number, "name": name, "type": kind, "required": False}
            for number, (name, kind) in enumerate(types.items(), 1)
        }

    @property
    def key_columns(self) -> list[dict[str, Any]]:
        """Those of the key."""
        return [self.columns[name] for name in self.keys]

    def write(
        self, keys: Sequence[Sequence[Any]], *, partition: str = "current", groups: int = 1,
        sequence: str = "1",
    ) -> None:  # fmt: skip
        """Write rows, one for each key, in so many row groups."""
        count = len(keys)
        made: dict[str, Any] = {
            name: pa.array([key[index] for key in keys], arrow_type(kind))
            for index, (name, kind) in enumerate(self.keys.items())
        }
        time = pa.timestamp("us", "UTC")
        made |= {
            "v": pa.array(range(count), pa.int64()),
            h.INSERTED_TIMESTAMP: pa.array(
                [EPOCH.replace(microsecond=n) for n in range(count)], time
            ),
            h.CHANGE_IDENTIFIER: pa.repeat(sequence, count),
            h.SEQUENCE_TAIL: pa.nulls(count, pa.string()),
            h.OPERATION: pa.repeat("I" if partition == "current" else "D", count),
            h.FROM_TIMESTAMP: pa.repeat(pa.scalar(EPOCH, time), count),
            h.TO_TIMESTAMP: pa.nulls(count, time),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{len(self.files)}.parquet"
        rows = as_stored(pa.table(made), list(self.columns.values()))
        pq.write_table(rows, path, row_group_size=max(1, -(-count // groups)))
        file = DataFile(None, str(path), partition, count, path.stat().st_size)
        self.files.append((file, TableFile(LocalFiles(), str(path))))

    def source(self, number: int = 0) -> IndexSource:
        """What an index of a file of Current is made of."""
        kept = [self.columns[h.INSERTED_TIMESTAMP]]
        return IndexSource(*self.files[number], self.key_columns, kept)

    def records(self, touched: Sequence[Sequence[Any]]) -> TouchedRecords:
        """The records of some keys."""
        types = [arrow_type(kind) for kind in self.keys.values()]
        return TouchedRecords(
            [pa.array([key[n] for key in touched], kind) for n, kind in enumerate(types)]
        )

    def find(
        self, touched: Sequence[Sequence[Any]], wanted: NeededVersions = NEWER,
        indexes: KeyIndexes | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Versions of records, by place."""
        probe = Probe(LocalFiles(), self.files, self.columns, self.key_columns, indexes)
        found = probe.find(self.records(touched), wanted)
        others = [name for name in ("v", *self.keys) if name in found.column_names]
        return found.select([*FOUND.names, *others]).sort_by(PLACE).to_pylist()


class Watched(KeyIndexes):
    """Indexes that are built at once, and tell how often they are used and for what."""

    def __init__(self, folder: Path, limit: int = 1 << 40, **how: Any) -> None:
        super().__init__(Folder(folder, limit), **{"costs": EAGER, "builds": BUILDS, **how})
        self.used = 0
        self.asked: list[dict[str, Any]] = []

    def find(self, *parts: Any, **how: Any) -> pa.Table | None:
        self.asked.append(how)
        found = super().find(*parts, **how)
        self.used += found is not None
        return found
