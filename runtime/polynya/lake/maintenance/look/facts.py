"""Facts of a table's shape: pure, out of the JSON of its metadata and the sizes of its files.

The metadata has every snapshot with its summary, which counts files, rows, deletes and manifests.
Only where that says that files may be worth writing again, or may have an old layout, are single
files asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from polynya.lake.iceberg.parting.wanted import Wanted
from polynya.lake.maintenance.expiry.choice import Keep, choose
from polynya.lake.maintenance.look.record import Record
from polynya.lake.maintenance.rewrite.plan import Rule, is_large
from polynya.model.config.maintenance.settings import SnapshotExpiry

#: The first format whose position deletes are vectors.
_VECTORS_SINCE: Final = 3
#: How often a table is taken to be read in an hour, by queries that nobody tells us of...
READS_PER_HOUR: Final = 4.0
#: ...as long as something was written to it within this time. After that nobody is expected.
QUIET: Final = timedelta(days=1)
#: The time over which commits and applies are counted.
_WINDOW: Final = timedelta(hours=1)
#: Manifests that commits leave by themselves (`commit.manifest.min-count-to-merge`), of the
#: partitions of a table.
USUAL_MANIFESTS: Final = 24
#: In less time too few come to tell a rate by.
_LEAST_WINDOW: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class FilesFacts:
    """The data files of one partition.

    `small` are the sizes of small ones, smallest first; they have `small_rows`. `outdated` files
    have another layout than the table has now.
    """

    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    small: tuple[int, ...] = ()
    small_rows: int = 0
    outdated: int = 0
    outdated_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FileSize:
    """A data file in short. `spec` and `order` are the ids of its partition spec and sort order."""

    rows: int
    size_bytes: int
    spec: int = 0
    order: int | None = None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The shape of one table. Sizes in bytes; rates per hour.

    Attributes:
        at: when this was looked at.
        snapshot: the current one, None for an empty table.
        written_at: when the current snapshot was made.
        data_files, rows, size_bytes: of all data files, as the snapshot counts them.
        files: of the partitions that are written again; empty when nobody had to look.
        delete_files, deleted_rows: of position deletes and deletion vectors.
        has_vectors: deletes are vectors (format v3), one for a data file.
        manifests: of the current snapshot.
        data_manifests: those of data files among them; 0 where they are few: nobody had to look.
        snapshots: all that there are.
        expirable: snapshots that the settings do not keep, `expirable_since` the first of them.
        expirable_bytes: size of the data files that only they have.
        metadata_bytes: size of the newest metadata file.
        has_statistics: the current snapshot has numbers of distinct values.
        retention: how long rows are kept by their age, None where they stay.
        events_kept: how long applied events are kept, None for not at all or for ever;
            `oldest_event` is when the oldest of them was applied.
        commits, applies, reads: per hour.
        record: what was done before.
    """

    at: datetime
    snapshot: int | None = None
    written_at: datetime | None = None
    data_files: int = 0
    rows: int = 0
    size_bytes: int = 0
    files: Mapping[str, FilesFacts] = field(default_factory=dict)
    delete_files: int = 0
    deleted_rows: int = 0
    has_vectors: bool = False
    manifests: int = 0
    data_manifests: int = 0
    snapshots: int = 0
    oldest: datetime | None = None
    expirable: int = 0
    expirable_since: datetime | None = None
    expirable_bytes: int = 0
    metadata_bytes: int = 0
    has_statistics: bool = False
    retention: timedelta | None = None
    events_kept: timedelta | None = None
    oldest_event: datetime | None = None
    commits: float = 0.0
    applies: float = 0.0
    reads: float = 0.0
    record: Record = field(default_factory=Record)

    @property
    def small_files(self) -> int:
        """Data files that are small."""
        return sum(len(one.small) for one in self.files.values())

    @property
    def rows_not_optimised(self) -> int:
        """Rows in small files, where somebody had to look at files, and deleted rows."""
        return self.deleted_rows + sum(one.small_rows for one in self.files.values())

    @property
    def rewritable(self) -> FilesFacts:
        """All partitions that are written again, as one."""
        parts = self.files.values()
        return FilesFacts(
            files=sum(one.files for one in parts),
            rows=sum(one.rows for one in parts),
            size_bytes=sum(one.size_bytes for one in parts),
            outdated=sum(one.outdated for one in parts),
            outdated_bytes=sum(one.outdated_bytes for one in parts),
        )


def may_be_outdated(metadata: Mapping[str, Any], wanted: Wanted) -> bool:
    """Whether files may have another layout: the table had another spec, or is to be sorted."""
    return len(metadata["partition-specs"]) > 1 or wanted.order is not None


def may_be_rewritten(facts: TableFacts, rule: Rule) -> bool:
    """Whether there are more files than rewriting them would leave, or many rows are deleted.

    Otherwise no single file has to be asked for.
    """
    fewest = facts.size_bytes // rule.target_bytes + 1
    crowded = facts.data_files >= fewest + rule.least_files
    return crowded or facts.deleted_rows >= rule.dead_share * max(1, facts.rows)


def may_be_joined(facts: TableFacts) -> bool:
    """Whether there are many manifests. Which of them are of data files has to be asked for."""
    return facts.manifests > USUAL_MANIFESTS


def files_facts(
    partition: str, files: Sequence[FileSize], rule: Rule, wanted: Wanted
) -> FilesFacts:
    """Facts of one partition, by its data files."""
    small = [one for one in files if not is_large(one.size_bytes, rule)]
    outdated = [
        one.size_bytes
        for one in files
        if not wanted.is_parted(partition, one.spec)
        or (not wanted.is_sorted(partition, one.order) and is_large(one.size_bytes, rule))
    ]
    return FilesFacts(
        files=len(files),
        rows=sum(one.rows for one in files),
        size_bytes=sum(one.size_bytes for one in files),
        small=tuple(sorted(one.size_bytes for one in small)),
        small_rows=sum(one.rows for one in small),
        outdated=len(outdated),
        outdated_bytes=sum(outdated),
    )


def table_facts(
    metadata: Mapping[str, Any],
    *,
    now: datetime,
    expiry: SnapshotExpiry,
    metadata_bytes: int = 0,
    retention: timedelta | None = None,
) -> TableFacts:
    """Facts from the metadata of a table, as Iceberg's specification writes it in JSON."""
    snapshots = sorted(metadata.get("snapshots", ()), key=_made)
    current = next(
        (one for one in snapshots if one["snapshot-id"] == metadata.get("current-snapshot-id")),
        None,
    )
    record = Record.of(metadata.get("properties", {}))
    if current is None:
        return TableFacts(at=now, metadata_bytes=metadata_bytes, record=record)
    written_at = _made(current)
    gone, since, freed = _expirable(metadata, snapshots, now, expiry)
    window = _window(snapshots, now, expiry)
    lately = [one for one in snapshots if _made(one) > now - window]
    per_hour = timedelta(hours=1) / window
    return TableFacts(
        at=now,
        snapshot=int(current["snapshot-id"]),
        written_at=written_at,
        data_files=_count(current, "total-data-files"),
        rows=_count(current, "total-records"),
        size_bytes=_count(current, "total-files-size"),
        delete_files=_count(current, "total-delete-files"),
        deleted_rows=_count(current, "total-position-deletes"),
        has_vectors=int(metadata.get("format-version") or 0) >= _VECTORS_SINCE,
        manifests=_count(current, "manifests-created") + _count(current, "manifests-kept"),
        snapshots=len(snapshots),
        oldest=_made(snapshots[0]),
        expirable=gone,
        expirable_since=since,
        expirable_bytes=freed,
        metadata_bytes=metadata_bytes,
        has_statistics=any(
            one["snapshot-id"] == current["snapshot-id"] for one in metadata.get("statistics", ())
        ),
        retention=retention,
        commits=per_hour * len(lately),
        applies=per_hour * sum(_step(one) == "apply" for one in lately),
        reads=READS_PER_HOUR if now - written_at < QUIET else 0.0,
        record=record,
    )


def _expirable(
    metadata: Mapping[str, Any],
    snapshots: Sequence[Mapping[str, Any]],
    now: datetime,
    expiry: SnapshotExpiry,
) -> tuple[int, datetime | None, int]:
    """Snapshots that may go, since when the first may, and the size of files that only they have.

    A snapshot is in use until another one follows it: its age counts from then. A file that a
    commit removed goes with the last snapshot before that commit.
    """
    keep = Keep(expiry.age, expiry.keep, expiry.at_most)
    choice = choose(metadata, keep, now=now)
    followers = [one for one in snapshots[1:] if int(one["timestamp-ms"]) <= choice.older_than_ms]
    if not choice.expired or not followers:
        return 0, None, 0
    freed = sum(_count(one, "removed-files-size") for one in followers)
    followed = _made(followers[0])
    since = followed + keep.age
    if len(snapshots) > keep.at_most:
        since = min(since, max(followed + keep.least_age, _made(snapshots[keep.at_most])))
    return choice.expired, since, freed


def _window(
    snapshots: Sequence[Mapping[str, Any]], now: datetime, expiry: SnapshotExpiry
) -> timedelta:
    """The time over which commits are counted: snapshots that are older may have expired."""
    known = expiry.age
    if len(snapshots) >= expiry.at_most:
        known = min(known, now - _made(snapshots[0]))
    return min(_WINDOW, max(known, _LEAST_WINDOW))


def _count(snapshot: Mapping[str, Any], name: str) -> int:
    """A figure in the summary of a snapshot, 0 where it is not there."""
    return int((snapshot.get("summary") or {}).get(name) or 0)


def _made(snapshot: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(int(snapshot["timestamp-ms"]) / 1000, UTC)


def _step(snapshot: Mapping[str, Any]) -> str:
    return str((snapshot.get("summary") or {}).get("polynya.step", ""))
