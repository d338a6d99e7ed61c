"""One atomic commit: the only place where the engine changes a table.

Every step is one Java `RowDelta`. It removes the state file that the step was based on and
validates that the file still exists: a compare-and-swap (semantics section 11,
docs/adr/0007-one-commit-per-step.md).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from polynya.lake.errors import (
    first_line,
    is_dropped,
    is_refusal,
    machine_error,
    refusal,
    unknown,
)
from polynya.lake.iceberg.files import COMMIT, DataFile, DeleteFile, listed
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.spark import api
from polynya.model.error_catalogue.lake import COMMIT_FAILED, SNAPSHOT_EXPIRED, TABLE_DROPPED
from polynya.model.headers import Partition
from polynya.observe.trace import count, is_on, span
from polynya.store.data_files import LocalFiles

if TYPE_CHECKING:
    from polynya.lake.spark.api import Py4JJavaError

log = logging.getLogger(__name__)

#: What it says when the snapshots since the first one are not all there, or that one is not.
_NO_HISTORY, _NO_ANCESTOR = "Cannot determine history", "is not an ancestor of"


@dataclass(frozen=True, slots=True)
class CommitStep:
    """What one commit adds and removes.

    `based_on` is the snapshot whose state it follows, None for an empty table. `add` and `deletes`
    are files that were staged, `remove` and `drop` live data and delete files that go. `commit_id`
    is the marker that the new state files carry. `since` is the snapshot whose versions the step
    was computed from, None where that is `based_on`. `within` is a Java `Transaction` that holds
    changes of columns: they are committed with the step.
    """

    commit_id: str
    based_on: int | None
    add: Sequence[DataFile]
    remove: Sequence[DataFile] = ()
    deletes: Sequence[DeleteFile] = ()
    drop: Sequence[DeleteFile] = ()
    summary: Mapping[str, str] = field(default_factory=dict)
    since: int | None = None
    within: Any = None

    @property
    def touched(self) -> list[str]:
        """Paths of the data files that position deletes refer to."""
        return sorted({path for file in self.deletes for path in file.touched})

    @property
    def staged(self) -> list[str]:
        """Paths of the files that nobody needs if the step is refused."""
        return [*(file.path for file in self.add), *(file.path for file in self.deletes)]


@dataclass(frozen=True, slots=True)
class Committed:
    """The current snapshot after a commit, and whether it is `base` and that step, nothing else."""

    snapshot: int
    is_step_alone: bool


@span("commit", table=attrgetter("name"))
def commit_row_delta(table: IcebergTable, step: CommitStep) -> Committed:
    """Commit one step.

    Raises ConflictError when another process changed the table since `based_on` (nothing changed,
    staged files are removed), StaleStepError when `since` has expired meanwhile, and
    DependencyError when the outcome is unknown (staged files are kept: they may be live), and
    OperationError when the table was dropped.
    """
    delta, java_files = (step.within or table.java).newRowDelta(), table.java_files()
    if isinstance(table.reach().writes, LocalFiles):
        # Iceberg looks every 10 ms whether its threads have written a manifest: five times in a
        # commit, although a local one takes one or two.
        delta.scanManifestsWith(table.calling_thread)
    for file in step.add:
        delta.addRows(java_files.of(file))
    for file in step.remove:
        delta.removeRows(java_files.of(file))
    for deletes in step.deletes:
        delta.addDeletes(deletes.java)
    for deletes in step.drop:
        delta.removeDeletes(deletes.java)
    _validate(table, delta, step)
    for key, value in {**step.summary, COMMIT: step.commit_id}.items():
        delta.set(key, value)
    try:
        delta.commit()
        if step.within is not None:
            step.within.commitTransaction()
    except api.Py4JJavaError as error:
        _refuse_unless_live(table, step, error)
        log.warning("the commit of %s was made although the catalog reported an error", table.name)
    except api.CapturedException as error:
        if _NO_ANCESTOR not in str(error):
            raise
        if _is_live(table, step) is False:
            table.drop_files(step.staged)
        why = str(error).partition("\n")[0]
        raise SNAPSHOT_EXPIRED(where=table.name, why=why, table=table.name) from error
    table.show_to_spark()
    _count_metadata(table)
    return _outcome(table, step)


def _count_metadata(table: IcebergTable) -> None:
    """Count the files of metadata that the newest commit wrote, and their bytes, in the trace."""
    if not is_on():
        return
    java, io = table.java, table.java.io()
    snapshot = java.currentSnapshot()
    number = int(snapshot.snapshotId())
    sizes = [
        int(manifest.length())
        for manifest in listed(snapshot.allManifests(io))
        if int(manifest.snapshotId()) == number
    ]
    whole = snapshot.manifestListLocation(), java.operations().current().metadataFileLocation()
    sizes += [int(io.newInputFile(path).getLength()) for path in whole]
    count("metadata_files", len(sizes))
    count("metadata_bytes", sum(sizes))


def _outcome(table: IcebergTable, step: CommitStep) -> Committed:
    """What the table holds now; other commits may have come since the step."""
    current = table.current()
    assert current is not None, "a commit was made"
    alone = current.parent == step.based_on and current.commit == step.commit_id
    if alone:
        table.committed(current, step.add, step.remove, deletes=step.deletes, drop=step.drop)
    return Committed(current.number, alone)


def _validate(table: IcebergTable, delta: Any, step: CommitStep) -> None:
    java_files = table.java_files()
    if step.based_on is None:
        # A new table has no state file to remove: the process that adds the first one owns it.
        delta.conflictDetectionFilter(java_files.within(Partition.ASSET_STATE))
        delta.validateNoConflictingDataFiles()
        return
    (
        delta.validateFromSnapshot(step.since or step.based_on)
        .conflictDetectionFilter(java_files.within(Partition.CURRENT, Partition.PRIOR))
        .validateDeletedFiles()
        .validateNoConflictingDeleteFiles()
        .validateNoConflictingDataFiles()
    )
    if step.touched:
        delta.validateDataFilesExist(java_files.texts(step.touched))


def _refuse_unless_live(table: IcebergTable, step: CommitStep, error: Py4JJavaError) -> None:
    """Raise what a failed commit is called, unless the table holds the step all the same."""
    if is_dropped(error):
        raise TABLE_DROPPED(where=table.name, table=table.name) from error
    is_live = _is_live(table, step)
    if is_refusal(error) or not is_live:
        raise _explained(table, step, error, is_live=is_live) from error


def _is_live(table: IcebergTable, step: CommitStep) -> bool | None:
    """Whether the table holds the step: its marker is in one of the snapshots since `based_on`.

    None when that is unknown: one of them has expired, and no state file of the step is there.
    """
    table.refresh()
    snapshot = newest = table.current()
    while snapshot is not None and snapshot.number != step.based_on:
        if snapshot.commit == step.commit_id:
            return True
        if snapshot.parent is None:
            return False
        snapshot = table.snapshot(snapshot.parent)
    if snapshot is not None or newest is None:
        return False
    states = table.files(Partition.ASSET_STATE, newest.number)
    return True if {file.path for file in states} & set(step.staged) else None


def _explained(
    table: IcebergTable, step: CommitStep, error: Py4JJavaError, *, is_live: bool | None
) -> Exception:
    if is_refusal(error):
        # A step that is live already was given to the catalog twice: its files must stay.
        if is_live is False:
            table.drop_files(step.staged)
        if _NO_HISTORY in first_line(error):
            return SNAPSHOT_EXPIRED(where=table.name, why=first_line(error), table=table.name)
        return refusal(table.name, error)
    kind = str(error.java_exception.getClass().getSimpleName())
    if kind == "CommitStateUnknownException" or is_live is None:
        return unknown(table.name, error)
    # The staged files stay: no reader sees them, and a commit that comes true late would need them.
    return machine_error(error) or COMMIT_FAILED(
        where=table.name, table=table.name, kind=kind, reason=first_line(error)
    )
