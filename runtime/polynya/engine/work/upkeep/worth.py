"""What each action would gain and cost: pure, from the facts of a table.

Both are in bytes that could be read in the same time. So opening a file, writing a byte and storing
one for an hour can be compared with reading it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from polynya.lake.maintenance.look.facts import USUAL_MANIFESTS, FilesFacts, TableFacts
from polynya.lake.maintenance.rewrite.plan import OPEN_BYTES, WINDOWS, Rule
from polynya.model.config.maintenance.actions import ActionName
from polynya.model.config.maintenance.settings import Maintenance
from polynya.observe.events import counted

#: What an action costs besides its bytes: planning, a commit or two.
FIXED_BYTES: Final = 64 * 2**20
#: Writing a byte takes as long as reading this many.
WRITING: Final = 3.0
#: Storing a byte for an hour costs as much as reading this part of it (S3 and EC2, list prices).
STORING: Final = 0.2
#: Bytes of a snapshot in the metadata file, which each commit reads and writes.
SNAPSHOT_BYTES: Final = 1300
#: To expire a snapshot its manifests are read.
EXPIRING_BYTES: Final = 64 * 2**10
#: Reading one more manifest.
MANIFEST_BYTES: Final = 64 * 2**10
#: Part of a read that a planner saves which knows how many values a column has.
PLANNING: Final = 0.05
#: Planners err by little over fewer rows.
LEAST_ROWS: Final = 1_000_000
#: Part of the files of an old layout that a read does without in the new one, on average: one query
#: in four asks by its columns, and then reads half of them.
PRUNED: Final = 1 / 8
#: Rows that are too old are looked for after this share of their retention, at least so long.
RETENTION_SHARE: Final = 1 / 30
LEAST_RETENTION: Final = timedelta(hours=1)
#: Delete files that are not worth the commit that makes one of them.
USUAL_DELETES: Final = 10


@dataclass(frozen=True, slots=True)
class Worth:
    """What one action would gain for what it costs, in bytes; the gain is per hour.

    Attributes:
        action: which.
        what: what there is to do, in words.
        gain: what readers, applies and commits no longer read, and what is no longer stored.
        cost: what the action reads and writes.
        written: bytes that it writes.
        since: since when there is something to do, None: as long as the table was not maintained.
        due_at: the moment at which it is done whatever it gains, None for never.
    """

    action: ActionName
    what: str
    gain: float
    cost: float
    written: int = 0
    since: datetime | None = None
    due_at: datetime | None = None


def worth(facts: TableFacts, settings: Maintenance, rule: Rule) -> list[Worth]:
    """What every action is worth that has something to do."""
    found = [
        _rewriting(facts, rule),
        _layout(facts),
        _delete_files(facts),
        _manifests(facts),
        _expiring(facts, settings),
        _orphans(facts, settings),
        _old_rows(facts),
        _old_events(facts),
        _statistics(facts),
    ]
    return [one for one in found if one is not None]


def _used(facts: TableFacts) -> float:
    """How often in an hour somebody reads the table."""
    return facts.reads + facts.applies


def _rewriting(facts: TableFacts, rule: Rule) -> Worth | None:
    """Small files are joined, and deleted rows left out."""
    joined = [one for part in facts.files.values() for one in _joins(part, rule)]
    best = max(joined, key=lambda one: _ratio(*one), default=None)
    parts = facts.rewritable
    # No rows: nobody had to look at single files, and few are deleted.
    dead = min(1.0, facts.deleted_rows / parts.rows) if parts.rows else 0.0
    if best is None and dead < rule.dead_share:
        return None
    files, size = best or (0, 0)
    saved, written, said = files * OPEN_BYTES, size, []
    if files:
        said.append(f"{counted(files, 'small file')} fewer to open")
    if dead >= rule.dead_share:
        saved += int(dead * parts.size_bytes) + facts.delete_files * OPEN_BYTES
        written = max(written, parts.size_bytes)
        said.append(f"{dead:.0%} of the rows are deleted")
    return Worth(
        "rewrite_data_files",
        ", ".join(said),
        gain=saved * _used(facts),
        cost=FIXED_BYTES + (1 + WRITING) * written,
        written=written,
    )


def _layout(facts: TableFacts) -> Worth | None:
    """Files get the partitions and the order that the user asks for by now.

    Nobody notes when a layout was changed. So the waiting begins when all files had theirs the last
    time, or when the table was first maintained: a layout that changes every hour is not followed.
    """
    outdated = facts.rewritable
    if not outdated.outdated:
        return None
    return Worth(
        "rewrite_layout",
        f"{counted(outdated.outdated, 'file')} of another layout, "
        f"{outdated.outdated_bytes / 2**20:,.1f} MiB",
        # An apply finds rows by their key.
        gain=PRUNED * outdated.outdated_bytes * facts.reads,
        cost=FIXED_BYTES + (1 + WRITING) * outdated.outdated_bytes,
        written=outdated.outdated_bytes,
        since=facts.record.began,
    )


def _joins(part: FilesFacts, rule: Rule) -> Iterator[tuple[int, int]]:
    """Files that are saved and bytes that are written, for each number of smallest files joined.

    As many as `plan` of a rewrite lets join. The best of them is the worth, so that a file more
    that is as small as the smallest never lowers it.
    """
    for number, size in enumerate(accumulate(part.small), 1):
        if number >= rule.least_files and size >= rule.growth * part.small[number - 1]:
            left = max(1, round(size / rule.target_bytes))
            if number > left:
                yield number - left, size


def _ratio(files: int, size: int) -> float:
    return files * OPEN_BYTES / (FIXED_BYTES + (1 + WRITING) * size)


def _delete_files(facts: TableFacts) -> Worth | None:
    """Many files of deletes become few, but for those that the last run left."""
    last = facts.record.last.get("rewrite_position_delete_files")
    left = last.delete_files if last is not None and last.whole else 0
    fewer = facts.delete_files - max(USUAL_DELETES, left)
    if fewer <= 0 or facts.has_vectors:
        return None
    # A position is a path and a number, and paths repeat.
    written = 16 * facts.deleted_rows
    return Worth(
        "rewrite_position_delete_files",
        f"{counted(facts.delete_files, 'file')} of deletes to open",
        gain=fewer * OPEN_BYTES * _used(facts),
        cost=FIXED_BYTES + facts.delete_files * OPEN_BYTES + (1 + WRITING) * written,
        written=written,
    )


def _manifests(facts: TableFacts) -> Worth | None:
    """Every reader and every commit reads all manifests. Those of data files can be joined."""
    fewer = facts.data_manifests - USUAL_MANIFESTS
    if fewer <= 0:
        return None
    size = facts.data_manifests * MANIFEST_BYTES
    return Worth(
        "rewrite_manifests",
        f"{counted(facts.data_manifests, 'manifest')} of data files to read",
        gain=fewer * MANIFEST_BYTES * (_used(facts) + facts.commits),
        cost=FIXED_BYTES + (1 + WRITING) * size,
        written=size,
    )


def _expiring(facts: TableFacts, settings: Maintenance) -> Worth | None:
    """Each commit writes all snapshots again, and what only they have is stored."""
    if not facts.expirable:
        return None
    age = settings.snapshot_expiry.age
    since = facts.expirable_since
    metadata = facts.expirable * SNAPSHOT_BYTES * (1 + WRITING) * facts.commits
    return Worth(
        "expire_snapshots",
        f"{counted(facts.expirable, 'snapshot')} to expire, which hold "
        f"{facts.expirable_bytes / 2**20:,.1f} MiB",
        gain=metadata + STORING * facts.expirable_bytes,
        cost=FIXED_BYTES + facts.expirable * EXPIRING_BYTES,
        since=since,
        # What expires is to be gone within hours, also where nobody pays for it.
        due_at=None if since is None else since + max(age, timedelta(hours=1)),
    )


def _orphans(facts: TableFacts, settings: Maintenance) -> Worth | None:
    """Files of killed processes: nobody knows of them before somebody looks."""
    last, every = facts.record.last.get("remove_orphan_files"), settings.orphan_files.every
    # A table of few snapshots may have had no reason yet for any other action.
    begins = facts.record.began or facts.oldest if last is None else last.at
    if begins is None or facts.written_at is None:
        return None
    if last is not None and last.whole:
        # No file came since that could be old enough, or will be.
        quiet = facts.written_at + settings.orphan_files.older_than < last.at
        if quiet:
            return None
    return Worth(
        "remove_orphan_files",
        "a look for files that no snapshot has",
        gain=0.0,
        cost=FIXED_BYTES + (facts.data_files + facts.snapshots) * MANIFEST_BYTES,
        since=begins,
        due_at=begins + every,
    )


def _old_rows(facts: TableFacts) -> Worth | None:
    """Rows are to be gone when they are older than their retention, whether that pays or not."""
    if facts.retention is None or not facts.rows:
        return None
    last, oldest = facts.record.last.get("expire_rows"), facts.oldest
    wait = max(RETENTION_SHARE * facts.retention, LEAST_RETENTION)
    begins = last.at if last is not None else oldest
    return Worth(
        "expire_rows",
        "a look for rows that are too old",
        gain=0.0,
        cost=FIXED_BYTES + facts.data_files * MANIFEST_BYTES,
        since=begins,
        due_at=None if begins is None else begins + wait,
    )


def _old_events(facts: TableFacts) -> Worth | None:
    """Kept events are to be gone when they are too old, also where no apply comes that does it.

    They go by whole files, which hold those of a share of their time.
    """
    if facts.events_kept is None or facts.oldest_event is None:
        return None
    last, wait = facts.record.last.get("expire_changes"), facts.events_kept / WINDOWS
    due = facts.oldest_event + facts.events_kept + wait
    if last is not None:
        due = max(due, last.at + max(wait, LEAST_RETENTION))
    return Worth(
        "expire_changes",
        f"applied events since {facts.oldest_event:%Y-%m-%d %H:%M} UTC are kept",
        gain=0.0,
        cost=FIXED_BYTES + facts.data_files * MANIFEST_BYTES,
        since=facts.oldest_event,
        due_at=due,
    )


def _statistics(facts: TableFacts) -> Worth | None:
    """Statistics are of one snapshot: they are worth a scan where a large table rests."""
    if facts.has_statistics or facts.rows < LEAST_ROWS:
        return None
    return Worth(
        "compute_statistics",
        f"{counted(facts.rows, 'row')} without numbers of distinct values",
        gain=PLANNING * facts.size_bytes * facts.reads,
        cost=FIXED_BYTES + facts.size_bytes,
        since=facts.written_at,
    )
