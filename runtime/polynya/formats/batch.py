"""What reading landed files gives: typed rows, rejected records and how far each file was read.

Exact accounting is part of the type: `rows_in == rows.num_rows + len(rejected) + rows_filtered`,
checked on construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from polynya.model.config.evolution import SchemaChange
from polynya.model.datatypes import DataType

WHOLE_FILE = -1
"""`Rejected.offset` of a file that cannot be read at all."""

NO_ORDER = "0" * 35
"""Change identifier of a row of the first load without a sequence: before every event."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that goes to quarantine.

    `offset` is its 0-based index in the file, `WHOLE_FILE` for the file itself.
    """

    file: str
    offset: int
    rule: str
    error: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class FileProgress:
    """How far a file of `size` bytes was read.

    `records` counts from its start, including rejected and filtered ones.
    """

    size: int
    records: int
    complete: bool


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file to read from record `start` on. `path` is relative to the object store."""

    path: str
    size: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Where a batch ends: at the first record with which one of the limits is reached."""

    max_rows: int = 200_000
    max_bytes: int = 64 * 1024 * 1024


class Limits(Protocol):
    """`BatchLimits`, or the task's own settings."""

    @property
    def max_rows(self) -> int:
        """Most records in a batch."""
        ...

    @property
    def max_bytes(self) -> int:
        """Most bytes of raw records in a batch."""
        ...


TIMESTAMP_UTC = pa.timestamp("us", "UTC")

SERVICE_FIELDS: tuple[pa.Field, ...] = (
    pa.field("__file", pa.string()),
    pa.field("__offset", pa.int64()),
    pa.field("__raw", pa.binary()),
    pa.field("__op", pa.string()),
    pa.field("__ci", pa.string()),
    pa.field("__tail", pa.string()),
    pa.field("__position", pa.string()),
    pa.field("__ts", TIMESTAMP_UTC),
    pa.field("__unsent", pa.list_(pa.string())),
)
"""Service columns of `DatasetBatch.rows`; `__old` follows, its type is a struct of the keys."""

OLD_KEY_FIELD = "__old"
SERVICE_NAMES = frozenset([*(item.name for item in SERVICE_FIELDS), OLD_KEY_FIELD])


@dataclass(frozen=True, slots=True)
class DatasetBatch:
    """Rows of one dataset out of one read.

    Attributes:
        rows: service columns, then one column for every entry of `schema`.
        schema: every source column known so far, in the order of first sight; `Void` while only
            NULLs were seen.
        keys: key columns, from the configuration, else from the data.
        files: path to progress, for every file that was touched.
        counters: what was filtered, and why.
        changes: what the batch changes in the columns that were known.
        declared: the columns of the newest schema of the source, None when it declares none.
        called: what the source table is called at the end of the batch, None when it is no news.
    """

    rows: pa.Table
    schema: Mapping[str, DataType]
    keys: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    rows_in: int
    rows_filtered: int
    files: Mapping[str, FileProgress]
    counters: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[SchemaChange, ...] = ()
    declared: tuple[str, ...] | None = None
    called: str | None = None

    def __post_init__(self) -> None:
        out = self.rows.num_rows + len(self.rejected) + self.rows_filtered
        if self.rows_in != out:
            raise AssertionError(f"accounting: {self.rows_in} records in, {out} out")

    @property
    def rows_held(self) -> int:
        """Typed rows and rejected records."""
        return int(self.rows.num_rows) + len(self.rejected)

    @property
    def size_bytes(self) -> int:
        """Size of what it holds, in memory."""
        return int(self.rows.nbytes) + sum(len(one.raw) for one in self.rejected)
