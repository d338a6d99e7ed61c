"""Deleted rows of data files: read without Spark, and staged in the format of the table.

Format v2 has position deletes, which add up. Format v3 has one deletion vector per data file: a new
vector holds the earlier deletes too, and replaces the files that held them. A table may have both;
what a vector names includes the position deletes of the same data file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from polynya.lake.iceberg.deletion_vectors import Blob, decoded, puffin
from polynya.lake.iceberg.files import DataFile, DeleteFile, FilePartition
from polynya.lake.iceberg.reading import COLUMN_CACHE, each_read, is_read_by
from polynya.lake.iceberg.table import IcebergTable, ThroughJava
from polynya.lake.iceberg.writing import new_location, put_file, write_position_deletes
from polynya.model.error_catalogue.lake import FOREIGN_DELETES
from polynya.model.headers import Partition
from polynya.observe.trace import span
from polynya.store.data_files import ReadableFiles

#: A place is one number: that of its data file, times this, plus its position in the file.
FILE_STEP = 1 << 40
_FILE_BITS = 40
_COLUMNS = ["file_path", "pos"]
_NO_PLACES = pa.array([], pa.int64())


@dataclass(frozen=True, slots=True)
class Deleted:
    """Rows of the data files `paths` that are deleted.

    `places` has (number of the path in `paths`) * FILE_STEP + position, a place possibly twice.
    `named` has each delete file with the data files that it names, those among `paths` and others.
    """

    paths: tuple[str, ...]
    places: pa.Array
    named: tuple[tuple[DeleteFile, frozenset[str]], ...] = ()

    def hold(self, places: pa.Array) -> pa.Array:
        """Whether each of some places is deleted.

        A table may have many more deletes than these, so the set that is built is of these.
        """
        dead = self.places.filter(pc.is_in(self.places, value_set=places))
        return pc.is_in(places, value_set=dead)

    def places_of(self, rows: pa.Table) -> pa.Array:
        """Places of rows given by `file_path` and `pos`; NULL for a data file of no number."""
        numbers = pc.index_in(rows.column("file_path"), value_set=pa.array(self.paths, pa.string()))
        first = pc.multiply(numbers.cast(pa.int64()), FILE_STEP)
        return pc.add(first, rows.column("pos")).combine_chunks()

    def only_named_by(self, gone: Iterable[str], live: Iterable[str]) -> list[DeleteFile]:
        """Delete files that are of no use once the data files `gone` are, of all that are `live`.

        A delete file names data files of one partition, so that `live` need not have those of
        partitions in which nothing goes.
        """
        gone = frozenset(gone)
        left = frozenset(live) - gone
        return [file for file, names in self.named if names & gone and not names & left]


def counted(places: pa.Array) -> dict[int, int]:
    """Number of places by number of their data file."""
    numbers = pc.shift_right(places, _FILE_BITS)
    return {count["values"]: count["counts"] for count in pc.value_counts(numbers).to_pylist()}


def positions(places: pa.Array, number: int) -> pa.Array:
    """Positions of the places in one data file."""
    mine = pc.equal(pc.shift_right(places, _FILE_BITS), number)
    return pc.subtract(places.filter(mine), number * FILE_STEP)


def of_files(places: pa.Array, numbers: Iterable[int]) -> pa.Array:
    """Those of the places, each once, that are in data files of these numbers."""
    wanted = pa.array(numbers, pa.int64())
    return pc.unique(places.filter(pc.is_in(pc.shift_right(places, _FILE_BITS), value_set=wanted)))


def are_read_by(files: ReadableFiles, deletes: Iterable[DeleteFile]) -> bool:
    """Whether these delete files can be read."""
    return all(
        is_read_by(files, delete.path) if delete.blob is None else files.holds(delete.path)
        for delete in deletes
    )


@span("read deletes")
def deleted_places(
    files: ReadableFiles,
    paths: Sequence[str],
    deletes: Sequence[DeleteFile],
    *,
    keep: bool = False,
) -> Deleted | None:
    """Rows of the data files `paths` that `deletes` name.

    None when a file cannot be read here; raises OSError when that fails. `keep`: they are likely to
    be read again.
    """
    if not are_read_by(files, deletes):
        return None
    known_paths = pa.array(paths, pa.string())
    parts = each_read(files, lambda file: _read(files, file, known_paths, keep=keep), deletes)
    places = pa.concat_arrays([_NO_PLACES, *(places for places, _ in parts)])
    named = tuple((delete, names) for delete, (_, names) in zip(deletes, parts, strict=True))
    return Deleted(tuple(paths), places, named)


def _read(
    files: ReadableFiles, deletes: DeleteFile, known_paths: pa.Array, *, keep: bool
) -> tuple[pa.Array, frozenset[str]]:
    """Places in data files that are known, and the names of all data files."""
    if deletes.blob is not None:
        return _read_vector(files, deletes.path, deletes.blob, known_paths)
    rows = _rows(files, deletes.path, keep=keep)
    parts: list[pa.Array] = [_NO_PLACES]
    names: set[str] = set()
    for batch in rows.to_batches():
        named = batch.column("file_path")
        names.update(named.dictionary.to_pylist())
        numbers = pc.index_in(named.dictionary, value_set=known_paths).take(named.indices)
        places = pc.add(pc.multiply(numbers.cast(pa.int64()), FILE_STEP), batch.column("pos"))
        parts.append(places.drop_null())
    return pa.concat_arrays(parts), frozenset(names)


def _rows(files: ReadableFiles, location: str, *, keep: bool) -> pa.Table:
    cached = COLUMN_CACHE.of(location, _COLUMNS) if keep else {}
    if cached:
        return pa.table(cached)
    # As a dictionary, because every row names one of a few files.
    with (
        files.open(location) as source,
        pq.ParquetFile(source, read_dictionary=["file_path"]) as file,
    ):
        rows = file.read(columns=_COLUMNS, use_threads=False)
    if keep:
        COLUMN_CACHE.add(location, {name: rows.column(name) for name in _COLUMNS})
    return rows


def _read_vector(
    files: ReadableFiles, location: str, blob: Blob, known_paths: pa.Array
) -> tuple[pa.Array, frozenset[str]]:
    number = pc.index(known_paths, blob.data_file).as_py()
    if number < 0:
        return _NO_PLACES, frozenset({blob.data_file})
    with files.open(location) as source:
        positions = decoded(source.read_at(blob.size, blob.offset))
    return pc.add(positions, number * FILE_STEP), frozenset({blob.data_file})


#: The first format whose position deletes are vectors.
VECTORS_SINCE = 3


def stage_deletes(
    table: IcebergTable, snapshot: int, places: pa.Table, add: Sequence[DataFile] = ()
) -> tuple[list[DeleteFile], list[DeleteFile]]:
    """Delete files for rows at `places` (`writing.PLACES`), and live ones that they replace.

    `snapshot` is the one that the step is based on, `add` are data files that it adds. Raises
    OperationError where the table has deletes that cannot be put into a vector.
    """
    slots = _slots(table, snapshot, places, add)
    if table.format_version() < VECTORS_SINCE:
        return write_position_deletes(table, places, slots), []
    live = table.position_deletes(snapshot)
    if live is None:
        raise FOREIGN_DELETES(where=table.name, table=table.name)
    return _write_vectors(table, live, places, slots)


def _slots(
    table: IcebergTable, snapshot: int, places: pa.Table, add: Sequence[DataFile]
) -> dict[str, FilePartition]:
    """Partitions of data files that are found by more than `PARTITION`, by their path.

    Deletes of a file belong to its partition, or a scan of it does not find them.
    """
    if not table.java_files().has_several:
        return {}
    live = (
        file
        for partition in pc.unique(places.column("part")).to_pylist()
        for file in table.files(Partition(partition), snapshot)
    )
    return {file.path: file.slot for file in chain(live, add) if file.values is not None}


@span("write deletes")
def _write_vectors(
    table: IcebergTable,
    live: Sequence[DeleteFile],
    places: pa.Table,
    slots: Mapping[str, FilePartition],
) -> tuple[list[DeleteFile], list[DeleteFile]]:
    partitions = dict(
        zip(places.column("file_path").to_pylist(), places.column("part").to_pylist(), strict=True)
    )
    files = sorted(partitions)
    before = _deleted_before(table, live, files)
    dead = pc.unique(pa.concat_arrays([before.places, before.places_of(places).cast(pa.int64())]))
    content, blobs = puffin(list(_by_file(files, dead)))
    path = new_location(table, "-deletes.puffin")
    put_file(table, path, content)
    java_files, staged = table.java_files(), []
    for blob in blobs:
        slot = slots.get(blob.data_file) or FilePartition(partitions[blob.data_file])
        java = java_files.vector(path, len(content), blob, slot)
        staged.append(DeleteFile(java, path, (blob.data_file,), blob))
    # Readers look at no other delete of a data file that has a vector.
    covered = {*files, *(file.blob.data_file for file in live if file.blob is not None)}
    replaced = [
        file for file, names in before.named
        if (names <= covered if file.blob is None else file.blob.data_file in partitions)
    ]  # fmt: skip
    return staged, replaced


def _deleted_before(
    table: IcebergTable, live: Sequence[DeleteFile], files: Sequence[str]
) -> Deleted:
    """What is deleted of some data files. Raises OSError."""
    wanted = set(files)
    deletes = [file for file in live if file.blob is None or file.blob.data_file in wanted]
    reach = table.reach().reads
    store: ReadableFiles = ThroughJava(table)
    if not isinstance(reach, str) and are_read_by(reach, deletes):
        store = reach
    deleted = deleted_places(store, files, deletes)
    assert deleted is not None, "Java reads what the table has"
    return deleted


def _by_file(files: Sequence[str], dead: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Positions of the places in each data file, in ascending order."""
    ordered, counts = dead.take(pc.sort_indices(dead)), counted(dead)
    at = 0
    for number, path in enumerate(files):
        yield path, pc.subtract(ordered.slice(at, counts[number]), number * FILE_STEP)
        at += counts[number]
