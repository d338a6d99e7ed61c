"""Commit a change of metadata that is not a step, under the fence of the table's owner.

A step replaces a state file, which is its compare-and-swap. Properties, statistics and joined
manifests replace no state file. So `commit_fenced` reads the owner from the metadata that the
commit follows, and the catalog accepts the commit only while that metadata is the newest: an owner
that came meanwhile has committed. Iceberg's own commits would retry on the newest metadata, whose
owner nobody has checked.

A REST catalog compares only what a commit changes: the head of the branch for joined manifests,
nothing for a property or statistics. For those two the owner was checked right before the commit.
That is enough: no result and no step depends on them, and the next action of the new owner writes
them again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from polynya.lake.errors import is_refusal, refusal
from polynya.lake.iceberg.files import listed
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.spark import api
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.fence import refuse_overtaken
from polynya.lake.table.state import read_state

#: So often a change is made again when another commit was faster.
COMMIT_ATTEMPTS: Final = 5


def commit_fenced(
    target: DatasetTable,
    table: IcebergTable,
    change: Callable[[Any], None],
    *,
    tries: int = COMMIT_ATTEMPTS,
) -> None:
    """Commit what `change` does with a Java `Transaction`, once for each of the tries at most.

    `table` is that of the target, held by `changing`, or the same one opened again. Raises
    ConflictError when another owner has taken the table over, or when other commits were faster
    each time; nothing was changed then.
    """
    assert target.owned, "take over the table before committing"
    for left in reversed(range(tries)):
        transaction = table.java.newTransaction()
        _refuse_overtaken(target, table, transaction)
        change(transaction)
        try:
            swap(transaction)
        except api.Py4JJavaError as error:
            if not is_refusal(error):
                raise
            _drop_staged(table, transaction)
            if not left:
                _refuse_overtaken(target, table, table.java.newTransaction())
                raise refusal(table.name, error) from error
        else:
            table.show_to_spark()
            return


def swap(transaction: Any) -> None:
    """Let the metadata of a transaction take the place of that which it began with."""
    before, after = transaction.startMetadata(), transaction.currentMetadata()
    transaction.underlyingOps().commit(before, after)


def _refuse_overtaken(target: DatasetTable, table: IcebergTable, transaction: Any) -> None:
    """Raise FencedError when the metadata that a transaction began with has a newer owner."""
    current = transaction.startMetadata().currentSnapshot()
    if current is not None and int(current.snapshotId()) == target.state.snapshot:
        return
    refuse_overtaken(read_state(table).ownership, target.epoch, target.table.name)


def _drop_staged(table: IcebergTable, transaction: Any) -> None:
    """Remove the files of a snapshot that the catalog has refused."""
    before = transaction.startMetadata().currentSnapshot()
    made = transaction.currentMetadata().currentSnapshot()
    if made is None or (before is not None and before.snapshotId() == made.snapshotId()):
        return
    manifests = listed(made.allManifests(table.java.io()))
    staged = [
        str(manifest.path()) for manifest in manifests if manifest.snapshotId() == made.snapshotId()
    ]
    table.drop_files([*staged, str(made.manifestListLocation())])
