"""A table as one commit has left it, from its files alone: no JVM, and no scan of PyIceberg.

Iceberg says in few places what a look at a table asks for. The metadata file has the snapshots, the
list of a snapshot says which values of `hdr__partition` each of its manifests may name, and a
manifest has the rows and bytes of each file. Each of them is read at most once, and only manifests
that may name a file of the partitions that are asked for. So the figures of a table cost the
metadata file, the list, mostly one manifest, and the files of its states.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typing_extensions import override

from polynya.lake.spark.catalog import CATALOG, python_catalog
from polynya.lake.warehouse.catalogs import CatalogEntry
from polynya.lake.warehouse.check import entries_of, refuse_unusable
from polynya.lake.warehouse.rest_access import s3_for_python
from polynya.lake.warehouse.tables import Tables, metadata_files, place_of
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.lake import FOREIGN_DELETES
from polynya.model.errors import OperationError
from polynya.model.headers import COPY_CHANGE_IDENTIFIER, PARTITION, STATE, Partition
from polynya.store.data_files import LocalFiles, ReadableFiles

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

    from polynya.lake.iceberg.deletion_vectors import Blob
    from polynya.lake.iceberg.files import DeleteFile

#: What a manifest holds: data files.
_DATA_MANIFEST: Final = 0
#: What a file of a delete manifest holds; the other kind names rows by their values.
_POSITION_DELETES: Final = 1
#: The status of an entry that a commit took out.
_DELETED_ENTRY: Final = 2
_GZIP: Final = b"\x1f\x8b"
#: Tables of which a process keeps what it has read: statements ask for the same few of them.
_KNOWN_TABLES: Final = 16
#: Files that are asked for at the same time where PyIceberg reads them.
_READERS: Final = 16


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of a snapshot: its partition, rows and bytes, and its spec and its sort order."""

    path: str
    partition: str
    rows: int
    size_bytes: int
    spec: int
    sort_order: int | None


class CommittedTable:
    """A table as one metadata file of it has it; nothing is read before it is asked for.

    All raise OSError where a file cannot be read. Two threads may read the same file, each for
    itself.
    """

    def __init__(
        self,
        metadata_location: str,
        files: ReadableFiles,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.metadata_location = metadata_location
        self._files, self._given = files, metadata
        self._read: dict[str, list[Mapping[str, Any]]] = {}

    @property
    def is_local(self) -> bool:
        """Whether its files are on this machine."""
        return LocalFiles().holds(self.metadata_location)

    @classmethod
    def of(cls, table: Table) -> CommittedTable:
        """A table that a catalog of PyIceberg has loaded.

        The metadata is that of the answer: some servers show their clients no file of it.
        """
        local = LocalFiles()
        files = local if local.holds(table.metadata_location) else CatalogFiles(table.io)
        metadata = table.metadata.model_dump(by_alias=True, mode="json", exclude_none=True)
        return cls(table.metadata_location, files, metadata)

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata as Iceberg's specification writes it in JSON."""
        return self._given or document(self._files, self.metadata_location)

    @property
    def metadata_bytes(self) -> int:
        """The size of the metadata without blanks, as the engine counts it."""
        return len(json.dumps(self.metadata, ensure_ascii=False, separators=(",", ":")))

    @cached_property
    def snapshot(self) -> Mapping[str, Any] | None:
        """The current snapshot, None of an empty table."""
        current = self.metadata.get("current-snapshot-id")
        snapshots = self.metadata.get("snapshots") or ()
        return next((one for one in snapshots if one["snapshot-id"] == current), None)

    @cached_property
    def columns(self) -> Mapping[str, Mapping[str, Any]]:
        """The columns of the table now, by name, as Iceberg's specification writes them in JSON."""
        current = self.metadata["current-schema-id"]
        schema = next(one for one in self.metadata["schemas"] if one["schema-id"] == current)
        return {column["name"]: column for column in schema["fields"]}

    @cached_property
    def _manifests(self) -> list[Mapping[str, Any]]:
        return [] if self.snapshot is None else records(self._files, self.snapshot["manifest-list"])

    @property
    def data_manifests(self) -> int:
        """How many manifests of data files the current snapshot has."""
        return sum(_content(one) == _DATA_MANIFEST for one in self._manifests)

    def data_files(self, partitions: Collection[Partition] = tuple(Partition)) -> list[LiveFile]:
        """The data files of some partitions.

        Raises OperationError for one that an engine has written without a partition.
        """
        return [
            LiveFile(
                path=str(file["file_path"]),
                partition=self._partition(file),
                rows=file["record_count"],
                size_bytes=file["file_size_in_bytes"],
                spec=spec,
                sort_order=file.get("sort_order_id"),
            )
            for spec, file in self._live(partitions, deletes=False)
        ]

    def _partition(self, file: Mapping[str, Any]) -> str:
        if not file["partition"]:
            raise self._uncounted("data files without a partition")
        return str(file["partition"][PARTITION])

    def rows(self, partition: Partition) -> int:
        """Rows of a partition, without those that are deleted."""
        files = self.data_files({partition})
        gone = self.deleted_positions(partition, files)
        return sum(file.rows for file in files) - sum(map(len, gone))

    @cached_property
    def state_rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows with the states of the table: `hdr__state`, and what tells whose state it is."""
        return list(self.stored(Partition.ASSET_STATE, (COPY_CHANGE_IDENTIFIER, STATE)))

    def stored(self, partition: Partition, columns: Collection[str]) -> Iterator[dict[str, Any]]:
        """Columns of all rows of a partition; those that a file does not have are left out."""
        files = self.data_files({partition})
        gone = self.deleted_positions(partition, files)
        for file, deleted in zip(files, gone, strict=True):
            with self._files.open(file.path) as source, pq.ParquetFile(source) as rows:
                names = [name for name in rows.schema_arrow.names if name in columns]
                # Not `pq.read_table`: threads that it leaves may abort a process that exits.
                read = rows.read(columns=names, use_threads=False).to_pylist()
            places = frozenset(deleted.to_pylist())
            yield from (row for at, row in enumerate(read) if at not in places)

    def deleted_positions(self, partition: Partition, files: Sequence[LiveFile]) -> list[pa.Array]:
        """The positions of the deleted rows of each of these data files of a partition.

        Raises OperationError where they cannot be told.
        """
        deletes: list[DeleteFile] = []
        for _, file in self._live({partition}, deletes=True):
            if _content(file) != _POSITION_DELETES:
                raise self._uncounted("equality deletes")
            deletes.append(_delete_file(file))
        if not deletes:
            return [pa.array([], pa.int64()) for _ in files]
        # Start-up time: most tables that are looked at have none.
        from polynya.lake.iceberg.deletes import deleted_places, positions

        deleted = deleted_places(self._files, [file.path for file in files], deletes)
        if deleted is None:
            raise self._uncounted("position deletes that are not Parquet")
        return [pc.unique(positions(deleted.places, number)) for number in range(len(files))]

    def _uncounted(self, what: str) -> OperationError:
        table = ".".join(str(self.metadata["location"]).rstrip("/").split("/")[-2:])
        return FOREIGN_DELETES(
            f"{table} has {what}, so its rows are counted by engines only",
            where=self.metadata_location,
            state="the table was only read",
            fix="rewrite the table's files with the engine that made these",
        )

    def _live(
        self, partitions: Collection[Partition], *, deletes: bool
    ) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The live files of some partitions, each with the id of its partition spec.

        Deletes of files without a partition may concern any of them.
        """
        wanted = {str(partition) for partition in partitions}
        for manifest in self._manifests:
            if (_content(manifest) != _DATA_MANIFEST) is not deletes:
                continue
            if not self._may_name(manifest, wanted):
                continue
            for entry in self._entries(manifest["manifest_path"]):
                file = entry["data_file"]
                partition = file["partition"]
                if not partition or partition.get(PARTITION) in wanted:
                    yield manifest["partition_spec_id"], file

    def _entries(self, path: str) -> list[Mapping[str, Any]]:
        """The entries of a manifest, without those that a commit took out."""
        if path not in self._read:
            entries = records(self._files, path)
            self._read[path] = [one for one in entries if one["status"] != _DELETED_ENTRY]
        return self._read[path]

    def _may_name(self, manifest: Mapping[str, Any], wanted: Collection[str]) -> bool:
        """Whether a manifest may name a file of these values of `hdr__partition`, by its bounds."""
        place, bounds = self._place(manifest["partition_spec_id"]), manifest.get("partitions")
        if place is None or not bounds or place >= len(bounds):
            return True
        lower, upper = bounds[place]["lower_bound"], bounds[place]["upper_bound"]
        if lower is None or upper is None:
            return True
        return any(lower <= name.encode() <= upper for name in wanted)

    def _place(self, spec: int) -> int | None:
        """Which field of a partition spec has `hdr__partition`."""
        specs = {one["spec-id"]: one["fields"] for one in self.metadata["partition-specs"]}
        names = [field["name"] for field in specs.get(spec, ())]
        return names.index(PARTITION) if PARTITION in names else None


@lru_cache(maxsize=_KNOWN_TABLES)
def local_table(metadata_location: str) -> CommittedTable:
    """The local table of a metadata file, which never changes: what was read of it stays."""
    return CommittedTable(metadata_location, LocalFiles())


class CommittedTables(Tables[CommittedTable]):
    """The tables and views of a catalog as they were at one moment.

    `reached_by` are the properties by which PyIceberg reaches files that are elsewhere.
    """

    def __init__(self, entries: Sequence[CatalogEntry], reached_by: Mapping[str, str]) -> None:
        self._places, self._reached_by = metadata_files(entries), reached_by
        self._views = {entry.full_name: entry.metadata for entry in entries if entry.is_view}

    @property
    def properties(self) -> Mapping[str, str]:
        """None that a reader asks for."""
        return {}

    @override
    def load_table(self, identifier: tuple[str, str]) -> CommittedTable:
        place = place_of(self._places, identifier)
        local = LocalFiles().holds(place)
        return local_table(place) if local else CommittedTable(place, self._files_of(place))

    def view(self, name: str) -> PublishedView | None:
        """The view that is called `schema.view`; None where there is none, or none of Spark."""
        place = self._views.get(name)
        return None if place is None else PublishedView.of(document(self._files_of(place), place))

    def _files_of(self, place: str) -> ReadableFiles:
        local = LocalFiles()
        return local if local.holds(place) else self._elsewhere

    @cached_property
    def _elsewhere(self) -> ReadableFiles:
        # Start-up time: PyIceberg's files.
        from pyiceberg.io import load_file_io

        place = next(iter(self._places.values()))
        return CatalogFiles(load_file_io(dict(self._reached_by), place))


@dataclass(frozen=True, slots=True)
class PublishedView:
    """A view of a catalog: its text in Spark's SQL, and its properties."""

    sql: str
    properties: Mapping[str, str]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> PublishedView | None:
        """The view of a metadata file; None where Spark has no text of it."""
        try:
            versions = {one["version-id"]: one for one in document["versions"]}
            texts = versions[document["current-version-id"]]["representations"]
            sql = next(one["sql"] for one in texts if one["dialect"] == "spark")
            return cls(str(sql), document.get("properties") or {})
        except (LookupError, TypeError, StopIteration):
            return None


class ConvertedTables(Tables[CommittedTable]):
    """The tables of a catalog that only PyIceberg can ask."""

    def __init__(self, catalog: Tables) -> None:
        self._catalog = catalog

    @property
    def properties(self) -> Mapping[str, str]:
        """Those of the catalog."""
        return self._catalog.properties

    @override
    def load_table(self, identifier: tuple[str, str]) -> CommittedTable:
        return CommittedTable.of(self._catalog.load_table(identifier))


def committed_tables(target: ResolvedTarget) -> Tables[CommittedTable] | None:
    """The tables of a target, all as of the same moment where its catalog can be listed.

    None before the first run. Raises what `refuse_unusable` raises.
    """
    if target.on_glue or target.rest is not None:
        return ConvertedTables(python_catalog(target))
    return listed_tables(target)


def listed_tables(target: ResolvedTarget) -> CommittedTables | None:
    """The same of a catalog in a file or in a database."""
    refuse_unusable(target, CATALOG)
    entries = entries_of(target, CATALOG)
    return CommittedTables(entries, s3_for_python(target)) if entries else None


class CatalogFiles(ReadableFiles):
    """Files as PyIceberg reads those of a table, with the credentials that its catalog gave."""

    def __init__(self, reader: FileIO) -> None:
        self._reader = reader

    @property
    @override
    def readers(self) -> int:
        return _READERS

    @override
    def holds(self, location: str) -> bool:
        return True

    @override
    @contextmanager
    def open(self, location: str) -> Iterator[Any]:
        with self._reader.new_input(location).open() as file:
            yield file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, mode="r")


def document(files: ReadableFiles, location: str) -> Mapping[str, Any]:
    """A metadata file of a table or a view, which may be packed."""
    with files.open(location) as source:
        text = source.read()
    found: Mapping[str, Any] = json.loads(gzip.decompress(text) if text.startswith(_GZIP) else text)
    return found


def records(files: ReadableFiles, location: str) -> list[Mapping[str, Any]]:
    """The records of a manifest or of a list of manifests."""
    with files.open(location) as source:
        content = BytesIO(source.read())
    return [record for record in fastavro.reader(content) if isinstance(record, dict)]


def type_text(kind: str | Mapping[str, Any]) -> str:
    """A type as Iceberg's specification writes it in JSON, in a line: `list<string>`."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "list":
        return f"list<{type_text(kind['element'])}>"
    if kind["type"] == "map":
        return f"map<{type_text(kind['key'])}, {type_text(kind['value'])}>"
    fields = (f"{field['name']}: {type_text(field['type'])}" for field in kind["fields"])
    return f"struct<{', '.join(fields)}>"


def _content(entry: Mapping[str, Any]) -> int:
    """What a manifest, or a file in one, holds; the first version of the format knew data only."""
    return entry.get("content") or 0


def blob_of(file: Mapping[str, Any]) -> Blob | None:
    """Where the deletion vector of an entry of a manifest is; None for another file of deletes."""
    if file.get("content_offset") is None:
        return None
    # Start-up time: bitmaps.
    from polynya.lake.iceberg.deletion_vectors import Blob

    return Blob(
        str(file["referenced_data_file"]),
        int(file["content_offset"]),
        int(file["content_size_in_bytes"]),
        int(file["record_count"]),
    )


def _delete_file(file: Mapping[str, Any]) -> DeleteFile:
    # Start-up time: as above.
    from polynya.lake.iceberg.files import DeleteFile

    blob = blob_of(file)
    return DeleteFile(None, str(file["file_path"]), () if blob is None else (blob.data_file,), blob)
