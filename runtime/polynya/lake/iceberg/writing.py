"""Write data and delete files that no snapshot knows yet: by Spark, or by Arrow without it.

No snapshot knows a staged file, and nobody reads it, until a commit makes it part of the table
(`lake/iceberg/commit.py`).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polynya.lake.iceberg.arrow_columns import as_stored
from polynya.lake.iceberg.files import DataFile, DeleteFile, FilePartition, listed
from polynya.lake.iceberg.reading import TableFile, each_read
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.spark.session import use_in_this_thread
from polynya.model import headers as h
from polynya.model.headers import PARTITION, Partition
from polynya.observe.trace import count, span
from polynya.store.data_files import DataFiles

if TYPE_CHECKING:
    from polynya.lake.spark.api import DataFrame

# Field ids that the Iceberg specification reserves for position delete files.
_FILE_PATH_ID, _POS_ID = 2147483546, 2147483545
#: Places of rows in a table: partition, data file, position in it.
PLACES = pa.schema([("part", pa.string()), ("file_path", pa.string()), ("pos", pa.int64())])
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


@span("write files", by="Spark")
def stage(
    table: IcebergTable, rows: DataFrame, *, laid_out: bool = True, within: Any = None
) -> list[DataFile]:
    """Let Spark write `rows`, which have all columns of the table.

    `laid_out`: there may be rows of Current or Prior, which the newest partition spec is for.
    Uses the path of Iceberg's own compaction: Spark writes, a coordinator keeps the files, nothing
    commits. `within` is a Java `Transaction` whose columns the rows have.
    """
    use_in_this_thread(table.spark)
    group = str(uuid4())
    java = table.java if within is None else within.table()
    java_files = table.java_files()
    spec = java_files.newest if laid_out else java_files.plain
    cache = table.iceberg.spark.SparkTableCache.get()
    coordinator = table.iceberg.spark.FileRewriteCoordinator.get()
    cache.add(group, java)
    try:
        (
            rows.write.format("iceberg")
            .mode("append")
            .option("output-spec-id", str(spec.number))
            # Rows of one partition in one task: else each task writes a file for each of them.
            .option("distribution-mode", "none" if spec.is_plain else "hash")
            .option("fanout-enabled", "true")
            .save(group)
        )
        files = listed(coordinator.fetchNewFiles(java, group))
    finally:
        cache.remove(group)
        coordinator.clearRewrite(java, group)
    count("files_written", len(files))
    return [java_files.known(file) for file in files]


@span("write files", by="Arrow")
def write_rows(table: IcebergTable, rows: pa.Table) -> list[DataFile]:
    """Write rows that are in memory, one data file for each partition, without Spark.

    `rows` has columns of the table, not necessarily all of them: the others are NULL.
    """
    return [write_part(table, slot, some) for slot, some in split_by_partition(table, rows)]


def split_by_partition(
    table: IcebergTable, rows: pa.Table
) -> Iterator[tuple[FilePartition, pa.Table]]:
    """Rows in memory by the partition of Iceberg that they belong to, as `as_stored` gives them."""
    rows, java_files = as_stored(rows, table.columns()), table.java_files()
    partitions = rows.column(PARTITION)
    present = sorted(pc.unique(partitions).to_pylist())
    for partition in present:
        here = rows if len(present) == 1 else rows.filter(pc.equal(partitions, partition))
        if java_files.parts_of(partition):
            yield from java_files.parting.parts(here)
        else:
            yield FilePartition(partition), here


def write_part(table: IcebergTable, slot: FilePartition, rows: pa.Table) -> DataFile:
    """Write rows of one partition of Iceberg, as `split_by_partition` gives them, without Spark."""
    # Found by its partition alone: bounds of the columns of a state would help nobody, and in a
    # footer they would be the whole state, twice.
    is_state = slot.partition == Partition.ASSET_STATE
    if rows.num_rows <= _PLAIN_ROWS:
        there = [name for name in _OFTEN_EMPTY if name in rows.column_names]
        rows = rows.drop_columns(
            [name for name in there if rows.column(name).null_count == rows.num_rows]
        )
    written = _put(table, [rows], bounds=not is_state)
    footer = None if is_state else written.footer
    return written_file(
        table, written.path, slot, footer, rows=rows.num_rows, size_bytes=written.size_bytes
    )


def write_groups(
    table: IcebergTable,
    slot: FilePartition,
    groups: Iterable[pa.Table],
    sort_order: int | None = None,
) -> DataFile:
    """Write one data file of at least one table, each as `as_stored` gives it, without Spark."""
    written = _put(table, groups)
    return written_file(
        table, written.path, slot, written.footer,
        rows=written.rows, size_bytes=written.size_bytes, sort_order=sort_order,
    )  # fmt: skip


def written_file(
    table: IcebergTable, path: str, slot: FilePartition, footer: bytes | None, *, rows: int,
    size_bytes: int, sort_order: int | None = None,
) -> DataFile:  # fmt: skip
    """A file that was written without Spark, as a data file of the table.

    Its metrics come from `footer`, see `footer_of`; None: it has none. `sort_order` is the id of
    the table's sort order that its rows are in, None for none.
    """
    java_files = table.java_files()
    file = DataFile(
        None, path, slot.partition, rows, size_bytes, slot.spec, slot.values, sort_order
    )
    return file if footer is None else replace(file, java=java_files.measured(file, footer))


def footer_of(metadata: Any) -> bytes:
    """A Parquet file without rows that has the footer of a written one, a `pq.FileMetaData`."""
    buffer = io.BytesIO()
    metadata.write_metadata_file(buffer)
    return buffer.getvalue()


def data_folder(table: IcebergTable) -> str:
    """The location where new data files go, with a `/` at the end."""
    return table.java_files().location("x.parquet").removesuffix("x.parquet")


@span("write deletes")
def write_position_deletes(
    table: IcebergTable, places: pa.Table, slots: Mapping[str, FilePartition]
) -> list[DeleteFile]:
    """Write v2 position deletes, one file for each partition of Iceberg.

    `places` has the columns PLACES; `slots` are the partitions of data files that are found by more
    than `PARTITION`.
    """
    numbers, of_row = _numbered(places, slots)
    return [
        _write_deletes(table, slot, places.filter(pc.equal(of_row, number)))
        for slot, number in numbers.items()
    ]


def _numbered(
    places: pa.Table, slots: Mapping[str, FilePartition]
) -> tuple[dict[FilePartition, int], pa.ChunkedArray]:
    """Partitions of Iceberg with a number each, and that of each place."""
    numbers: dict[FilePartition, int] = {}
    if not slots:
        for partition in sorted(pc.unique(places.column("part")).to_pylist()):
            numbers[FilePartition(partition)] = len(numbers)
        partitions = pa.array([slot.partition for slot in numbers], pa.string())
        return numbers, pc.index_in(places.column("part"), value_set=partitions)
    pairs = places.group_by(["part", "file_path"]).aggregate([]).to_pylist()
    of_path = {
        pair["file_path"]: numbers.setdefault(
            slots.get(pair["file_path"]) or FilePartition(pair["part"]), len(numbers)
        )
        for pair in sorted(pairs, key=lambda pair: (pair["part"], pair["file_path"]))
    }
    at = pc.index_in(places.column("file_path"), value_set=pa.array(of_path, pa.string()))
    return numbers, pa.chunked_array([pa.array(of_path.values(), pa.int32())]).take(at)


def _write_deletes(table: IcebergTable, slot: FilePartition, places: pa.Table) -> DeleteFile:
    ordered = places.sort_by([("file_path", "ascending"), ("pos", "ascending")])
    arrays = [ordered.column(name).combine_chunks() for name in ("file_path", "pos")]
    rows = pa.Table.from_arrays(arrays, schema=POSITION_DELETE_SCHEMA)
    written = _put(table, [rows], "-deletes", bounds=rows.num_rows > _PLAIN_ROWS)
    touched = tuple(sorted(pc.unique(arrays[0]).to_pylist()))
    file = DataFile(
        None, written.path, slot.partition, written.rows, written.size_bytes, slot.spec, slot.values
    )
    return DeleteFile(table.java_files().position_deletes(file, touched), written.path, touched)


#: Up to so many rows a dictionary of each column takes more room than it saves.
_PLAIN_ROWS: Final = 1000
#: Header columns of which a small file need not say that they are NULL in all of its rows: each
#: takes some 200 bytes. Nothing filters by their NULLs, which costs DuckDB 1.4 such a file.
_OFTEN_EMPTY: Final = (
    h.SEQUENCE_TAIL,
    h.SOURCE_POSITION,
    h.INSERTED_TIMESTAMP,
    h.MODIFIED_TIMESTAMP,
    h.WAS_CURRENT_TO,
)


@dataclass(frozen=True, slots=True)
class _Written:
    path: str
    size_bytes: int
    rows: int
    footer: bytes


def _put(
    table: IcebergTable, groups: Iterable[pa.Table], suffix: str = "", *, bounds: bool = True
) -> _Written:
    """Write a Parquet file with a row group or more for each table. Raises OSError."""
    iterator = iter(groups)
    first = next(iterator)
    buffer, footers = io.BytesIO(), []  # type: tuple[io.BytesIO, list[Any]]
    # Readers of Iceberg know the columns by their ids; Arrow's own schema would be half a footer.
    with pq.ParquetWriter(
        buffer, first.schema, compression="zstd", compression_level=1, metadata_collector=footers,
        store_schema=False, use_dictionary=first.num_rows > _PLAIN_ROWS, write_statistics=bounds,
    ) as writer:  # fmt: skip
        for rows in chain([first], iterator):
            writer.write_table(rows)
    content = buffer.getvalue()
    path = new_location(table, f"{suffix}.parquet")
    put_file(table, path, content)
    return _Written(path, len(content), footers[0].num_rows, footer_of(footers[0]))


def new_location(table: IcebergTable, ending: str) -> str:
    """A location of its own for a new data or delete file."""
    return table.java_files().location(f"{uuid4()}{ending}")


def put_file(table: IcebergTable, path: str, content: bytes) -> None:
    """Write a small file. Raises OSError."""
    count("files_written")
    files = table.reach().writes
    if isinstance(files, str) or not files.holds(path):
        table.put(path, content)
    else:
        files.put(path, content)


#: Rows of small files are collected up to a row group of this many.
_GROUP_ROWS = 250_000


@dataclass(frozen=True, slots=True)
class FileToRewrite:
    """A data file to rewrite: its footer, and the positions of the rows that go."""

    file: DataFile
    stored: TableFile
    dead: pa.Array


class UnreadRowsError(OSError):
    """A source file of a rewrite cannot be read; the table is unchanged."""


@span("write live rows")
def write_live_rows(
    table: IcebergTable,
    store: DataFiles,
    sources: Sequence[FileToRewrite],
    also: pa.Table | None = None,
) -> DataFile | None:
    """One new file with the live rows of `sources`; None when there are none.

    All of one partition of Iceberg, and so is the new file. `also` are rows of that partition in
    memory, which come first; columns of the table that they lack are NULL. Raises
    `UnreadRowsError` when a source cannot be read, OSError when the new file cannot be written.
    """
    count("files_rewritten", len(sources))
    columns = table.columns()
    head = [] if also is None or not also.num_rows else [as_stored(also, columns)]
    empty = no_rows([source.stored for source in sources], columns, *head)
    groups = _grouped(empty, chain(head, _live(store, sources, columns)))
    first = next(groups, None)
    if first is None:
        return None
    # The rows of one file keep their order.
    order = sources[0].file.sort_order if len(sources) == 1 and not head else None
    return write_groups(table, sources[0].file.slot, chain([first], groups), order)


def no_rows(
    files: Sequence[TableFile], columns: Sequence[Mapping[str, Any]], *others: pa.Table
) -> pa.Table:
    """An empty table with all columns that some of the files or `others` have, as stored."""
    kinds = [*(table.slice(0, 0) for table in others), *(file.empty(columns) for file in files)]
    return as_stored(pa.concat_tables(kinds, promote_options="default"), columns)


def _live(
    store: DataFiles, sources: Sequence[FileToRewrite], columns: Sequence[Mapping[str, Any]]
) -> Iterator[pa.Table]:
    """Live rows, from as many row groups at the same time as are read best."""
    parts = [(source, group) for source in sources for group in source.stored.groups]
    for at in range(0, len(parts), store.readers):
        some = parts[at : at + store.readers]
        try:
            read = each_read(store, lambda part: _of_group(*part, columns), some)
        except (OSError, pa.ArrowInvalid) as error:
            raise UnreadRowsError(str(error)) from error
        yield from (rows for rows in read if rows.num_rows)


def rows_of_group(
    file: DataFile, stored: TableFile, group: int, columns: Sequence[Mapping[str, Any]]
) -> pa.Table:
    """All rows of a row group, deleted ones too, with the columns that the file has, as stored."""
    rows = stored.read(group, stored.own(columns))
    # A file need not hold the column that its partition is made of.
    partition = pa.repeat(pa.scalar(file.partition, pa.string()), rows.num_rows)
    others = rows.drop_columns([name for name in rows.column_names if name == PARTITION])
    return as_stored(others.append_column(PARTITION, partition), columns)


def _of_group(source: FileToRewrite, group: int, columns: Sequence[Mapping[str, Any]]) -> pa.Table:
    rows = rows_of_group(source.file, source.stored, group, columns)
    start = source.stored.starts[group]
    here = pa.arange(start, start + rows.num_rows)
    return rows.filter(pc.invert(pc.is_in(here, value_set=source.dead)))


def _grouped(empty: pa.Table, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, in tables that are not small and have the columns of `empty`."""
    held = [empty]
    for rows in tables:
        held.append(rows)
        if sum(table.num_rows for table in held) >= _GROUP_ROWS:
            yield pa.concat_tables(held, promote_options="default")
            held = [empty]
    if len(held) > 1:
        yield pa.concat_tables(held, promote_options="default")
