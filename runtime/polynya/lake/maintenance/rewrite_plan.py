"""Plan a rewrite: which data files, grouped how, written by the driver or by Spark tasks.

Every decision comes with its reason. Small files are joined as in a log-structured merge tree: only
where the result is `growth` times as large as the largest of them. So a row is rewritten at most
log(target / size of its first file) times, to the base `growth`, in whatever order files come. A
file that is large enough and has few deleted rows is never touched, unless its layout is outdated.

The driver starts at once. Tasks take time to start, and bring what the driver lacks: the executors
of a cluster, or the other cores of this machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.deletes import Deleted, are_read_by, deleted_places
from polynya.lake.iceberg.deletes import counted as counted_deletes
from polynya.lake.iceberg.files import DataFile, DeleteFile
from polynya.lake.iceberg.reading import each_read, is_read_by, stored_file
from polynya.lake.iceberg.table import IcebergTable, ThroughJava
from polynya.lake.iceberg.wanted import TargetLayout
from polynya.lake.maintenance.rewrite_writer import ordered_by
from polynya.model import headers as h
from polynya.model.config.dataset import TableLayout
from polynya.model.headers import Partition
from polynya.observe.events import counted
from polynya.observe.trace import span
from polynya.store.data_files import DataFiles, ReadableFiles

#: Partitions whose files are rewritten. Those of Changes go with the next apply. A stream with
#: a bad record in most batches leaves a file of quarantine with each.
REWRITTEN: Final = (
    Partition.CURRENT,
    Partition.PRIOR,
    Partition.RETAINED,
    Partition.QUARANTINE,
)
#: Kept events leave the table file by file: a file has those of this part of their retention.
RETENTION_WINDOWS: Final = 20
MEBIBYTE: Final = 2**20
#: What a reader does to open one more file, in bytes that it would read in the same time.
OPEN_BYTES: Final = MEBIBYTE // 4
Kind: TypeAlias = Literal["join", "fold", "split", "part", "sort"]
#: Groups of fewer bytes are written before a task would have begun.
LARGE_BYTES: Final = 32 * MEBIBYTE
#: Tasks at a time on this machine: fewer are not faster than the driver...
MIN_LOCAL_TASKS: Final = 2
#: ...and each takes memory of its own.
MAX_LOCAL_TASKS: Final = 4
#: Tasks at a time on a cluster: what they have written is committed together.
MAX_CLUSTER_TASKS: Final = 16
#: What files are joined by where their rows are not ordered by key. Rejected records have neither.
_AGES: Final = {
    Partition.CURRENT: h.CHANGE_IDENTIFIER,
    Partition.PRIOR: h.CHANGE_IDENTIFIER,
    Partition.RETAINED: h.WAS_CURRENT_FROM,
}


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """When data files are rewritten.

    target_bytes: size that new files aim at.
    large: share of the target from which on a file is large enough.
    split_over: multiple of the target from which on a file is split.
    growth: files are joined when the result is this many times the largest of them.
    least_files: fewer than these are not joined: a commit costs as much as some small files.
    dead_share: deleted part of a file's rows from which on it is written again by itself. With 0.2
        a row that was deleted has caused four others to be written.
    group_rows: what one group has at most, as it has at most twice the target: it is lost when the
        process dies.
    """

    target_bytes: int = 128 * MEBIBYTE
    large: float = 0.6
    split_over: float = 1.8
    growth: float = 4.0
    least_files: int = 8
    dead_share: float = 0.2
    group_rows: int = 8_000_000

    @property
    def group_bytes(self) -> int:
        """What one group has at most."""
        return 2 * self.target_bytes

    def sized(self, file_bytes: int | None) -> RewriteRule:
        """For files of the size that a user asks for, None where there is none."""
        return self if file_bytes is None else replace(self, target_bytes=file_bytes)

    def thorough(self) -> RewriteRule:
        """For a table that should be as good as a new copy, whatever that costs."""
        return replace(self, growth=1.0, least_files=2, dead_share=0.0)


@dataclass(frozen=True, slots=True)
class RewriteCandidate:
    """A live data file, and what makes it worth rewriting.

    `number` is that of the file in `Deleted.paths`. `dead` of its rows are deleted, `delete_files`
    name it. `low` is where it stands among the files of its partition: the lowest key, or the age;
    None where that is not known. Only files of one `window` are joined. `outdated`: the table is
    partitioned otherwise by now. `unsorted`: the table has a sort order that the rows are not in.
    """

    number: int
    file: DataFile
    dead: int = 0
    delete_files: int = 0
    low: Any = None
    window: Hashable = None
    outdated: bool = False
    unsorted: bool = False

    @property
    def staying_rows(self) -> int:
        """Rows that are not deleted."""
        return self.file.rows - self.dead

    @property
    def staying_bytes(self) -> int:
        """Their size, as they are stored now."""
        return self.file.size_bytes * self.staying_rows // max(1, self.file.rows)


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Data files of one Iceberg partition that are rewritten together, as `outputs` files.

    They are in the order in which their rows are best written.
    """

    kind: Kind
    files: tuple[RewriteCandidate, ...]
    outputs: int
    reason: str

    @property
    def partition(self) -> str:
        """The partition of all of them."""
        return self.files[0].file.partition

    @property
    def moves(self) -> bool:
        """Whether the rows go to the partitions that the table has now."""
        return self.files[0].outdated

    @property
    def keeps_order(self) -> bool:
        """Whether the rows stay in the order that they are in: those of one file that has one."""
        (first, *others) = self.files
        return not others and not first.outdated and not first.unsorted

    @property
    def read_bytes(self) -> int:
        """What is read."""
        return sum(file.file.size_bytes for file in self.files)

    @property
    def written_bytes(self) -> int:
        """What is written, about."""
        return sum(file.staying_bytes for file in self.files)

    @property
    def rows(self) -> int:
        """Rows that are written."""
        return sum(file.staying_rows for file in self.files)

    @property
    def fewer_files(self) -> int:
        """Data files that readers no longer open."""
        return len(self.files) - self.outputs

    @property
    def dead_rows(self) -> int:
        """Deleted rows that readers no longer skip."""
        return sum(file.dead for file in self.files)

    @property
    def delete_files(self) -> int:
        """How often readers no longer look at a delete file for a data file."""
        return sum(file.delete_files for file in self.files)

    @property
    def gained_bytes(self) -> int:
        """What a full read no longer costs, in bytes read."""
        opened = max(0, self.fewer_files) + self.delete_files
        if self.kind in {"part", "sort"}:
            # A query that asks for some partitions, or for a range, reads none of the others.
            return self.read_bytes + opened * OPEN_BYTES
        return self.read_bytes - self.written_bytes + opened * OPEN_BYTES


def plan(files: Iterable[RewriteCandidate], rule: RewriteRule) -> list[RewriteGroup]:
    """Groups of files to rewrite; those that gain most for their cost come first."""
    return _best_first(
        group for some in _by_partition(files) for group in _groups_of_partition(some, rule)
    )


def plan_layout(files: Iterable[RewriteCandidate], rule: RewriteRule) -> list[RewriteGroup]:
    """Groups of files to rewrite so that all have the layout that the table has now.

    A small file that is only not sorted waits: it is, when it is joined with others.
    """
    late = [file for file in files if has_other_layout(file, rule)]
    return _best_first(
        group for some in _by_partition(late) for group in _layout_groups(some, rule)
    )


def has_other_layout(candidate: RewriteCandidate, rule: RewriteRule) -> bool:
    """Whether a file is rewritten because of its layout."""
    return candidate.outdated or (candidate.unsorted and is_large(candidate.file.size_bytes, rule))


def is_large(size_bytes: int, rule: RewriteRule) -> bool:
    """Whether a file is large enough not to be joined with others."""
    return size_bytes >= rule.large * rule.target_bytes


def _best_first(groups: Iterable[RewriteGroup]) -> list[RewriteGroup]:
    return sorted(
        groups, key=lambda group: -group.gained_bytes / (group.written_bytes + OPEN_BYTES)
    )


def _by_partition(files: Iterable[RewriteCandidate]) -> list[list[RewriteCandidate]]:
    """Files that may become one, together."""
    places: dict[Hashable, list[RewriteCandidate]] = defaultdict(list)
    for file in files:
        place = file.file.partition if file.outdated else file.file.slot
        places[place, file.outdated, file.window].append(file)
    return list(places.values())


def _groups_of_partition(
    files: Sequence[RewriteCandidate], rule: RewriteRule
) -> list[RewriteGroup]:
    large = rule.large * rule.target_bytes
    joined = _joined([file for file in files if file.staying_bytes < large], rule)
    taken = {file.number for group in joined for file in group.files}
    alone = [_alone(file, rule) for file in files if file.number not in taken]
    return [*joined, *(group for group in alone if group is not None)]


def _layout_groups(files: Sequence[RewriteCandidate], rule: RewriteRule) -> Iterator[RewriteGroup]:
    """Groups of files that lack the partition spec or the sort order of the table."""
    kind: Kind = "part" if files[0].outdated else "sort"
    for part in _parts(sorted(files, key=_sort_key), rule):
        size = sum(candidate.staying_bytes for candidate in part)
        layout = "partition spec" if kind == "part" else "sort order"
        reason = f"{counted(len(part), 'file')} without the table's present {layout}"
        yield RewriteGroup(kind, tuple(part), _outputs(size, rule), reason)


def _alone(candidate: RewriteCandidate, rule: RewriteRule) -> RewriteGroup | None:
    """A group of a single file, None where it stays."""
    outputs = _outputs(candidate.staying_bytes, rule)
    if candidate.dead and candidate.dead >= rule.dead_share * candidate.file.rows:
        reason = f"{candidate.dead:,} of {candidate.file.rows:,} rows are deleted"
        return RewriteGroup("fold", (candidate,), min(outputs, candidate.staying_rows), reason)
    if candidate.staying_bytes > rule.split_over * rule.target_bytes:
        reason = f"{candidate.staying_bytes:,} bytes, the target is {rule.target_bytes:,}"
        return RewriteGroup("split", (candidate,), outputs, reason)
    return None


def _joined(small: Sequence[RewriteCandidate], rule: RewriteRule) -> list[RewriteGroup]:
    """The smallest files, as many as the rule lets join."""
    ordered = sorted(small, key=lambda candidate: (candidate.staying_bytes, candidate.file.path))
    count = joining(
        [candidate.staying_bytes for candidate in ordered], rule.growth, rule.least_files
    )
    if not count:
        return []
    parts = _parts(sorted(ordered[:count], key=_sort_key), rule)
    groups = [_group(part, rule) for part in parts]
    return [group for group in groups if group.fewer_files > 0]


def joining(sizes: Sequence[int], growth: float, least: int) -> int:
    """How many of the smallest become one, `sizes` ascending; 0 where none do."""
    total, count = 0, 0
    for number, size in enumerate(sizes, 1):
        total += size
        if number >= least and total >= growth * size:
            count = number
    return count


def _group(files: Sequence[RewriteCandidate], rule: RewriteRule) -> RewriteGroup:
    rows = sum(file.staying_rows for file in files)
    size = sum(file.staying_bytes for file in files)
    largest = max(file.file.size_bytes for file in files)
    reason = f"{len(files):,} files of at most {largest:,} bytes"
    return RewriteGroup("join", tuple(files), min(_outputs(size, rule), rows), reason)


def _outputs(size: int, rule: RewriteRule) -> int:
    """Files of about the target: each is large enough, unless there is only one."""
    return max(1, round(size / rule.target_bytes))


def _parts(files: Sequence[RewriteCandidate], rule: RewriteRule) -> list[list[RewriteCandidate]]:
    """Neighbours, in about equal parts that are about as large as a group may be.

    So the new files of each are large enough, unless there is only one part.
    """
    weights = [
        max(file.staying_bytes / rule.group_bytes, file.staying_rows / rule.group_rows)
        for file in files
    ]
    count = max(1, ceil(sum(weights)))
    share = sum(weights) / count
    parts: list[list[RewriteCandidate]] = [[]]
    held = 0.0
    for file, weight in zip(files, weights, strict=True):
        if parts[-1] and held + weight / 2 > share * len(parts):
            parts.append([])
        parts[-1].append(file)
        held += weight
    return parts


def _sort_key(candidate: RewriteCandidate) -> tuple[bool, Any, str]:
    """Where a file stands among its neighbours; files without a known place come last."""
    return candidate.low is None, 0 if candidate.low is None else candidate.low, candidate.file.path


@dataclass(frozen=True, slots=True)
class TaskCapacity:
    """What runs the tasks of a session: cores of executors or of this machine."""

    cores: int
    on_cluster: bool

    @property
    def at_once(self) -> int:
        """Groups that tasks write at the same time."""
        return min(self.cores, MAX_CLUSTER_TASKS if self.on_cluster else MAX_LOCAL_TASKS)


@dataclass(frozen=True, slots=True)
class GroupBatch:
    """Groups that are written at the same time, by tasks or else by the driver."""

    groups: tuple[RewriteGroup, ...]
    by_tasks: bool
    reason: str

    @property
    def written_bytes(self) -> int:
        """What is written, about."""
        return sum(group.written_bytes for group in self.groups)


def batches(groups: Sequence[RewriteGroup], engine: TaskCapacity) -> list[GroupBatch]:
    """All groups in batches; each stands where the first of its groups stood."""
    large = [group for group in groups if group.read_bytes >= LARGE_BYTES]
    batch_list: list[GroupBatch] = []
    for group in groups:
        if group.read_bytes < LARGE_BYTES:
            reason = f"{group.read_bytes:,} bytes are written before a task would begin"
            batch_list.append(GroupBatch((group,), by_tasks=False, reason=reason))
        elif group in large:
            batch_list.append(_of_large(large[: max(1, engine.at_once)], engine))
            del large[: len(batch_list[-1].groups)]
    return batch_list


def _of_large(some: Sequence[RewriteGroup], engine: TaskCapacity) -> GroupBatch:
    """The first batch of some large groups."""
    size = sum(group.read_bytes for group in some)
    if engine.on_cluster:
        reason = f"{size:,} bytes are written by {counted(len(some), 'task')} of the cluster"
        return GroupBatch(tuple(some), by_tasks=True, reason=reason)
    if len(some) < MIN_LOCAL_TASKS:
        reason = "a task in another process of this machine would take as long"
        return GroupBatch(tuple(some), by_tasks=False, reason=reason)
    reason = f"{size:,} bytes are shared by {len(some)} cores of this machine"
    return GroupBatch(tuple(some), by_tasks=True, reason=reason)


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """The files of one snapshot, all of its delete files, and the rows that these delete.

    `wanted` is the layout that new files get.
    """

    snapshot: int
    wanted: TargetLayout
    files: tuple[RewriteCandidate, ...]
    deletes: tuple[DeleteFile, ...]
    deleted: Deleted


def reader_of(table: IcebergTable, deletes: Sequence[DeleteFile]) -> ReadableFiles:
    """What reads these delete files of a table: Arrow, or else Java."""
    store = table.reach().reads
    reaches = not isinstance(store, str) and are_read_by(store, deletes)
    return store if reaches and not isinstance(store, str) else ThroughJava(table)


@span("look at files")
def look(
    table: IcebergTable,
    snapshot: int,
    shape: Shape,
    layout: TableLayout,
    *,
    keep: timedelta | None = None,
) -> SnapshotFiles | str:
    """What is known of a snapshot, or why nothing of it may be written again.

    `keep` is how long applied events are kept, None where they do not go. Raises OSError.
    """
    live = table.position_deletes(snapshot)
    if live is None:
        return "there are equality deletes, or position deletes that are not Parquet"
    files = [file for partition in REWRITTEN for file in table.files(partition, snapshot)]
    paths = [file.path for file in files]
    deleted = deleted_places(reader_of(table, live), paths, live)
    if deleted is None:
        return "delete files are in another place than the table"
    dead = counted_deletes(pc.unique(deleted.places))
    named = Counter(path for _, names in deleted.named for path in names)
    lows, java_files = _lows(table, files, shape, layout), table.java_files()
    newest, order = java_files.newest.number, java_files.order
    wanted = TargetLayout.by(newest, order, table.columns(), layout.sort_by)
    facts = (
        RewriteCandidate(
            number, file, dead.get(number, 0), named[file.path],
            lows[number], _window(file, lows[number], keep),
            not wanted.is_parted(file.partition, java_files.spec_id(file.slot)),
            not wanted.is_sorted(file.partition, file.sort_order),
        )
        for number, file in enumerate(files)
    )  # fmt: skip
    return SnapshotFiles(snapshot, wanted, tuple(facts), live, deleted)


def _lows(
    table: IcebergTable, files: Sequence[DataFile], shape: Shape, layout: TableLayout
) -> list[Any]:
    """The lowest value of what each file is ordered by, None where that is not known."""
    store = table.reach().reads
    if isinstance(store, str):
        return [None] * len(files)
    columns = {column["name"]: column for column in table.columns()}

    def low(file: DataFile) -> Any:
        order = ordered_by(layout, shape, file.partition)
        name = order[0][0] if order else _AGES.get(Partition(file.partition))
        return _low(store, file, columns[name]) if name in columns else None

    return each_read(store, low, files)


def _low(store: DataFiles, file: DataFile, column: Mapping[str, Any]) -> Any:
    if not is_read_by(store, file.path):
        return None
    try:
        stored = stored_file(store, file.path)
    except (OSError, pa.ArrowInvalid):
        return None
    bounds = [stored.bounds(group, column) for group in stored.groups]
    lows = [bound[0] for bound in bounds if bound is not None]
    return min(lows) if lows and len(lows) == len(bounds) else None


def _window(file: DataFile, low: Any, keep: timedelta | None) -> Hashable:
    """What may be joined: kept events of about the same age, so that they can go in time."""
    if file.partition != Partition.RETAINED or keep is None:
        return None
    if not isinstance(low, datetime):
        return file.path
    return int(low.timestamp() // max(1.0, keep.total_seconds() / RETENTION_WINDOWS))
