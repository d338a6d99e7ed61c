"""How rows leave the table in an apply: position deletes, rewritten files, tombstones.

A position delete costs the same whatever the size of its file, but every reader pays for it, and
for the dead rows, until the file is rewritten. So an apply rewrites a file once a good part of its
rows is dead: each changed row has then caused a few rows to be written, whatever the size of the
table (docs/adr/0016-deleted-rows.md).

Without history a tombstone leaves Prior when its retention is over. The horizon is the highest
sequence of those that left: older events have no place any more. With history Prior keeps every
delete for ever, and there is no horizon (semantics section 4).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.run import ApplyRun
from polynya.lake.fold.fold import TRUNCATED
from polynya.lake.fold.sql import STORED_SEQUENCE, timestamp_literal, within
from polynya.lake.fold.stored import AppliedRows
from polynya.lake.iceberg.deletes import Deleted, counted, deleted_places, positions
from polynya.lake.iceberg.files import DataFile, DeleteFile
from polynya.lake.iceberg.reading import is_read_by, stored_file
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import (
    FileToRewrite,
    split_by_partition,
    write_live_rows,
    write_part,
)
from polynya.lake.spark.api import DataFrame, functions
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import quote
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles

#: An event that is older than a truncate keeps its place: truncates are never forgotten.
_HORIZON = f"IF({h.SOURCE_POSITION} <=> '{TRUNCATED}', NULL, {STORED_SEQUENCE})"


@dataclass(frozen=True, slots=True)
class Purge:
    """Rows to remove (columns part, file_path, pos; None for none) and the horizon after it."""

    horizon: str | None
    positions: pa.Table | None = None
    oldest_kept: str | None = None

    def oldest_tombstone(self, figures: AppliedRows, now: datetime) -> str | None:
        """When the oldest tombstone that stays was written; the apply at `now` may write some."""
        if self.oldest_kept is not None:
            return self.oldest_kept
        return now.isoformat() if figures.prior else None


@span("tombstones")
def find_purge(run: ApplyRun, now: datetime, events: DataFrame | None = None) -> Purge:
    """Tombstones that were written longer than `tombstone_retention` ago.

    Age is engine time: a capture of last year must not lose its tombstones while it is being
    loaded. `events` are those that are kept for a while, as rows of the table: a tombstone stays
    while one of them is older, or a rebuild would bring its record back.
    """
    shape, settings, state = run.shape, run.target.dataset.kept, run.target.state.apply
    cutoff = now - settings.tombstone_retention
    oldest = state.oldest_tombstone
    for_ever = shape.history or settings.changes_retention == "keep"
    if for_ever or oldest is None or datetime.fromisoformat(oldest) >= cutoff:
        return Purge(state.horizon, oldest_kept=oldest)
    keys = [f"{quote(key)} AS __k{index}" for index, key in enumerate(shape.keys)]
    rows = run.sql(
        f"SELECT '{Partition.PRIOR}' AS part, _file AS file_path, _pos AS pos, "
        f"{h.WAS_CURRENT_TO} AS written, {STORED_SEQUENCE} AS seq, {_HORIZON} AS horizon, "
        f"{', '.join(keys)} "
        f"FROM {run.table} WHERE {within(Partition.PRIOR)}"
    )
    old = rows.where(f"written < {timestamp_literal(cutoff)}")
    kept = rows.where(f"written >= {timestamp_literal(cutoff)}")
    if events is not None:
        same = " AND ".join(f"o.__k{index} <=> e.__k{index}" for index in range(len(keys)))
        older = events.selectExpr(*keys, f"{STORED_SEQUENCE} AS seq").alias("e")
        needed = functions.expr(f"{same} AND e.seq <= o.seq")
        kept = kept.unionAll(old.alias("o").join(older, needed, "left_semi"))
        old = old.alias("o").join(older, needed, "left_anti")
    oldest_kept = kept.selectExpr("min(written)").first()
    gone = old.select("part", "file_path", "pos", "horizon").toArrow()
    horizons = [state.horizon, *gone.column("horizon").to_pylist()]
    return Purge(
        horizon=max((value for value in horizons if value is not None), default=None),
        positions=gone.drop_columns(["horizon"]) if gone.num_rows else None,
        oldest_kept=_iso(oldest_kept[0]) if oldest_kept is not None and oldest_kept[0] else None,
    )


def _iso(moment: datetime) -> str:
    return moment.astimezone().isoformat()


MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Rewriting:
    """When data files are written again.

    share: deleted part of a file's rows from which on it is.
    budget_bytes: of the rows that stay, in the size that they have now: what one step may write
        again. So a large file waits until more of it is deleted.
    together_bytes: rows that stay of several files become one file of up to this size.
    """

    share: float = 0.3
    budget_bytes: int = 64 * MEBIBYTE
    together_bytes: int = 16 * MEBIBYTE


REWRITING = Rewriting()


@dataclass(frozen=True, slots=True)
class Losing:
    """A live data file, and how many of its rows are deleted when the step is made."""

    file: DataFile
    dead: int

    @property
    def share(self) -> float:
        """The deleted part of its rows."""
        return self.dead / self.file.rows

    @property
    def staying_bytes(self) -> int:
        """Size of the rows that stay: what it costs to write it again."""
        return self.file.size_bytes * (self.file.rows - self.dead) // self.file.rows

    @property
    def gained_bytes(self) -> int:
        """Size of the rows that readers no longer skip."""
        return self.file.size_bytes - self.staying_bytes


@dataclass(frozen=True, slots=True)
class RemovalChoice:
    """What happens to a file that loses rows: `again` says that it is written again."""

    losing: Losing
    again: bool
    reason: str


def choose(files: Iterable[Losing], rewriting: Rewriting) -> list[RemovalChoice]:
    """Decide for each file that has deleted rows; those that gain most come first."""
    left = rewriting.budget_bytes
    choices: list[RemovalChoice] = []
    for file in sorted(files, key=lambda file: (-file.gained_bytes, file.file.path)):
        deleted = f"{file.dead:,} of {file.file.rows:,} rows are deleted"
        if file.share < rewriting.share:
            choices.append(RemovalChoice(file, again=False, reason=f"only {deleted}"))
        elif file.staying_bytes > left:
            waits = f"{file.staying_bytes:,} bytes stay, {left:,} may be written in this step"
            choices.append(RemovalChoice(file, again=False, reason=f"{deleted}, but {waits}"))
        else:
            left -= file.staying_bytes
            choices.append(RemovalChoice(file, again=True, reason=deleted))
    return choices


def together(files: Sequence[Losing], rewriting: Rewriting) -> list[list[Losing]]:
    """Which files become one: the smallest with each other, in one partition of Iceberg."""
    groups: list[list[Losing]] = []
    size = 0
    for file in sorted(files, key=lambda file: (*_partition_key(file), file.staying_bytes)):
        size += file.staying_bytes
        same = bool(groups) and _partition_key(groups[-1][0]) == _partition_key(file)
        if same and size <= rewriting.together_bytes:
            groups[-1].append(file)
        else:
            groups.append([file])
            size = file.staying_bytes
    return groups


def _partition_key(losing: Losing) -> tuple[str, int, str]:
    slot = losing.file.slot
    return slot.partition, slot.spec or 0, slot.values or ""


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Removal:
    """What a step removes.

    `places` are rows that get position deletes, None for none; `deletes` are those that tasks have
    written. `again` has the data files that are
    written again: those of each group become one. `drop` are delete files that nothing needs then.
    Other rows may join a group of up to `joining_bytes`: in a larger file they would widen the
    range of its keys.
    """

    places: pa.Table | None
    store: DataFiles | None = None
    again: Sequence[Sequence[FileToRewrite]] = ()
    drop: Sequence[DeleteFile] = ()
    joining_bytes: int = 0
    deletes: Sequence[DeleteFile] = ()

    @property
    def files(self) -> list[DataFile]:
        """Data files that leave the table."""
        return [source.file for group in self.again for source in group]

    @property
    def counts(self) -> Mapping[str, str]:
        """What the summary of the snapshot says."""
        return {"polynya.rewritten-files": str(len(self.files))} if self.again else {}

    def stage(self, table: IcebergTable, rows: pa.Table | None = None) -> list[DataFile]:
        """Write the live rows of the files; those of `rows` go to the same files where they can.

        `rows` are versions in memory that the step writes besides.
        """
        staged: list[DataFile | None] = []
        left = {} if rows is None else dict(split_by_partition(table, rows))
        for group in self.again:
            assert self.store is not None, "what was chosen can be read"
            small = sum(source.file.size_bytes for source in group) <= self.joining_bytes
            also = left.pop(group[0].file.slot, None) if small else None
            staged.append(write_live_rows(table, self.store, group, also))
        staged += (write_part(table, slot, some) for slot, some in left.items())
        return [file for file in staged if file is not None]


#: What a place takes in the driver: its path as a text, twice for a moment, and two numbers.
_PLACE_BYTES = 400
#: The part of the driver's heap that is worth of places. Python holds them beside the heap, and a
#: machine has about as much memory for it.
_PART_OF_HEAP = 8


@dataclass(frozen=True, slots=True)
class RemovedFacts:
    """How many rows a step removes, and what writes their deletes.

    Attributes:
        rows: versions that are replaced.
        heap_bytes: most that the heap of the driver may grow to.
        on_cluster: tasks run in executors.
    """

    rows: int
    heap_bytes: int
    on_cluster: bool


@dataclass(frozen=True, slots=True)
class RemovedBy:
    """Whether tasks write the deletes of a step, and why."""

    tasks: bool
    reason: str


def removed_by(facts: RemovedFacts) -> RemovedBy:
    """Decide who writes the deletes of a step.

    The driver also writes files again of which much is deleted, within its budget. Beside more rows
    than fit there that budget is nothing: maintenance does that, with all executors.
    """
    size, limit = facts.rows * _PLACE_BYTES, facts.heap_bytes // _PART_OF_HEAP
    if not facts.on_cluster:
        return RemovedBy(tasks=False, reason="Spark works in this process")
    if size <= limit:
        return RemovedBy(tasks=False, reason=f"{facts.rows:,} places fit into the driver")
    return RemovedBy(
        tasks=True, reason=f"{facts.rows:,} places take {size:,} bytes of {limit:,} in the driver"
    )


@dataclass(frozen=True, slots=True)
class _DeleteScan:
    """What can be known of the deletes of a run: its live files, and the rows deleted so far."""

    files: Sequence[DataFile]
    store: DataFiles
    deleted: Deleted


def plan_removal(
    run: ApplyRun, places: pa.Table | None, deleted: Deleted | None, rewriting: Rewriting
) -> Removal:
    """Decide how rows go whose places are given (`writing.PLACES`).

    `deleted` are the rows of Current and Prior that are deleted so far, None where nobody has read
    that yet.
    """
    if places is None or (run.fresh is not None and run.fresh.instead):
        return Removal(places)
    scan = _scan_deletes(run, deleted)
    if isinstance(scan, str):
        log.debug("position deletes in %s: %s", run.target.table.name, scan)
        return Removal(places)
    mine = scan.deleted.places_of(places).drop_null()
    dead = pa.concat_arrays([scan.deleted.places, mine])
    sources = _sources(run.target.table, scan, dead, rewriting)
    if not sources:
        return Removal(places)
    gone = [source.file.path for group in sources for source in group]
    names = pa.array(gone, pa.string())
    kept = places.filter(pc.invert(pc.is_in(places.column("file_path"), value_set=names)))
    return Removal(
        places=kept if kept.num_rows else None,
        store=scan.store,
        again=sources,
        drop=scan.deleted.only_named_by(gone, (file.path for file in scan.files)),
        joining_bytes=rewriting.together_bytes,
    )


def _scan_deletes(run: ApplyRun, deleted: Deleted | None) -> _DeleteScan | str:
    """What is known, or why files cannot be written again."""
    table = run.target.table
    store = table.reach().reads
    if isinstance(store, str):
        return store
    files = [
        file for partition in (Partition.CURRENT, Partition.PRIOR)
        for file in table.files(partition, run.snapshot)
    ]  # fmt: skip
    if deleted is None:
        deletes = table.position_deletes(run.snapshot)
        try:
            paths = [file.path for file in files]
            deleted = None if deletes is None else deleted_places(store, paths, deletes)
        except (OSError, pa.ArrowInvalid) as error:
            table.forget_deletes()
            return f"a file of deletes was not read: {error}"
    if deleted is None:
        return "there are deletes of another kind, or in another place"
    return _DeleteScan(files, store, deleted)


def _sources(
    table: IcebergTable, scan: _DeleteScan, dead: pa.Array, rewriting: Rewriting
) -> list[list[FileToRewrite]]:
    """The files that are written again, those that become one together.

    `dead` are places, some perhaps twice.
    """
    numbers = {path: number for number, path in enumerate(scan.deleted.paths)}
    at_most = counted(dead)
    losing: list[Losing] = []
    gone: dict[str, pa.Array] = {}
    for file in scan.files:
        number = numbers[file.path]
        if at_most.get(number, 0) < max(1, rewriting.share * file.rows):
            continue
        if not _reads(table, scan.store, file):
            log.debug("position deletes for %s: Arrow does not read all of it", file.path)
            continue
        gone[file.path] = pc.unique(positions(dead, number))
        losing.append(Losing(file, len(gone[file.path])))
    again: list[Losing] = []
    for choice in choose(losing, rewriting):
        word = "written again" if choice.again else "position deletes"
        log.debug("%s for %s: %s", word, choice.losing.file.path, choice.reason)
        if choice.again:
            again.append(choice.losing)
    return [
        [
            FileToRewrite(file.file, stored_file(scan.store, file.file.path), gone[file.file.path])
            for file in group
        ]
        for group in together(again, rewriting)
    ]


def _reads(table: IcebergTable, store: DataFiles, file: DataFile) -> bool:
    """Whether all columns of a file, as the table has them now, can be read here."""
    if not is_read_by(store, file.path):
        return False
    try:
        return stored_file(store, file.path).reads_all(table.columns())
    except (OSError, pa.ArrowInvalid):
        return False
