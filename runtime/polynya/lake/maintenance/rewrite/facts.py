"""What is known of the live files of a table before some are written again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.deletes.positions import Deleted, are_read_by, counted, deleted_places
from polynya.lake.iceberg.files import DataFile, DeleteFile
from polynya.lake.iceberg.gateway import IcebergTable, ThroughJava
from polynya.lake.iceberg.parting.wanted import Wanted
from polynya.lake.iceberg.reading import each_read, is_read_by, stored_file
from polynya.lake.maintenance.rewrite.plan import REWRITTEN, WINDOWS, FileFacts
from polynya.lake.maintenance.rewrite.sorting import ordered_by
from polynya.model.config.dataset import Layout
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles, ReadFiles


@dataclass(frozen=True, slots=True)
class Seen:
    """The files of one snapshot, all of its delete files, and the rows that these delete.

    `wanted` is the layout that new files get.
    """

    snapshot: int
    wanted: Wanted
    files: tuple[FileFacts, ...]
    deletes: tuple[DeleteFile, ...]
    deleted: Deleted


def reader_of(table: IcebergTable, deletes: Sequence[DeleteFile]) -> ReadFiles:
    """What reads these delete files of a table: Arrow, or else Java."""
    store = table.reach().reads
    reaches = not isinstance(store, str) and are_read_by(store, deletes)
    return store if reaches and not isinstance(store, str) else ThroughJava(table)


@span("look at files")
def look(
    table: IcebergTable,
    snapshot: int,
    shape: Shape,
    layout: Layout,
    *,
    keep: timedelta | None = None,
) -> Seen | str:
    """What is known of a snapshot, or why nothing of it may be written again.

    `keep` is how long applied events are kept, None where they do not go. Raises OSError.
    """
    live = table.position_deletes(snapshot)
    if live is None:
        return "there are equality deletes, or position deletes that are no Parquet"
    files = [file for partition in REWRITTEN for file in table.files(partition, snapshot)]
    paths = [file.path for file in files]
    deleted = deleted_places(reader_of(table, live), paths, live)
    if deleted is None:
        return "delete files are in another place than the table"
    dead = counted(pc.unique(deleted.places))
    named = Counter(path for _, names in deleted.named for path in names)
    lows, java_files = _lows(table, files, shape, layout), table.java_files()
    newest, order = java_files.newest.number, java_files.order
    wanted = Wanted.by(newest, order, table.columns(), layout.sort_by)
    facts = (
        FileFacts(
            number, file, dead.get(number, 0), named[file.path],
            lows[number], _window(file, lows[number], keep),
            not wanted.is_parted(file.partition, java_files.spec_id(file.slot)),
            not wanted.is_sorted(file.partition, file.sort_order),
        )
        for number, file in enumerate(files)
    )  # fmt: skip
    return Seen(snapshot, wanted, tuple(facts), live, deleted)


def _lows(
    table: IcebergTable, files: Sequence[DataFile], shape: Shape, layout: Layout
) -> list[Any]:
    """The lowest value of what each file is ordered by, None where that is not known."""
    store = table.reach().reads
    if isinstance(store, str):
        return [None] * len(files)
    columns = {one["name"]: one for one in table.columns()}

    def low(file: DataFile) -> Any:
        order = ordered_by(layout, shape, file.partition)
        name = order[0][0] if order else _AGES.get(Partition(file.partition))
        return _low(store, file, columns[name]) if name in columns else None

    return each_read(store, low, files)


#: What files are joined by where their rows are not ordered by key. Rejected records have neither.
_AGES: Final = {
    Partition.CURRENT: h.CHANGE_IDENTIFIER,
    Partition.PRIOR: h.CHANGE_IDENTIFIER,
    Partition.RETAINED: h.WAS_CURRENT_FROM,
}


def _low(store: DataFiles, file: DataFile, column: Mapping[str, Any]) -> Any:
    if not is_read_by(store, file.path):
        return None
    try:
        stored = stored_file(store, file.path)
    except (OSError, pa.ArrowInvalid):
        return None
    bounds = [stored.bounds(group, column) for group in stored.groups]
    known = [one[0] for one in bounds if one is not None]
    return min(known) if known and len(known) == len(bounds) else None


def _window(file: DataFile, low: Any, keep: timedelta | None) -> Hashable:
    """What may be joined: kept events of about the same age, so that they can go in time."""
    if file.partition != Partition.RETAINED or keep is None:
        return None
    if not isinstance(low, datetime):
        return file.path
    return int(low.timestamp() // max(1.0, keep.total_seconds() / WINDOWS))
