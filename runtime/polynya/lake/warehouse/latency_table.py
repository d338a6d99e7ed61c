"""The table of latencies: one in each internal schema, written and maintained without a JVM.

It is a plain Iceberg table called `polynya_latency`, partitioned by its column `day` (date, UTC),
because PyIceberg makes days of times only with another package. Its other columns are `at` (begin
of a bucket, timestamptz), `task` and `dataset` (text), `batches` and `rows` (bigint), and in
seconds, as double, `source`, `landing`, `copy`, `apply` and `total`; then what waited:
`waiting_bytes`, `waiting_seconds` and `pending_rows`. A table of an earlier version gets these
columns with its next commit.

Days older than it keeps are deleted whole, a day that is over becomes one file, and snapshots older
than an hour expire with the files that only they had. It stands in the schema of the tables that it
is about, so whoever may write those may write it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from typing import Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType, TimestamptzType

from polynya.observe.latency import LatencySample

log = logging.getLogger(__name__)

NAME: Final = "polynya_latency"
SNAPSHOTS_STAY: Final = timedelta(hours=1)
_FIGURES: Final = ("source", "landing", "copy", "apply", "total")
_BACKLOG: Final = (
    ("waiting_bytes", LongType(), pa.int64()),
    ("waiting_seconds", DoubleType(), pa.float64()),
    ("pending_rows", LongType(), pa.int64()),
)
_SCHEMA: Final = Schema(
    NestedField(1, "at", TimestamptzType(), required=True),
    NestedField(2, "task", StringType(), required=True),
    NestedField(3, "dataset", StringType(), required=True),
    NestedField(4, "batches", LongType(), required=True),
    NestedField(5, "rows", LongType(), required=True),
    *(
        NestedField(number, name, DoubleType(), required=False)
        for number, name in enumerate(_FIGURES, start=6)
    ),
    NestedField(11, "day", DateType(), required=True),
    *(
        NestedField(number, name, kind, required=False)
        for number, (name, kind, _) in enumerate(_BACKLOG, start=12)
    ),
)
_SPEC: Final = PartitionSpec(PartitionField(11, 1000, IdentityTransform(), "day"))
_PROPERTIES: Final = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "5",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "8",
    "write.parquet.compression-codec": "zstd",
}
_ARROW: Final = pa.schema(
    [
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("batches", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        *(pa.field(name, pa.float64()) for name in _FIGURES),
        pa.field("day", pa.date32(), nullable=False),
        *(pa.field(name, kind) for name, _, kind in _BACKLOG),
    ]
)
#: Days that are joined at once; usual is one.
_DAYS_AT_ONCE: Final = 3
#: Attempts of a commit while other nodes commit.
_ATTEMPTS: Final = 5


class LatencyTable:
    """The table in one internal schema of a catalog. Methods raise what PyIceberg raises."""

    def __init__(self, catalog: Catalog, schema: str) -> None:
        self._catalog, self._schema = catalog, schema
        self._identifier = (schema, NAME)

    def _loaded(self) -> Table | None:
        try:
            return self._catalog.load_table(self._identifier)
        except NoSuchTableError:
            return None

    def _made(self) -> Table:
        found = self._loaded()
        if found is not None:
            if not _columns(found) >= set(_ARROW.names):
                with found.update_schema() as change:
                    change.union_by_name(_SCHEMA)
            return found
        with suppress(NamespaceAlreadyExistsError):
            self._catalog.create_namespace(self._schema)
        try:
            return self._catalog.create_table(
                self._identifier, _SCHEMA, partition_spec=_SPEC, properties=dict(_PROPERTIES)
            )
        except TableAlreadyExistsError:
            return self._catalog.load_table(self._identifier)

    def append(self, samples: Sequence[LatencySample]) -> None:
        """Add samples in one commit; the table is made if need be."""
        values = [{**asdict(one), "day": one.at.astimezone(UTC).date()} for one in samples]
        rows = pa.Table.from_pylist(values, schema=_ARROW)
        for attempt in range(_ATTEMPTS):
            try:
                self._made().append(rows)
            except CommitFailedException:
                if attempt + 1 == _ATTEMPTS:
                    raise
            else:
                return

    def read(
        self, since: datetime, dataset: str | None = None, task: str | None = None
    ) -> list[LatencySample]:
        """The samples of buckets that began at a moment or later; none without a table.

        Those of one dataset or task, if it is named.
        """
        table = self._loaded()
        if table is None:
            return []
        recent: BooleanExpression = And(
            GreaterThanOrEqual(term="day", value=since.astimezone(UTC).date().isoformat()),
            GreaterThanOrEqual(term="at", value=since.isoformat()),
        )
        if dataset is not None:
            recent = And(recent, EqualTo(term="dataset", value=dataset))
        if task is not None:
            recent = And(recent, EqualTo(term="task", value=task))
        known = _columns(table)
        names = tuple(name for name in _ARROW.names if name != "day" and name in known)
        rows = table.scan(row_filter=recent, selected_fields=names).to_arrow().to_pylist()
        return [LatencySample(**row) for row in rows]

    def maintain(self, *, keep: timedelta, now: datetime) -> None:
        """Delete old days, make one file of each day that is over, and expire snapshots.

        Another node may do so at the same time: the loser of a commit leaves it to the other.
        """
        table = self._loaded()
        if table is None:
            return
        try:
            today, oldest = now.astimezone(UTC).date(), (now - keep).astimezone(UTC).date()
            if any(day < oldest for day in _files_by_day(table)):
                table.delete(LessThan(term="day", value=oldest.isoformat()))
            many = [
                day
                for day, files in sorted(_files_by_day(table).items())
                if files > 1 and oldest <= day < today
            ]
            for day in many[:_DAYS_AT_ONCE]:
                _join(table, day)
            _expire(table, now)
        except CommitFailedException:
            log.info("another process maintains the table of latencies in %s", self._schema)


def _columns(table: Table) -> set[str]:
    return {column.name for column in table.schema().fields}


def _files_by_day(table: Table) -> dict[date, int]:
    """Number of data files of each day."""
    # A partition by date holds the number of days since 1970.
    days = Counter(task.file.partition[0] for task in table.scan().plan_files())
    return {date(1970, 1, 1) + timedelta(days=day): files for day, files in days.items()}


def _join(table: Table, day: date) -> None:
    of_day = EqualTo(term="day", value=day.isoformat())
    rows = table.scan(row_filter=of_day).to_arrow()
    known = pa.schema([column for column in _ARROW if column.name in rows.column_names])
    table.overwrite(rows.cast(known), overwrite_filter=of_day)


def _expire(table: Table, now: datetime) -> None:
    """Expire old snapshots, then delete the files that only they had.

    A file of a commit that is under way is in no snapshot, so it is not deleted.
    """
    table.refresh()
    current = table.current_snapshot()
    old = [
        one.snapshot_id
        for one in table.metadata.snapshots
        if (current is None or one.snapshot_id != current.snapshot_id)
        and one.timestamp_ms < (now - SNAPSHOTS_STAY).timestamp() * 1000
    ]
    if not old:
        return
    before = _files(table, old)
    table.maintenance.expire_snapshots().by_ids(old).commit()
    table.refresh()
    kept = _files(table, [one.snapshot_id for one in table.metadata.snapshots])
    for path in sorted(before - kept):
        with suppress(OSError):
            table.io.delete(path)


def _files(table: Table, snapshots: Iterable[int]) -> set[str]:
    """The files that snapshots hold: manifest lists, manifests, data files."""
    found: set[str] = set()
    for number in snapshots:
        snapshot = table.metadata.snapshot_by_id(number)
        if snapshot is None:
            continue
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            found.add(manifest.manifest_path)
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            found |= {entry.data_file.file_path for entry in entries}
    return found
