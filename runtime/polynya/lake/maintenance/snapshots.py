"""`expire_snapshots`: expire snapshots that nobody needs, and delete the files only they reach.

The choice needs the metadata of the table alone. A snapshot is in use until another one takes its
place, so its age counts from that moment and not from its creation: on a table without commits for
a week, a query reads a snapshot that is a week old. A query shorter than `Keep.age` needs nothing
else to be safe. Every commit writes the entries of all snapshots again, so a table with a commit
every two seconds does not keep all of `Keep.age`, but at most `Keep.at_most` snapshots, and in any
case those that were current within `LEAST_AGE`. Snapshots are not thinned out: where one is
missing, Iceberg forgets which snapshot was current before it, and older ones could be read only by
their ids.

Iceberg's own clean-up finds the files. Before anything is deleted, its result is checked against
the files of the current snapshot, read from Iceberg's Avro files without Spark and without a call
per file.

No step of the engine waits for an expiry, and the expiry needs no fence. It is decided from
metadata whose owner is this process; a snapshot that is current then, or later, never expires by
that decision. An owner that takes the table over afterwards works only on such snapshots, however
late this commit comes.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any, Final

import fastavro

from polynya.lake.iceberg.reading import each_read
from polynya.lake.iceberg.table import IcebergTable, ThroughJava
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.warehouse.readers import CLOCK_SKEW, RunningReader
from polynya.model.error_catalogue.operation import CLEANUP_OF_USED_FILE
from polynya.observe.trace import span
from polynya.store.data_files import ReadableFiles

log = logging.getLogger(__name__)
#: What was current within this time stays, however many snapshots there are: a query of ours
#: registers after a quarter of an hour (`lake/warehouse/readers.py`), and Athena ends a query after
#: half an hour.
LEAST_AGE: Final = timedelta(minutes=30)
_MAIN: Final = "main"
#: Settings by which a branch keeps its own number of snapshots; Iceberg puts them above ours.
_OWN_RULES: Final = ("min-snapshots-to-keep", "max-snapshot-age-ms")
_DELETED_ENTRY: Final = 2
#: Names that S3 accepts in one request.
_NAMES_PER_REQUEST: Final = 1000


@dataclass(frozen=True, slots=True)
class Keep:
    """Snapshots that stay: `age` after another one followed, and the newest `at_least` of them.

    By their age no more than the newest `at_most` stay, but those of `least_age` in any case.
    """

    age: timedelta = timedelta(hours=2)
    at_least: int = 10
    at_most: int = 1000

    @property
    def least_age(self) -> timedelta:
        """The time after another one followed for which a snapshot stays whatever else there is."""
        return min(self.age, LEAST_AGE)


@dataclass(frozen=True, slots=True)
class ExpiryChoice:
    """What to ask Iceberg for, and why.

    `older_than_ms` is when the oldest snapshot was made that stays (epoch milliseconds), `newest`
    the number of snapshots of the main branch that stay, `expired` how many go; 0 for none.
    """

    why: str
    expired: int = 0
    older_than_ms: int = 0
    newest: int = 1


@span("expire snapshots")
def expire_snapshots(
    target: DatasetTable,
    *,
    limits: ActionLimits,
    keep: Keep = Keep(),
    readers: Callable[[], Iterable[RunningReader]],
) -> ActionOutcome:
    """Expire the snapshots of a table that `keep` does not keep, and delete their files.

    `readers` is asked for the readers at work (`Readers.at_work`). Snapshots that this process
    works on stay, and those of tags and branches. Raises ConflictError when another owner has taken
    the table over, and InternalError when the clean-up would have deleted a file that is in use.
    """
    started = time.monotonic()
    beside, choice = _chosen(target, limits, keep, readers)
    if not choice.expired or limits.give_way():
        why = choice.why if not choice.expired else "a step of the table waits"
        seconds = round(time.monotonic() - started, 3)
        return ActionOutcome("expire_snapshots", why, whole=not choice.expired, seconds=seconds)
    paths = _expired(beside, choice)
    _refuse_files_in_use(beside, paths)
    freed = delete(beside, paths) if paths else Freed()
    return ActionOutcome(
        "expire_snapshots",
        choice.why,
        commits=1,
        files_removed=freed.files,
        freed_bytes=freed.size_bytes,
        seconds=round(time.monotonic() - started, 3),
    )


def _chosen(
    target: DatasetTable,
    limits: ActionLimits,
    keep: Keep,
    readers: Callable[[], Iterable[RunningReader]],
) -> tuple[IcebergTable, ExpiryChoice]:
    """What expires, by metadata whose owner is this process; and the table as it is there."""
    with target.changing:
        beside = target.table.opened_again()
        metadata = beside.metadata()
        current = metadata.get("current-snapshot-id")
        if target.state.snapshot is not None and current != target.state.snapshot:
            # Raises when it is no longer ours.
            target.reload()
        held = target.table.kept_snapshots()
        choice = choose(metadata, keep, now=limits.now, held=held, readers=readers())
    return beside, choice


def choose(
    metadata: Mapping[str, Any],
    keep: Keep,
    *,
    now: datetime,
    held: Collection[int] = (),
    readers: Iterable[RunningReader] = (),
) -> ExpiryChoice:
    """Choose what expires. `metadata` is the JSON that Iceberg's specification gives a table.

    `held` are ids of snapshots that this process works on. They stay, with all that came later: a
    commit is validated against each snapshot since the one that it was computed from.
    """
    refs = metadata.get("refs", {})
    if str(metadata.get("properties", {}).get("gc.enabled", "true")).lower() == "false":
        return ExpiryChoice(
            "`gc.enabled` of the table is false: its files may belong to other tables"
        )
    if any(name in refs.get(_MAIN, {}) for name in _OWN_RULES):
        return ExpiryChoice("the main branch has its own retention, which Polynya leaves alone")
    snapshots = _snapshots(metadata)
    readers = list(readers)
    if any(reader.since is None for reader in readers):
        return ExpiryChoice("a reader may read any snapshot of the past")
    read_since = [reader.since - CLOCK_SKEW for reader in readers if reader.since is not None]
    before = min([now - keep.age, *read_since])
    surely = min([now - keep.least_age, *read_since])
    held_since = min(
        (snapshot.made_ms for snapshot in snapshots if snapshot.number in held), default=None
    )
    stays = [
        snapshot
        for snapshot in snapshots
        if snapshot.left_ms is None
        or snapshot.left_ms >= _ms(surely)
        or (snapshot.left_ms >= _ms(before) and snapshot.is_among(keep.at_most, off_main=True))
        or snapshot.is_among(keep.at_least)
        or (held_since is not None and snapshot.made_ms >= held_since)
    ]
    if not stays:
        return ExpiryChoice("there is no snapshot")
    cutoff = min(snapshot.made_ms for snapshot in stays)
    newest = 1 + max(
        (snapshot.place for snapshot in stays if snapshot.place is not None), default=0
    )
    named = {ref["snapshot-id"] for ref in refs.values()}
    gone = [
        snapshot
        for snapshot in snapshots
        if snapshot.made_ms < cutoff
        and (snapshot.place is None or snapshot.place >= newest)
        and snapshot.number not in named
    ]
    if not gone:
        return ExpiryChoice(_why_none(snapshots, keep, before, now))
    crowded = any(
        snapshot.left_ms is not None and snapshot.left_ms >= _ms(before) for snapshot in gone
    )
    since, newer = (surely, keep.at_most) if crowded else (before, keep.at_least)
    return ExpiryChoice(
        f"{len(gone):,} of {len(snapshots):,} snapshots were followed by another before "
        f"{since:%Y-%m-%d %H:%M} UTC and are not among the newest {newer:,}",
        expired=len(gone),
        older_than_ms=cutoff,
        newest=newest,
    )


def _why_none(snapshots: Sequence[_Snapshot], keep: Keep, before: datetime, now: datetime) -> str:
    if len(snapshots) <= keep.at_least:
        return f"there are {len(snapshots)} snapshots, and {keep.at_least} always stay"
    if before < now - keep.age:
        return f"a reader is at work since {before + CLOCK_SKEW:%H:%M} UTC"
    return f"no snapshot is older than {keep.age} and free"


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """One snapshot. Times in epoch milliseconds; `left_ms` None for the current one.

    `place` counts back from the current snapshot; None off the main branch.
    """

    number: int
    made_ms: int
    left_ms: int | None
    place: int | None

    def is_among(self, newest: int, *, off_main: bool = False) -> bool:
        """Whether it is one of the newest of the main branch; off it `off_main`."""
        return off_main if self.place is None else self.place < newest


def _snapshots(metadata: Mapping[str, Any]) -> list[_Snapshot]:
    """Every snapshot, with the time at which it stopped being the current one."""
    made = {
        snapshot["snapshot-id"]: int(snapshot["timestamp-ms"])
        for snapshot in metadata.get("snapshots", ())
    }
    parents = {
        snapshot["snapshot-id"]: snapshot.get("parent-snapshot-id")
        for snapshot in metadata.get("snapshots", ())
    }
    places: dict[int, int] = {}
    left: dict[int, int | None] = {}
    at: int | None = metadata.get("current-snapshot-id")
    following: int | None = None
    while at is not None and at in made and at not in places:
        places[at] = len(places)
        left[at] = following
        following, at = made[at], parents[at]
    # The log knows of a rollback, which the line of parents does not show.
    log = metadata.get("snapshot-log", ())
    for entry, later in pairwise(log):
        number, until = entry["snapshot-id"], int(later["timestamp-ms"])
        if places.get(number) != 0:
            left[number] = max(until, left.get(number) or 0)
    return [
        _Snapshot(number, time, left.get(number, time), places.get(number))
        for number, time in made.items()
    ]


def _expired(table: IcebergTable, choice: ExpiryChoice) -> list[str]:
    """Commit the expiry; locations of the files that nothing reaches any more.

    A `Stream.Builder` is a `Consumer` of Java's own, so that nothing is called back in Python.
    """
    jvm: Any = table.spark._jvm
    builder = jvm.java.util.stream.Stream.builder()
    (
        table.java.expireSnapshots()
        .expireOlderThan(choice.older_than_ms)
        .retainLast(choice.newest)
        .deleteWith(builder)
        .commit()
    )
    table.show_to_spark()
    return _collected(table, builder)


def _collected(table: IcebergTable, builder: Any) -> list[str]:
    """What a `Stream.Builder` was given. Its class is not public, only its interface is."""
    jvm: Any = table.spark._jvm
    context: Any = table.spark.sparkContext
    no_types = context._gateway.new_array(jvm.java.lang.Class, 0)
    nothing = context._gateway.new_array(jvm.java.lang.Object, 0)
    given = builder
    for interface, method in (("Stream$Builder", "build"), ("Stream", "toArray")):
        named = jvm.java.lang.Class.forName(f"java.util.stream.{interface}")
        given = named.getMethod(method, no_types).invoke(given, nothing)
    return [str(given[index]) for index in range(len(given))]


def _refuse_files_in_use(table: IcebergTable, paths: Iterable[str]) -> None:
    """Raise InternalError when the files to delete include one of the current snapshot."""
    metadata = table.metadata()
    current = metadata.get("current-snapshot-id")
    newest = [
        snapshot for snapshot in metadata.get("snapshots", ()) if snapshot["snapshot-id"] == current
    ]
    used = reached_by(table, newest).paths & set(paths)
    if used:
        raise CLEANUP_OF_USED_FILE(where=min(used), count=len(used), table=table.name)


@dataclass(frozen=True, slots=True)
class ReachedFiles:
    """Locations as the metadata spells them."""

    lists: frozenset[str] = frozenset()
    manifests: frozenset[str] = frozenset()
    content: frozenset[str] = frozenset()

    @property
    def paths(self) -> frozenset[str]:
        """All of them."""
        return self.lists | self.manifests | self.content


def reached_by(table: IcebergTable, snapshots: Iterable[Mapping[str, Any]]) -> ReachedFiles:
    """What the snapshots reach, each given as the table's metadata has it. Raises OSError."""
    reads = table.reach().reads
    files: ReadableFiles = ThroughJava(table) if isinstance(reads, str) else reads
    lists = {
        str(snapshot["manifest-list"]) for snapshot in snapshots if snapshot.get("manifest-list")
    }
    manifests = set().union(*each_read(files, lambda path: _manifests(files, path), sorted(lists)))
    content = set().union(*each_read(files, lambda path: _content(files, path), sorted(manifests)))
    return ReachedFiles(frozenset(lists), frozenset(manifests), frozenset(content))


def _manifests(files: ReadableFiles, location: str) -> set[str]:
    return {str(record["manifest_path"]) for record in _records(files, location)}


def _content(files: ReadableFiles, location: str) -> set[str]:
    """Data or delete files of a manifest; those that it names as gone are not among them."""
    return {
        str(record["data_file"]["file_path"])
        for record in _records(files, location)
        if record["status"] != _DELETED_ENTRY
    }


def _records(files: ReadableFiles, location: str) -> list[dict[str, Any]]:
    with files.open(location) as source:
        return [record for record in fastavro.reader(source) if isinstance(record, dict)]


@dataclass(frozen=True, slots=True)
class Freed:
    """What was deleted. `size_bytes` counts files whose size is known."""

    files: int = 0
    size_bytes: int = 0


def sizes(table: IcebergTable) -> dict[str, int]:
    """Size in bytes of each file in the table's folder; empty where it cannot be listed."""
    reads = table.reach().reads
    if isinstance(reads, str):
        return {}
    return {file.location: file.size for file in reads.list(str(table.java.location()))}


def delete(
    table: IcebergTable, paths: Sequence[str], known_sizes: Mapping[str, int] | None = None
) -> Freed:
    """Delete files by Iceberg's FileIO; a missing file raises nothing.

    `known_sizes` are the sizes of the table's files, None to list them.
    """
    known_sizes = sizes(table) if known_sizes is None else known_sizes
    jvm: Any = table.spark._jvm
    mapper = table.iceberg.util.JsonUtil.mapper()
    texts = mapper.getTypeFactory().constructFromCanonical("java.util.ArrayList<java.lang.String>")
    iterator, beside = iter(paths), True
    while some := list(islice(iterator, _NAMES_PER_REQUEST)):
        names = mapper.readValue(json.dumps(some), texts)
        jvm.org.apache.iceberg.CatalogUtil.deleteFiles(table.java.io(), names, "unused", beside)
    return Freed(len(paths), sum(known_sizes.get(path, 0) for path in paths))
