"""Remove snapshots that nobody needs, and the files that only they had.

Iceberg's own clean-up finds the files. What it found is looked at once more before anything is
deleted: no file of the current snapshot may be among it.

No step of the engine waits for this. It needs no fence of its own either. What may expire is
decided from metadata whose owner is this process, and a snapshot that is current then, or later,
never expires by that decision. An owner that takes the table over afterwards works on such
snapshots only, however late the commit of this one comes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.maintenance.base import Limits, Outcome
from polynya.lake.maintenance.expiry.choice import Choice, Keep, choose
from polynya.lake.maintenance.expiry.deleting import Freed, delete
from polynya.lake.maintenance.expiry.reached import reached_by
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.warehouse.readers import Reading
from polynya.model.errors import InternalError
from polynya.observe.trace import span

log = logging.getLogger(__name__)


@span("expire snapshots")
def expire_snapshots(
    target: DatasetTable,
    *,
    limits: Limits,
    keep: Keep = Keep(),  # noqa: B008 - frozen
    readers: Callable[[], Iterable[Reading]],
) -> Outcome:
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
        return Outcome("expire_snapshots", why, whole=not choice.expired, seconds=seconds)
    paths = _expired(beside, choice)
    _refuse_files_in_use(beside, paths)
    freed = delete(beside, paths) if paths else Freed()
    return Outcome(
        "expire_snapshots",
        choice.why,
        commits=1,
        files_removed=freed.files,
        freed_bytes=freed.size_bytes,
        seconds=round(time.monotonic() - started, 3),
    )


def _chosen(
    target: DatasetTable, limits: Limits, keep: Keep, readers: Callable[[], Iterable[Reading]]
) -> tuple[IcebergTable, Choice]:
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


def _expired(table: IcebergTable, choice: Choice) -> list[str]:
    """Commit the expiry; locations of the files that nothing reaches any more.

    A `Stream.Builder` is a `Consumer` of Java's own, so that nothing is called back in Python.
    """
    jvm: Any = table.spark._jvm
    found = jvm.java.util.stream.Stream.builder()
    (
        table.java.expireSnapshots()
        .expireOlderThan(choice.older_than_ms)
        .retainLast(choice.newest)
        .deleteWith(found)
        .commit()
    )
    table.show_to_spark()
    return _collected(table, found)


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
    """Raise InternalError when a file of the current snapshot is to be deleted."""
    metadata = table.metadata()
    current = metadata.get("current-snapshot-id")
    newest = [one for one in metadata.get("snapshots", ()) if one["snapshot-id"] == current]
    used = reached_by(table, newest).paths & set(paths)
    if used:
        raise InternalError(
            "POLYNYA-MNT-010",
            f"the clean-up after an expiry of {table.name} would have deleted {len(used)} files "
            "of the current snapshot",
            where=min(used),
            state="the snapshots have expired, and no file was deleted",
            fix="report it with the metadata of the table; the files are removed as orphans later",
        )
