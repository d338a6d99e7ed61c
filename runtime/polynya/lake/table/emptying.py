"""Give a table back the state that it had before its first run, in one commit.

Not by dropping it: to drop a table checks no owner, so a node that stood still for minutes could
drop the one that its successor has filled. This commit is refused like any other.
"""

from __future__ import annotations

from typing import Final

from polynya.lake.iceberg.layout import without_columns
from polynya.lake.iceberg.user_layout import columns_in_use
from polynya.lake.table.copy_state import CopyState, SourceColumns
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import ApplyState
from polynya.model.contract.headers import Partition

#: The state files go with the new state.
_EMPTIED: Final = tuple(one for one in Partition if one is not Partition.ASSET_STATE)


def empty(target: DatasetTable, *, behind: bool = False) -> None:
    """Remove all rows, columns of the source, positions and decisions of a table that was taken.

    What was read is forgotten, so the next step reads all that has landed. Columns by which files
    are, or were, parted or sorted stay with their types: Iceberg needs them to read those files.
    Earlier snapshots keep what they had until they expire. `behind`: see `Position`.

    Raises what `DatasetTable.commit` raises, and BeingAppliedError while an apply is at work. Then
    nothing was changed.
    """
    with target.changing:
        target.refuse_beside_apply()
        target.take_layout_back()
        snapshot = target.state.snapshot
        files = [file for part in _EMPTIED for file in target.table.files(part, snapshot)]
        deletes = target.table.position_deletes(snapshot) if snapshot is not None else None
        known = target.state.copy.columns.schema
        kept = columns_in_use(target.table)
        columns = SourceColumns(schema={one: kind for one, kind in known.items() if one in kept})
        target.commit(
            copy=CopyState(columns=columns).with_behind(behind=behind),
            apply=ApplyState(),
            remove=files,
            drop=list(deletes or ()),
            summary={"polynya.step": "recreate", "polynya.removed-files": str(len(files))},
            within=without_columns(target.table, known.keys() - kept),
        )
        target.reload()
