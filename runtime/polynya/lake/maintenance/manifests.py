"""`rewrite_manifests`: join many small manifests into few.

A commit of the engine joins manifests itself, from `commit.manifest.min-count-to-merge` manifests
on. So this action helps only tables for which that is turned off, or that other programs wrote.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from polynya.lake.iceberg.files import listed
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.fenced import commit_fenced
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import ConflictError, FencedError
from polynya.observe.trace import span

#: Twice as many as a commit leaves.
MANY_MANIFESTS: Final = 16
_TARGET_SIZE: Final = "commit.manifest.target-size-bytes"
_TARGET_BYTES: Final = 8 * 2**20


@span("rewrite manifests")
def rewrite_manifests(
    target: DatasetTable, *, limits: ActionLimits, many: int = MANY_MANIFESTS
) -> ActionOutcome:
    """Join the manifests of data files, where there are `many` and they are small.

    One commit, that no reader notices. Manifests of delete files stay: commits join them, and the
    rewrite of deletes makes few of them. Raises ConflictError when another owner has taken the
    table over.
    """
    started = time.monotonic()
    with target.changing:
        target.reload()
        beside = target.table.opened_again()
    sizes = _sizes(beside)
    why = _why_not(beside, sizes, many)
    if why is None and limits.give_way():
        why = "a step of the table waits"
    if why is not None:
        return ActionOutcome("rewrite_manifests", why, whole=not limits.give_way())
    try:
        # Once: a faster process moved manifests, and the next look decides whether joining pays.
        commit_fenced(target, beside, _joined(beside), tries=1)
    except FencedError:
        raise
    except ConflictError:
        return ActionOutcome("rewrite_manifests", "a step of the table was faster", whole=False)
    with target.changing:
        target.reload()
    after = _sizes(target.table)
    return ActionOutcome(
        "rewrite_manifests",
        f"{len(sizes)} manifests of {sum(sizes):,} bytes became {len(after)}",
        commits=1,
        files_added=len(after),
        read_bytes=sum(sizes),
        written_bytes=sum(after),
        seconds=round(time.monotonic() - started, 3),
    )


def _why_not(table: IcebergTable, sizes: Sequence[int], many: int) -> str | None:
    """Why joining would not help; None when it would."""
    if len(sizes) < many:
        return f"there are {len(sizes)} manifests, and {many} are many"
    full = int(table.java.properties().get(_TARGET_SIZE) or _TARGET_BYTES)
    if sum(sizes) > len(sizes) * full / 2:
        return f"the {len(sizes)} manifests are full: {sum(sizes) // len(sizes):,} bytes each"
    return None


def _joined(table: IcebergTable) -> Callable[[Any], None]:
    """Iceberg joins the manifests whose files have the same key: here all have."""
    jvm: Any = table.spark._jvm
    same = jvm.com.google.common.base.Functions.constant("all")

    def join(transaction: Any) -> None:
        change = transaction.rewriteManifests().clusterBy(same)
        change.set("polynya.step", "rewrite_manifests").commit()

    return join


def _sizes(table: IcebergTable) -> list[int]:
    """Bytes of each manifest of data files in the current snapshot."""
    snapshot = table.java.currentSnapshot()
    if snapshot is None:
        return []
    return [int(manifest.length()) for manifest in listed(snapshot.dataManifests(table.java.io()))]
