"""Stage deletes of rows as the format of the table has them.

Format v2 has position deletes, which add up. Format v3 has one deletion vector for a data file: the
new one holds what was deleted before, and takes the place of what said so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.deletes.positions import (
    FILE_STEP,
    Deleted,
    are_read_by,
    counted,
    deleted_places,
)
from polynya.lake.iceberg.deletion_vectors import puffin
from polynya.lake.iceberg.files import DataFile, DeleteFile, Slot
from polynya.lake.iceberg.gateway import IcebergTable, ThroughJava
from polynya.lake.iceberg.staging import new_location, put_file, write_position_deletes
from polynya.model.contract.headers import Partition
from polynya.model.errors import OperationError
from polynya.observe.trace import span
from polynya.store.data_files import ReadFiles

#: The first format whose position deletes are vectors.
VECTORS_SINCE = 3


def stage_deletes(
    table: IcebergTable, snapshot: int, places: pa.Table, add: Sequence[DataFile] = ()
) -> tuple[list[DeleteFile], list[DeleteFile]]:
    """Delete files for rows at `places` (`staging.PLACES`), and live ones that they replace.

    `snapshot` is the one that the step is based on, `add` are data files that it adds. Raises
    OperationError where the table has deletes that cannot be put into a vector.
    """
    slots = _slots(table, snapshot, places, add)
    if table.format_version() < VECTORS_SINCE:
        return write_position_deletes(table, places, slots), []
    live = table.position_deletes(snapshot)
    if live is None:
        raise other_deletes(table)
    return _write_vectors(table, live, places, slots)


def _slots(
    table: IcebergTable, snapshot: int, places: pa.Table, add: Sequence[DataFile]
) -> dict[str, Slot]:
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


def other_deletes(table: IcebergTable) -> OperationError:
    """The error of a table of format v3 that somebody else gave deletes of another kind."""
    return OperationError(
        "POLYNYA-LAKE-023",
        f"{table.name} has equality deletes, or position deletes that are no Parquet; "
        "format v3 needs them in deletion vectors, and Polynya cannot put them there",
        where=table.name,
        state="nothing of this step was written; the table is as it was",
        fix="rewrite these deletes with the engine that made them, or compact the table with it",
    )


@span("write deletes")
def _write_vectors(
    table: IcebergTable, live: Sequence[DeleteFile], places: pa.Table, slots: Mapping[str, Slot]
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
        slot = slots.get(blob.data_file) or Slot(partitions[blob.data_file])
        java = java_files.vector(path, len(content), blob, slot)
        staged.append(DeleteFile(java, path, (blob.data_file,), blob))
    # Readers look at no other delete of a data file that has a vector.
    covered = {*files, *(one.blob.data_file for one in live if one.blob is not None)}
    replaced = [
        one for one, names in before.named
        if (names <= covered if one.blob is None else one.blob.data_file in partitions)
    ]  # fmt: skip
    return staged, replaced


def _deleted_before(
    table: IcebergTable, live: Sequence[DeleteFile], files: Sequence[str]
) -> Deleted:
    """What is deleted of some data files. Raises OSError."""
    wanted = set(files)
    deletes = [one for one in live if one.blob is None or one.blob.data_file in wanted]
    reach = table.reach().reads
    store: ReadFiles = ThroughJava(table)
    if not isinstance(reach, str) and are_read_by(reach, deletes):
        store = reach
    found = deleted_places(store, files, deletes)
    assert found is not None, "Java reads what the table has"
    return found


def _by_file(files: Sequence[str], dead: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Positions of the places in each data file, in ascending order."""
    ordered, counts = dead.take(pc.sort_indices(dead)), counted(dead)
    at = 0
    for number, path in enumerate(files):
        yield path, pc.subtract(ordered.slice(at, counts[number]), number * FILE_STEP)
        at += counts[number]
