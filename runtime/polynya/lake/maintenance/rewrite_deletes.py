"""`rewrite_position_delete_files`: join many small files of position deletes into few.

Each apply leaves one such file per partition, and a reader of any data file opens all of them. In
format v3 each apply keeps one vector per data file, so there is nothing to join.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.iceberg.deletes import VECTORS_SINCE, counted, deleted_places, positions
from polynya.lake.iceberg.files import DataFile, DeleteFile, FilePartition
from polynya.lake.iceberg.reading import each_read
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import PLACES
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.rewrite_data_files import PATIENCE_SECONDS
from polynya.lake.maintenance.rewrite_plan import joining, reader_of
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.maintenance import ActionName
from polynya.model.errors import ConflictError
from polynya.model.headers import Partition
from polynya.observe.trace import span

ACTION: Final[ActionName] = "rewrite_position_delete_files"
#: Bytes that a position takes at most: its number, and a path that repeats.
POSITION_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class DeleteRule:
    """When files of position deletes become one.

    growth: the result has this many times the positions of the largest of them, so that a position
        is written O(log n) times.
    least_files: of a partition, fewer stay.
    """

    growth: float = 4.0
    least_files: int = 8

    def thorough(self) -> DeleteRule:
        """As few files as there can be."""
        return DeleteRule(growth=1.0, least_files=2)


RULE: Final = DeleteRule()


@dataclass(frozen=True, slots=True)
class PositionDeletes:
    """A live file of position deletes, and what it says.

    `places` are deleted rows of live data files; `slot` is the partition of these, None where it
    names no live file.
    """

    file: DeleteFile
    places: pa.Array
    slot: FilePartition | None


@dataclass(frozen=True, slots=True)
class Fold:
    """Delete files to remove, and the places that must stay deleted."""

    gone: tuple[PositionDeletes, ...]
    places: pa.Array

    @property
    def why(self) -> str:
        """Why the delete files are rewritten."""
        return f"{len(self.gone):,} small delete files"


def rewrite_position_delete_files(
    target: DatasetTable, limits: ActionLimits, rule: DeleteRule = RULE
) -> ActionOutcome:
    """Join many delete files into few; see `rewrite_data_files` for what it raises."""
    began = time.monotonic()
    done = _done(target, limits, rule)
    return replace(done, seconds=round(time.monotonic() - began, 3))


@span("rewrite delete files", table=attrgetter("table.name"))
def _done(target: DatasetTable, limits: ActionLimits, rule: DeleteRule) -> ActionOutcome:
    snapshot, table = target.state.snapshot, target.table
    if snapshot is None:
        return ActionOutcome(ACTION, "the table is empty")
    if table.format_version() >= VECTORS_SINCE:
        return ActionOutcome(ACTION, "with format v3 each data file has one vector")
    with table.keeping(snapshot):
        live = table.position_deletes(snapshot)
        if live is None:
            return ActionOutcome(
                ACTION, "there are equality deletes, or position deletes in no Parquet"
            )
        files = [file for partition in Partition for file in table.files(partition, snapshot)]
        try:
            deletes = _read(table, files, live)
        except (OSError, pa.ArrowInvalid) as error:
            table.forget_deletes()
            return ActionOutcome(ACTION, f"a delete file was not read: {error}", whole=False)
        fold = plan_deletes(deletes, rule)
        if fold is None:
            return ActionOutcome(ACTION, "the delete files are few")
        over = limits.budget_bytes is not None and (
            POSITION_BYTES * len(fold.places) > limits.budget_bytes
        )
        if over or limits.give_way():
            why = "the budget is used up" if over else "it gave way"
            return ActionOutcome(ACTION, why, whole=False)
        return _land(target, fold, files)


def _read(
    table: IcebergTable, files: Sequence[DataFile], live: Sequence[DeleteFile]
) -> list[PositionDeletes]:
    """What each delete file says. Raises OSError."""
    store, paths = reader_of(table, live), [file.path for file in files]

    def read(file: DeleteFile) -> PositionDeletes:
        deleted = deleted_places(store, paths, [file])
        if deleted is None:
            raise OSError(f"{file.path} is in another place than the table")
        number = next(iter(counted(deleted.places[:1])), None)
        return PositionDeletes(file, deleted.places, None if number is None else files[number].slot)

    return each_read(store, read, live)


def plan_deletes(deletes: Sequence[PositionDeletes], rule: DeleteRule) -> Fold | None:
    """Which delete files become one in each partition, None where that does not pay."""
    by_slot: dict[FilePartition, list[PositionDeletes]] = defaultdict(list)
    gone = [delete for delete in deletes if delete.slot is None]
    for delete in deletes:
        if delete.slot is not None:
            by_slot[delete.slot].append(delete)
    for some in by_slot.values():
        some.sort(key=lambda delete: (len(delete.places), delete.file.path))
        gone += some[
            : joining([len(delete.places) for delete in some], rule.growth, rule.least_files)
        ]
    if not gone:
        return None
    return Fold(tuple(gone), pc.unique(pa.concat_arrays([delete.places for delete in gone])))


def _land(target: DatasetTable, fold: Fold, files: Sequence[DataFile]) -> ActionOutcome:
    """Commit, unless one of the delete files is gone."""
    table = target.table
    with target.between_applies(PATIENCE_SECONDS) as free:
        if not free:
            why = f"an apply was at work for longer than {PATIENCE_SECONDS:.0f} s"
            return ActionOutcome(ACTION, why, whole=False)
        snapshot = target.state.snapshot
        assert snapshot is not None, "files were read from a snapshot"
        before = {delete.place for delete in table.position_deletes(snapshot) or ()}
        if any(delete.file.place not in before for delete in fold.gone):
            # Rolled back, or done by another process: its contents may no longer hold.
            return ActionOutcome(ACTION, "another step has removed some of the files", whole=False)
        live = {file.path for partition in Partition for file in table.files(partition, snapshot)}
        removed = _rows(files, fold.places, live)
        try:
            after = target.commit(
                apply=target.state.apply,
                removed=removed if removed.num_rows else None,
                drop=[delete.file for delete in fold.gone],
                summary={
                    "polynya.step": "rewrite-position-delete-files",
                    "polynya.reason": fold.why,
                },
            )
        except ConflictError as error:
            target.reload()
            return ActionOutcome(ACTION, error.message, whole=False)
        added = [
            delete for delete in table.position_deletes(after) or () if delete.place not in before
        ]
    return ActionOutcome(
        ACTION,
        f"{fold.why} became {len(added):,}",
        commits=1,
        files_removed=len(fold.gone),
        files_added=len(added),
        read_bytes=_size(delete.file for delete in fold.gone),
        written_bytes=_size(added),
    )


def _rows(files: Sequence[DataFile], places: pa.Array, live: Set[str]) -> pa.Table:
    """Places in data files that are live, as `writing.PLACES`."""
    parts = [PLACES.empty_table()]
    for number in counted(places):
        file = files[number]
        if file.path in live:
            rows = positions(places, number)
            names = (file.partition, file.path)
            text = [pa.repeat(pa.scalar(name, pa.string()), len(rows)) for name in names]
            parts.append(pa.table([*text, rows], schema=PLACES))
    return pa.concat_tables(parts)


def _size(files: Iterable[DeleteFile]) -> int:
    return sum(int(file.java.fileSizeInBytes()) for file in files)
