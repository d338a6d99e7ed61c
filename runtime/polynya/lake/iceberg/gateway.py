"""Iceberg's Java API, reached through py4j: tables, snapshots, files, staged writes.

All use of Iceberg classes that are not plain SQL lives here and in `commit.py`. Technique and its
proof: docs/adr/0008-one-row-delta-per-step.md. Needs a classic SparkSession (Spark Connect has no
py4j).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.spark.api import DataFrame, SparkSession
from polynya.lake.spark.session import use_in_this_thread
from polynya.model.contract.headers import PARTITION, Partition

# Field ids that the Iceberg specification reserves for position delete files.
_FILE_PATH_ID, _POS_ID = 2147483546, 2147483545
POSITION_DELETE_SCHEMA = pa.schema(
    [
        pa.field(
            "file_path",
            pa.string(),
            nullable=False,
            metadata={"PARQUET:field_id": str(_FILE_PATH_ID)},
        ),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(_POS_ID)}),
    ]
)


@dataclass(frozen=True, slots=True)
class LiveFile:
    """One data file of a snapshot: the Java object and the figures that decisions need."""

    java: Any
    path: str
    rows: int
    size_bytes: int
    deletes: int


def _live(task: Any) -> LiveFile:
    """The file of a planned scan task."""
    file = task.file()
    return LiveFile(
        java=file,
        path=str(file.location()),
        rows=int(file.recordCount()),
        size_bytes=int(file.fileSizeInBytes()),
        deletes=int(task.deletes().size()),
    )


class IcebergTable:
    """One Iceberg table as the engine sees it: a pinned snapshot at a time, files, staging.

    Not thread-safe: a table belongs to the thread of its dataset.
    """

    def __init__(self, spark: SparkSession, name: str, quoted: str) -> None:
        self.spark = spark
        self.name = name
        self.quoted = quoted
        self._iceberg: Any = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
        self._java: Any = self._iceberg.spark.Spark3Util.loadIcebergTable(
            spark._jsparkSession, quoted
        )

    @property
    def java(self) -> Any:
        """The Java `Table`."""
        return self._java

    def refresh(self) -> None:
        """See the commits of others."""
        self._java.refresh()

    def snapshot_id(self) -> int | None:
        """Id of the current snapshot, None for a table without one."""
        snapshot = self._java.currentSnapshot()
        return None if snapshot is None else int(snapshot.snapshotId())

    def field_ids(self) -> dict[str, int]:
        """Top-level column name → field id."""
        return {str(field.name()): int(field.fieldId()) for field in self._java.schema().columns()}

    def files(self, partition: Partition, snapshot: int | None) -> list[LiveFile]:
        """Data files of one partition in one snapshot."""
        if snapshot is None:
            return []
        equal = self._iceberg.expressions.Expressions.equal(PARTITION, str(partition))
        tasks = self._java.newScan().useSnapshot(snapshot).filter(equal).planFiles()
        try:
            return [_live(task) for task in tasks.iterator()]
        finally:
            tasks.close()

    def bounds(self, partition: Partition, snapshot: int, column: str) -> tuple[int, int] | None:
        """Smallest and largest value of a column in one partition, as `ranges` tells them.

        None when a file tells none, or there is no file.
        """
        found = [bounds for _, bounds in self.ranges(partition, snapshot, column)]
        told = [bounds for bounds in found if bounds is not None]
        if not found or len(told) < len(found):
            return None
        return min(low for low, _ in told), max(high for _, high in told)

    def ranges(
        self, partition: Partition, snapshot: int, column: str
    ) -> list[tuple[LiveFile, tuple[int, int] | None]]:
        """Data files of one partition with their smallest and largest value of a column.

        Of integers or timestamps (epoch microseconds), from the metadata; None when a file tells
        none.
        """
        field = self._java.schema().asStruct().field(column)
        equal = self._iceberg.expressions.Expressions.equal(PARTITION, str(partition))
        scan = self._java.newScan().useSnapshot(snapshot).filter(equal).includeColumnStats()
        read = self._iceberg.types.Conversions.fromByteBuffer
        found: list[tuple[LiveFile, tuple[int, int] | None]] = []
        tasks = scan.planFiles()
        try:
            for task in tasks.iterator():
                file = task.file()
                ends = [
                    None if values is None else values.get(field.fieldId())
                    for values in (file.lowerBounds(), file.upperBounds())
                ]
                low, high = (None if end is None else int(read(field.type(), end)) for end in ends)
                told = None if low is None or high is None else (low, high)
                found.append((_live(task), told))
        finally:
            tasks.close()
        return found

    def at(self, snapshot: int) -> str:
        """SQL relation of the table pinned to one snapshot."""
        return f"{self.quoted} VERSION AS OF {int(snapshot)}"

    def stage(self, rows: DataFrame) -> list[Any]:
        """Write `rows` (all columns of the table) to data files that no snapshot knows yet.

        Uses the path of Iceberg's own compaction: Spark writes, a coordinator keeps the files,
        nothing commits.
        """
        use_in_this_thread(self.spark)
        group = str(uuid4())
        cache = self._iceberg.spark.SparkTableCache.get()
        coordinator = self._iceberg.spark.FileRewriteCoordinator.get()
        cache.add(group, self._java)
        try:
            (
                rows.write.format("iceberg")
                .mode("append")
                .option("distribution-mode", "none")
                .option("fanout-enabled", "true")
                .save(group)
            )
            files = list(coordinator.fetchNewFiles(self._java, group))
        finally:
            cache.remove(group)
            coordinator.clearRewrite(self._java, group)
        return files

    def write_data_file(self, partition: Partition, columns: dict[str, pa.Array]) -> Any:
        """Write one small Parquet data file without Spark; its Java `DataFile`, not committed."""
        ids = self.field_ids()
        rows = len(next(iter(columns.values())))
        columns = {PARTITION: pa.array([str(partition)] * rows, pa.string()), **columns}
        fields = [
            pa.field(name, column.type, metadata={"PARQUET:field_id": str(ids[name])})
            for name, column in columns.items()
        ]
        table = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
        path, size, java_file = self._put(table)
        metrics = self._iceberg.parquet.ParquetUtil.fileMetrics(
            java_file.toInputFile(), self._iceberg.MetricsConfig.forTable(self._java)
        )
        return (
            self._iceberg.DataFiles.builder(self._java.spec())
            .withPath(path)
            .withFormat("PARQUET")
            .withPartitionPath(f"{PARTITION}={partition}")
            .withFileSizeInBytes(size)
            .withMetrics(metrics)
            .build()
        )

    def write_position_deletes(self, partition: Partition, deletes: pa.Table) -> Any:
        """Write one v2 position delete file for rows of one partition.

        `deletes` has `file_path` string and `pos` int64. Returns the Java `DeleteFile`, not
        committed.
        """
        ordered = deletes.sort_by([("file_path", "ascending"), ("pos", "ascending")])
        arrays = [ordered.column(name).combine_chunks() for name in ("file_path", "pos")]
        table = pa.Table.from_arrays(arrays, schema=POSITION_DELETE_SCHEMA)
        path, size, _ = self._put(table, suffix="-deletes")
        builder = (
            self._iceberg.FileMetadata.deleteFileBuilder(self._java.spec())
            .ofPositionDeletes()
            .withFormat("PARQUET")
            .withPath(path)
            .withPartitionPath(f"{PARTITION}={partition}")
            .withFileSizeInBytes(size)
            .withRecordCount(table.num_rows)
        )
        touched = set(arrays[0].to_pylist())
        if len(touched) == 1:
            builder = builder.withReferencedDataFile(touched.pop())
        return builder.build()

    def drop_files(self, paths: Iterable[str]) -> None:
        """Remove files that were staged and surely never committed."""
        for path in paths:
            self._java.io().deleteFile(path)

    def string_list(self, values: Sequence[str]) -> Any:
        """A `java.util.List` of strings."""
        result = self.spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        for value in values:
            result.add(value)
        return result

    def _put(self, table: pa.Table, suffix: str = "") -> tuple[str, int, Any]:
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        content = buffer.getvalue()
        path = str(self._java.locationProvider().newDataLocation(f"{uuid4()}{suffix}.parquet"))
        # FileIO and not the local file system, so that the same code writes to S3.
        file = self._java.io().newOutputFile(path)
        stream = file.create()
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        return path, len(content), file
