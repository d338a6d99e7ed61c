"""One Iceberg table through Iceberg's Java API and py4j: snapshots, files, columns.

Only this package uses Iceberg classes beyond plain SQL; docs/adr/0007-one-commit-per-step.md has
the technique and its proof. It needs a classic SparkSession, because Spark Connect has no py4j.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from polynya.lake.errors import of_change
from polynya.lake.iceberg.files import (
    DataFile,
    DeleteFile,
    LiveFiles,
    TableSnapshot,
    delete_file,
    listed,
    snapshot_of,
)
from polynya.lake.iceberg.java_files import JavaFiles
from polynya.lake.iceberg.reading import S3_FILE_IO, FileAccess, reach_of
from polynya.lake.spark import api
from polynya.model.headers import PARTITION, Partition
from polynya.store.data_files import ReadableFiles

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession


class IcebergTable:
    """One Iceberg table as the engine sees it: a pinned snapshot at a time, files, columns.

    One thread may read pinned snapshots while another commits; only one commits at a time.
    """

    def __init__(self, spark: SparkSession, name: str, quoted: str) -> None:
        self.spark = spark
        self.name = name
        self.quoted = quoted
        self.iceberg: Any = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
        find: Any = self.iceberg.spark.Spark3Util
        self._java: Any = find.loadIcebergTable(spark._jsparkSession, quoted)
        in_spark: Any = find.catalogAndIdentifier(spark._jsparkSession, quoted)
        self._catalog, self._identifier = in_spark.catalog(), in_spark.identifier()
        self._files = LiveFiles(self._planned)
        self._columns: list[dict[str, Any]] | None = None
        self._schema: int | None = None
        self._java_files: JavaFiles | None = None
        self._deletes: tuple[int, tuple[DeleteFile, ...] | None] | None = None
        self._reach: FileAccess | None = None
        self._is_reached = False
        self._format: int | None = None
        self._metadata: tuple[str, dict[str, Any]] | None = None

    @property
    def java(self) -> Any:
        """The Java `Table`."""
        return self._java

    def refresh(self) -> None:
        """See the commits of others and what they changed, and let Spark see it."""
        self._java.refresh()
        self._columns = self._java_files = None
        self.show_to_spark()

    def show_to_spark(self) -> None:
        """Let Spark see commits that it did not make: it keeps a copy of its own."""
        self._catalog.invalidateTable(self._identifier)

    def current(self) -> TableSnapshot | None:
        """The current snapshot, None for a table without one."""
        snapshot = self._java.currentSnapshot()
        return None if snapshot is None else self._snapshot_from(snapshot)

    def rows(self) -> int:
        """How many rows its files have, deleted ones too; 0 where no commit recorded it."""
        snapshot = self._java.currentSnapshot()
        return 0 if snapshot is None else int(snapshot.summary().get("total-records") or 0)

    def snapshot(self, number: int) -> TableSnapshot | None:
        """A snapshot by its id, None when it was expired."""
        snapshot = self._java.snapshot(number)
        return None if snapshot is None else self._snapshot_from(snapshot)

    def reach(self) -> FileAccess:
        """What reads and writes the files without the JVM.

        It stays while the table is open, once Arrow has reached a file.
        """
        if self._reach is None:
            io = self._java.io()
            kind, options = str(io.getClass().getName()), {}
            if kind == S3_FILE_IO:
                # As one text: through py4j a map costs a dozen calls for each of its entries.
                jvm: Any = self.spark._jvm
                mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
                options = json.loads(mapper.writeValueAsString(io.properties()))
                if io.credentials().size():
                    # A catalog gave them for a time; only this FileIO renews them.
                    options["s3.vended-credentials"] = "true"
            self._reach = reach_of(str(self._java.location()), kind, options)
            self._is_reached = kind != S3_FILE_IO
        if self._is_reached:
            return self._reach
        tried = self._tried(self._reach)
        self._is_reached = tried is self._reach
        return tried

    @cached_property
    def calling_thread(self) -> Any:
        """A Java executor that does its work at once, in the thread that asks it to."""
        concurrent = self.iceberg.relocated.com.google.common.util.concurrent
        return concurrent.MoreExecutors.newDirectExecutorService()

    def format_version(self) -> int:
        """Version of Iceberg's format that the table had when it was opened, or was given here."""
        if self._format is None:
            self._format = int(self._java.operations().current().formatVersion())
        return self._format

    def properties(self) -> dict[str, str]:
        """Properties of the table as it was last read."""
        # As one text: through py4j a map costs a dozen calls for each of its entries.
        mapper = self.iceberg.util.JsonUtil.mapper()
        values: dict[str, str] = json.loads(str(mapper.writeValueAsString(self._java.properties())))
        return values

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set properties; `format-version` raises the format. No file is touched."""
        update = self._java.updateProperties()
        for name, value in properties.items():
            update.set(name, value)
        self._format = None
        self.commit_change(update)

    def commit_change(self, update: Any) -> None:
        """Commit an update of columns, properties or layout, and see the table as it is then.

        No row is touched and no owner is checked. Raises StaleStepError when another commit
        came first, and DependencyError when the catalog reports another error: whether the change
        was made says the table.
        """
        try:
            update.commit()
        except api.Py4JJavaError as error:
            raise of_change(self.name, error) from error
        self.refresh()

    def snapshot_id(self) -> int | None:
        """Id of the current snapshot, None for a table without one."""
        snapshot = self.current()
        return None if snapshot is None else snapshot.number

    def is_ahead(self) -> bool:
        """Whether the columns were changed since the current snapshot was committed."""
        snapshot, schema = self._java.currentSnapshot(), self._java.schema()
        number = None if snapshot is None else snapshot.schemaId()
        return number is not None and int(number) != int(schema.schemaId())

    def columns(self) -> list[dict[str, Any]]:
        """Top-level columns as Iceberg's specification writes a schema in JSON."""
        # Another thread may forget them meanwhile.
        columns = self._columns
        if columns is None:
            schema = json.loads(self.iceberg.SchemaParser.toJson(self._java.schema()))
            columns = self._columns = schema["fields"]
            self._schema = schema["schema-id"]
        return columns

    def column_names(self) -> set[str]:
        """Names of the top-level columns."""
        return {column["name"] for column in self.columns()}

    def has_had(self, name: str) -> bool:
        """Whether any schema of the table has a top-level column of this name."""
        schemas = self._java.schemas().values()
        return any(schema.asStruct().field(name) is not None for schema in schemas)

    def files(self, partition: Partition, snapshot: int | None) -> tuple[DataFile, ...]:
        """Data files of one partition in one snapshot."""
        return () if snapshot is None else self._files.of(partition, snapshot)

    def keeping(self, snapshot: int) -> AbstractContextManager[None]:
        """Keep in mind what the files of a snapshot are, while others are committed."""
        return self._files.in_use(snapshot)

    def kept_snapshots(self) -> frozenset[int]:
        """Snapshots that a step of this process works on: see `keeping`."""
        return self._files.used()

    def data_manifests(self) -> int:
        """How many manifests of data files the current snapshot has."""
        snapshot = self._java.currentSnapshot()
        return 0 if snapshot is None else int(snapshot.dataManifests(self._java.io()).size())

    def metadata(self) -> dict[str, Any]:
        """The newest metadata of the table, as Iceberg's specification writes it in JSON."""
        newest = self._java.operations().refresh()
        document: dict[str, Any] = json.loads(str(self.iceberg.TableMetadataParser.toJson(newest)))
        return document

    def kept_metadata(self) -> dict[str, Any]:
        """The same, for those that ask again and again: it stays in memory while it is the newest.

        With many snapshots the text is long.
        """
        location = str(self._java.operations().refresh().metadataFileLocation())
        kept = self._metadata
        if kept is None or kept[0] != location:
            kept = self._metadata = (location, self.metadata())
        return kept[1]

    def opened_again(self) -> IcebergTable:
        """The same table with a Java object of its own, for commits next to the owner's steps."""
        self.show_to_spark()
        return IcebergTable(self.spark, self.name, self.quoted)

    def position_deletes(self, snapshot: int) -> tuple[DeleteFile, ...] | None:
        """All delete files in a snapshot; None when one is neither Parquet nor a vector."""
        deletes = self._deletes
        if deletes is None or deletes[0] != snapshot:
            deletes = self._deletes = (snapshot, self._planned_deletes(snapshot))
        return deletes[1]

    def partition_of(self, file: DeleteFile) -> str:
        """The value of `hdr__partition` that a live delete file belongs to."""
        spec = self._java.specs().get(file.java.specId())
        path = str(spec.partitionToPath(file.java.partition()))
        return path.partition("/")[0].partition("=")[2]

    def forget_deletes(self) -> None:
        """Read again which delete files there are: a commit may have dropped some that are done."""
        self._deletes = None

    def committed(
        self,
        snapshot: TableSnapshot,
        add: Iterable[DataFile],
        remove: Iterable[DataFile],
        *,
        deletes: Iterable[DeleteFile],
        drop: Iterable[DeleteFile],
    ) -> None:
        """Know the files of `snapshot`, which an own commit has made out of its parent.

        Iceberg itself drops a delete file that is older than every data file: then the snapshot
        counts another number of them.
        """
        if snapshot.schema != self._schema:
            self._columns = self._java_files = None
        base, number = snapshot.parent, snapshot.number
        self._files.moved_on(base, number, add, remove)
        before = self._deletes
        if before is None or before[0] != base or before[1] is None:
            return
        gone = {file.place for file in drop}
        known = (*(file for file in before[1] if file.place not in gone), *deletes)
        self._deletes = (number, known) if len(known) == snapshot.delete_files else None

    def bounds(self, partition: Partition, snapshot: int, column: str) -> tuple[int, int] | None:
        """Smallest and largest value of a column in one partition, as `ranges` tells them.

        None when a file tells none, or there is no file.
        """
        ends = [bounds for _, bounds in self.ranges(partition, snapshot, column)]
        ranges = [bounds for bounds in ends if bounds is not None]
        if not ends or len(ranges) < len(ends):
            return None
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    def ranges(
        self, partition: Partition, snapshot: int, column: str
    ) -> list[tuple[DataFile, tuple[int, int] | None]]:
        """Data files of one partition with their smallest and largest value of a column.

        Of integers or timestamps (epoch microseconds), from the metadata; None when a file tells
        none.
        """
        field = self._java.schema().asStruct().field(column)
        read = self.iceberg.types.Conversions.fromByteBuffer
        files: list[tuple[DataFile, tuple[int, int] | None]] = []
        for file in self._scanned(partition, snapshot, with_bounds=True):
            ends = [
                None if values is None else values.get(field.fieldId())
                for values in (file.lowerBounds(), file.upperBounds())
            ]
            low, high = (None if end is None else int(read(field.type(), end)) for end in ends)
            bounds = None if low is None or high is None else (low, high)
            files.append((self.java_files().known(file, partition).live(), bounds))
        return files

    def nulls(self, partition: Partition, snapshot: int, column: str) -> dict[str, int]:
        """Number of NULLs of a column by path of the data files that tell it."""
        number = self._java.schema().asStruct().field(column).fieldId()
        counted: dict[str, int] = {}
        for file in self._scanned(partition, snapshot, with_bounds=True):
            counts = file.nullValueCounts()
            nulls = None if counts is None else counts.get(number)
            if nulls is not None:
                counted[str(file.location())] = int(nulls)
        return counted

    def at(self, snapshot: int) -> str:
        """SQL relation of the table pinned to one snapshot."""
        return f"{self.quoted} VERSION AS OF {int(snapshot)}"

    def java_files(self) -> JavaFiles:
        """What makes the Java objects of files."""
        java_files = self._java_files
        if java_files is None:
            java_files = self._java_files = JavaFiles(self.iceberg, self._java, self.columns())
        return java_files

    def put(self, path: str, data: bytes) -> None:
        """Write a file through Iceberg's FileIO, for what `reach` leaves to the JVM."""
        stream = self._java.io().newOutputFile(path).create()
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    def read(self, path: str) -> bytes:
        """All of a file through Iceberg's FileIO, for what `reach` leaves to the JVM."""
        stream = self._java.io().newInputFile(path).newStream()
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def drop_files(self, paths: Iterable[str]) -> None:
        """Remove files that were staged and surely never committed."""
        for path in paths:
            self._java.io().deleteFile(path)

    def _snapshot_from(self, snapshot: Any) -> TableSnapshot:
        return snapshot_of(str(self.iceberg.SnapshotParser.toJson(snapshot)))

    def _tried(self, reach: FileAccess) -> FileAccess:
        """The same where Arrow reaches a file of the table indeed."""
        if isinstance(reach.reads, str):
            return reach
        metadata = str(self._java.operations().current().metadataFileLocation())
        why = reach.reads.refusal(metadata)
        return reach if why is None else FileAccess(why, why)

    def _planned_deletes(self, snapshot: int) -> tuple[DeleteFile, ...] | None:
        io, specs = self._java.io(), self._java.specs()
        deletes: list[DeleteFile] = []
        for manifest in listed(self._java.snapshot(snapshot).deleteManifests(io)):
            reader = self.iceberg.ManifestFiles.readDeleteManifest(manifest, io, specs)
            try:
                iterator = reader.iterator()
                while iterator.hasNext():
                    file = delete_file(iterator.next())
                    if file is None:
                        return None
                    deletes.append(file)
            finally:
                reader.close()
        return tuple(deletes)

    def _planned(self, partition: Partition, snapshot: int) -> list[DataFile]:
        known_file = self.java_files().known
        return [known_file(file, partition).live() for file in self._scanned(partition, snapshot)]

    def _scanned(
        self, partition: Partition, snapshot: int, *, with_bounds: bool = False
    ) -> list[Any]:
        """The Java `DataFile`s that a scan of one partition plans to read."""
        equal = self.iceberg.expressions.Expressions.equal(PARTITION, str(partition))
        scan = self._java.newScan().useSnapshot(snapshot).filter(equal)
        tasks = (scan.includeColumnStats() if with_bounds else scan).planFiles()
        try:
            files, iterator = [], tasks.iterator()
            while iterator.hasNext():
                files.append(iterator.next().file())
            return files
        finally:
            tasks.close()


class ThroughJava(ReadableFiles):
    """Files of a table as Iceberg's FileIO reads them: whole, one after the other."""

    def __init__(self, table: IcebergTable) -> None:
        self._table = table

    @property
    def readers(self) -> int:
        """One: a table belongs to the thread of its dataset."""
        return 1

    def holds(self, location: str) -> bool:
        """Whatever the metadata of the table names."""
        return bool(location)

    @contextmanager
    @override
    def open(self, location: str) -> Iterator[Any]:
        """Raises OSError."""
        try:
            content = self._table.read(location)
        except api.Py4JJavaError as error:
            raise OSError(f"{location} was not read: {error.java_exception}") from error
        yield pa.BufferReader(content)
