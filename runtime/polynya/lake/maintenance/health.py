"""The health of a table: facts from its metadata, a score, and the record of its maintenance.

Facts come from the JSON of the table's metadata and the sizes of its files. Every snapshot has a
summary that counts files, rows, deletes and manifests, so `look` costs `LOOK_CALLS` calls into the
JVM. It reads more only where the summary says that it may pay: the list of files, when there are
more files than a rewrite would leave or when files may have an old layout, and the list of
manifests, when there are many. Partitions that this process has read already cost nothing.

The record is a property of the table, as JSON. It says when each action was last taken, what was
expected of it and what it did. So a process that starts knows the work of the one before, `status`
can show it, and expectations can be compared with results. The record is not part of any state: if
the property is missing or unreadable, maintenance only knows less.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, BeforeValidator, TypeAdapter, ValidationError

from polynya.lake.iceberg.layout import lacks
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.wanted import TargetLayout
from polynya.lake.maintenance.base import ActionOutcome
from polynya.lake.maintenance.fenced import commit_fenced
from polynya.lake.maintenance.rewrite_plan import OPEN_BYTES, REWRITTEN, RewriteRule, is_large
from polynya.lake.maintenance.snapshots import Keep, choose
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import ApplyState
from polynya.model.config.dataset import LAYOUT, ResolvedDataset, TableLayout
from polynya.model.config.maintenance import ACTIONS, ActionName, SnapshotExpiry
from polynya.model.headers import Partition
from polynya.observe.trace import span

#: The actions that there are. Others are never chosen.
BUILT_NAMES: Final[frozenset[ActionName]] = frozenset(
    {
        "rewrite_data_files",
        "rewrite_layout",
        "rewrite_position_delete_files",
        "rewrite_manifests",
        "expire_snapshots",
        "remove_orphan_files",
        "expire_rows",
        "expire_changes",
        "compute_statistics",
    }
)
_RULE: Final = RewriteRule()
#: The first format whose position deletes are vectors.
_VECTORS_SINCE: Final = 3
#: How often a table is taken to be read in an hour, by queries that are not reported...
READS_PER_HOUR: Final = 4.0
#: ...as long as something was written to it within this time. After that no reader is expected.
QUIET_TIME: Final = timedelta(days=1)
#: The time over which commits and applies are counted.
_RATE_WINDOW: Final = timedelta(hours=1)
#: Manifests that commits leave by themselves (`commit.manifest.min-count-to-merge`), of the
#: partitions of a table.
USUAL_MANIFESTS: Final = 24
#: In less time too few come to tell a rate by.
_MIN_RATE_WINDOW: Final = timedelta(minutes=1)
#: Calls into the JVM of a look: the operations, their metadata, and its text.
LOOK_CALLS: Final = 3
#: The fixed cost of a query, in bytes that it would read in the same time.
QUERY_BYTES: Final = 64 * 2**20
#: Manifests of a table in good shape.
_FEW_MANIFESTS: Final = 8
_MANIFEST_BYTES: Final = 64 * 2**10
#: The property of the table.
PROPERTY: Final = "polynya.maintenance"


def rule_of(dataset: ResolvedDataset) -> RewriteRule:
    """When data files of a dataset are rewritten."""
    return _RULE.sized(dataset.layout.file_bytes)


def kept_for(dataset: ResolvedDataset) -> timedelta | None:
    """For how long rows of a dataset are kept, None without a limit."""
    retention = dataset.kept.retention
    return None if retention is None else retention.keep


def events_kept_for(dataset: ResolvedDataset) -> timedelta | None:
    """For how long applied events of a dataset are kept, None for not at all or for ever."""
    keep = dataset.kept.changes_retention
    return keep if isinstance(keep, timedelta) else None


def oldest_event(state: ApplyState) -> datetime | None:
    """When the oldest of the applied events that are kept was applied, None where none are."""
    oldest = None if state.retaining is None else state.retaining.oldest
    return None if oldest is None else datetime.fromisoformat(oldest)


@dataclass(frozen=True, slots=True)
class Done:
    """One action that was taken. Sizes in bytes, `gain` in bytes per hour.

    `expected_*` are what the rule reckoned with, `gain` and `cost` what came true. `rows` are those
    of the table then, `delete_files` those that it had afterwards.
    """

    at: AwareDatetime
    why: str
    whole: bool = True
    expected_gain: int = 0
    expected_cost: int = 0
    expected_written: int = 0
    gain: int = 0
    cost: int = 0
    seconds: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0
    freed_bytes: int = 0
    files_removed: int = 0
    files_added: int = 0
    rows: int = 0
    delete_files: int = 0

    @classmethod
    def of(
        cls,
        outcome: ActionOutcome,
        at: datetime,
        *,
        gain: int,
        cost: int,
        written: int,
        rows: int,
        delete_files: int = 0,
    ) -> Done:
        """An outcome next to its expectation."""
        return cls(
            at=at,
            why=outcome.why,
            whole=outcome.whole,
            expected_gain=gain,
            expected_cost=cost,
            expected_written=written,
            seconds=outcome.seconds,
            read_bytes=outcome.read_bytes,
            written_bytes=outcome.written_bytes,
            freed_bytes=outcome.freed_bytes,
            files_removed=outcome.files_removed,
            files_added=outcome.files_added,
            rows=rows,
            delete_files=delete_files,
        )


def _of_known_actions(last: Any) -> Any:
    return (
        {name: last[name] for name in ACTIONS if name in last} if isinstance(last, dict) else last
    )


@dataclass(frozen=True, slots=True)
class MaintenanceRecord:
    """What was done to a table. `began` is when the first action was taken, None before it.

    Actions and fields of later versions are ignored.
    """

    began: AwareDatetime | None = None
    last: Annotated[Mapping[ActionName, Done], BeforeValidator(_of_known_actions)] = field(
        default_factory=dict
    )

    @property
    def newest(self) -> tuple[ActionName, Done] | None:
        """The action that was taken last."""
        return max(self.last.items(), key=lambda item: item[1].at, default=None)

    def with_done(self, action: ActionName, done: Done) -> MaintenanceRecord:
        """The same after an action."""
        return replace(self, began=self.began or done.at, last={**self.last, action: done})

    def to_json(self) -> str:
        """The text of the property."""
        return _RECORD.dump_json(self).decode()

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> MaintenanceRecord:
        """What the properties of a table say; an empty record when they say nothing of use."""
        try:
            return _RECORD.validate_json(properties.get(PROPERTY, "{}"))
        except ValidationError:
            return cls()


_RECORD: Final = TypeAdapter(MaintenanceRecord)


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
        files: of the rewritten partitions; empty when they were not needed.
        delete_files, deleted_rows: of position deletes and deletion vectors.
        has_vectors: deletes are vectors (format v3), one for a data file.
        manifests: of the current snapshot.
        data_manifests: those of data files among them; 0 where they are few, and are not read.
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
    record: MaintenanceRecord = field(default_factory=MaintenanceRecord)

    @property
    def small_files(self) -> int:
        """Data files that are small."""
        return sum(len(file.small) for file in self.files.values())

    @property
    def rows_not_optimised(self) -> int:
        """Rows in small files, where files had to be read, and deleted rows."""
        return self.deleted_rows + sum(file.small_rows for file in self.files.values())

    @property
    def rewritable(self) -> FilesFacts:
        """All partitions that are rewritten, as one."""
        parts = self.files.values()
        return FilesFacts(
            files=sum(part.files for part in parts),
            rows=sum(part.rows for part in parts),
            size_bytes=sum(part.size_bytes for part in parts),
            outdated=sum(part.outdated for part in parts),
            outdated_bytes=sum(part.outdated_bytes for part in parts),
        )


@span("look at table", table=attrgetter("table.name"))
def look(
    target: DatasetTable, *, now: datetime, rule: RewriteRule, committed_beside: bool = False
) -> TableFacts:
    """The facts of a table as this process has it.

    `committed_beside`: this process committed through another object of the table, as an expiry
    does, so that the catalog is asked for the newest metadata.
    """
    if committed_beside:
        with target.changing:
            operations: Any = target.table.java.operations()
            operations.refresh()
    text = _metadata(target.table)
    metadata, expiry = json.loads(text), target.dataset.maintenance.snapshot_expiry
    facts = table_facts(
        metadata,
        now=now,
        expiry=expiry,
        metadata_bytes=len(text),
        retention=kept_for(target.dataset),
    )
    if (events_kept := events_kept_for(target.dataset)) is not None:
        oldest = oldest_event(target.state.apply)
        facts = replace(facts, events_kept=events_kept, oldest_event=oldest)
    if may_be_joined(facts):
        facts = replace(facts, data_manifests=target.table.data_manifests())
    snapshot = target.state.snapshot
    wanted = TargetLayout.of(metadata, target.dataset.layout.sort_by)
    if snapshot is None or not (may_be_rewritten(facts, rule) or may_be_outdated(metadata, wanted)):
        return facts
    return replace(facts, files=dict(_files(target.table, snapshot, rule, wanted)))


def asks_for_layout(layout: TableLayout, settings: Mapping[str, Any]) -> bool:
    """Whether a dataset has a layout of its own, or its table was written with one."""
    return layout != TableLayout() or any(settings.get(setting) for setting in LAYOUT)


def awaits_layout(target: DatasetTable) -> bool:
    """Whether the table gets another layout when its owner takes it over."""
    layout = target.dataset.layout
    if target.owned or not asks_for_layout(layout, target.state.copy.settings):
        return False
    table, files = target.table, target.table.java_files()
    return lacks(table.columns(), files.newest, files.order, layout, target.known_schema())


def _files(
    table: IcebergTable, snapshot: int, rule: RewriteRule, wanted: TargetLayout
) -> Iterator[tuple[str, FilesFacts]]:
    """Facts of the files of each partition that is rewritten."""
    spec_id = table.java_files().spec_id
    for partition in map(str, REWRITTEN):
        files = [
            FileSize(file.rows, file.size_bytes, spec_id(file.slot), file.sort_order)
            for file in table.files(Partition(partition), snapshot)
        ]
        yield partition, files_facts(partition, files, rule, wanted)


def table_facts(
    metadata: Mapping[str, Any],
    *,
    now: datetime,
    expiry: SnapshotExpiry,
    metadata_bytes: int = 0,
    retention: timedelta | None = None,
) -> TableFacts:
    """Facts from the metadata of a table, as Iceberg's specification writes it in JSON."""
    snapshots = sorted(metadata.get("snapshots", ()), key=_created_at)
    current = next(
        (
            snapshot
            for snapshot in snapshots
            if snapshot["snapshot-id"] == metadata.get("current-snapshot-id")
        ),
        None,
    )
    record = MaintenanceRecord.of(metadata.get("properties", {}))
    if current is None:
        return TableFacts(at=now, metadata_bytes=metadata_bytes, record=record)
    written_at = _created_at(current)
    gone, since, freed = _expirable(metadata, snapshots, now, expiry)
    window = _window(snapshots, now, expiry)
    lately = [snapshot for snapshot in snapshots if _created_at(snapshot) > now - window]
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
        oldest=_created_at(snapshots[0]),
        expirable=gone,
        expirable_since=since,
        expirable_bytes=freed,
        metadata_bytes=metadata_bytes,
        has_statistics=any(
            statistic["snapshot-id"] == current["snapshot-id"]
            for statistic in metadata.get("statistics", ())
        ),
        retention=retention,
        commits=per_hour * len(lately),
        applies=per_hour * sum(_step(snapshot) == "apply" for snapshot in lately),
        reads=READS_PER_HOUR if now - written_at < QUIET_TIME else 0.0,
        record=record,
    )


def may_be_outdated(metadata: Mapping[str, Any], wanted: TargetLayout) -> bool:
    """Whether files may have another layout: the table had another spec, or should be sorted."""
    return len(metadata["partition-specs"]) > 1 or wanted.order is not None


def may_be_rewritten(facts: TableFacts, rule: RewriteRule) -> bool:
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
    partition: str, files: Sequence[FileSize], rule: RewriteRule, wanted: TargetLayout
) -> FilesFacts:
    """Facts of one partition, by its data files."""
    small = [file for file in files if not is_large(file.size_bytes, rule)]
    outdated = [
        file.size_bytes
        for file in files
        if not wanted.is_parted(partition, file.spec)
        or (not wanted.is_sorted(partition, file.order) and is_large(file.size_bytes, rule))
    ]
    return FilesFacts(
        files=len(files),
        rows=sum(file.rows for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        small=tuple(sorted(file.size_bytes for file in small)),
        small_rows=sum(file.rows for file in small),
        outdated=len(outdated),
        outdated_bytes=sum(outdated),
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
    followers = [
        snapshot
        for snapshot in snapshots[1:]
        if int(snapshot["timestamp-ms"]) <= choice.older_than_ms
    ]
    if not choice.expired or not followers:
        return 0, None, 0
    freed = sum(_count(snapshot, "removed-files-size") for snapshot in followers)
    followed = _created_at(followers[0])
    since = followed + keep.age
    if len(snapshots) > keep.at_most:
        since = min(since, max(followed + keep.least_age, _created_at(snapshots[keep.at_most])))
    return choice.expired, since, freed


def _window(
    snapshots: Sequence[Mapping[str, Any]], now: datetime, expiry: SnapshotExpiry
) -> timedelta:
    """The time over which commits are counted: snapshots that are older may have expired."""
    window = expiry.age
    if len(snapshots) >= expiry.at_most:
        window = min(window, now - _created_at(snapshots[0]))
    return min(_RATE_WINDOW, max(window, _MIN_RATE_WINDOW))


def _count(snapshot: Mapping[str, Any], name: str) -> int:
    """A figure in the summary of a snapshot, 0 where it is not there."""
    return int((snapshot.get("summary") or {}).get(name) or 0)


def _created_at(snapshot: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(int(snapshot["timestamp-ms"]) / 1000, UTC)


def _step(snapshot: Mapping[str, Any]) -> str:
    return str((snapshot.get("summary") or {}).get("polynya.step", ""))


@dataclass(frozen=True, slots=True)
class Health:
    """The shape of a table. Sizes in bytes.

    Attributes:
        score: what a query of all of the table would cost in the best shape, in percent of what it
            costs: 100 is the best.
        files: data files, of an average size of `average_bytes`.
        delete_files: files of deletes, which delete `deleted_share` of the rows, 0 to 1.
        small_files, rows_not_optimised: small data files; rows in them, and deleted rows. Few small
            files do not count.
        outdated_bytes: size of the files of another layout than the table has now.
        metadata_bytes: size of the newest metadata file.
        snapshots: all that there are, since `oldest`.
        removed_orphan_bytes: size of the old files without a snapshot that the last look for them
            found and removed, at `orphans_at`; None before it. What came since is unknown before
            the next look, nor is what is younger than `older_than` told from a commit under way.
    """

    score: int
    files: int
    average_bytes: int
    delete_files: int
    deleted_share: float
    manifests: int
    metadata_bytes: int
    snapshots: int
    oldest: datetime | None
    small_files: int
    rows_not_optimised: int
    outdated_bytes: int
    removed_orphan_bytes: int | None
    orphans_at: datetime | None


def health_of(facts: TableFacts, rule: RewriteRule) -> Health:
    """The health of a table, from its facts."""
    orphans = facts.record.last.get("remove_orphan_files")
    share = facts.deleted_rows / max(1, facts.rows)
    return Health(
        score=_score(facts, rule, min(share, 1.0)),
        files=facts.data_files,
        average_bytes=facts.size_bytes // max(1, facts.data_files),
        delete_files=facts.delete_files,
        deleted_share=round(share, 4),
        manifests=facts.manifests,
        metadata_bytes=facts.metadata_bytes,
        snapshots=facts.snapshots,
        oldest=facts.oldest,
        small_files=facts.small_files,
        rows_not_optimised=facts.rows_not_optimised,
        outdated_bytes=facts.rewritable.outdated_bytes,
        removed_orphan_bytes=None if orphans is None else orphans.freed_bytes,
        orphans_at=None if orphans is None else orphans.at,
    )


def _score(facts: TableFacts, rule: RewriteRule, dead: float) -> int:
    live = facts.size_bytes * (1 - dead)
    best = live + (live // rule.target_bytes + 1) * OPEN_BYTES
    opened = (facts.data_files + facts.delete_files) * OPEN_BYTES
    manifests = max(0, facts.manifests - _FEW_MANIFESTS) * _MANIFEST_BYTES
    cost = facts.size_bytes + opened + manifests + facts.metadata_bytes
    return round(100 * min(1.0, (QUERY_BYTES + best) / (QUERY_BYTES + cost)))


def remember(target: DatasetTable, record: MaintenanceRecord) -> None:
    """Write down what was done. It is a change of metadata alone, which no step conflicts with.

    Raises ConflictError when another owner has taken the table over.
    """

    def write(transaction: Any) -> None:
        transaction.updateProperties().set(PROPERTY, record.to_json()).commit()

    with target.changing:
        commit_fenced(target, target.table, write)


def _metadata(table: IcebergTable) -> str:
    parser: Any = table.iceberg.TableMetadataParser
    return str(parser.toJson(table.java.operations().current()))
