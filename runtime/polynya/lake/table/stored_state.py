"""Read and write the state rows of an internal table (see `state.py` for what they mean)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.staging import write_rows
from polynya.lake.table.copy_state import CopyState
from polynya.lake.table.state import ApplyState, Ownership
from polynya.model.contract.headers import (
    APPLY_CHANGE_IDENTIFIER,
    COPY_CHANGE_IDENTIFIER,
    PARTITION,
    STATE,
    Partition,
)
from polynya.model.errors import InternalError


@dataclass(frozen=True, slots=True)
class TableState:
    """Both states of a table in one snapshot, and their files (None: not written yet)."""

    snapshot: int | None
    copy: CopyState
    apply: ApplyState
    copy_file: DataFile | None = None
    apply_file: DataFile | None = None

    @property
    def epoch(self) -> int:
        """Highest epoch that ever owned the table."""
        return self.ownership.epoch

    @property
    def ownership(self) -> Ownership:
        """Of the newest owner."""
        return max(self.copy.ownership, self.apply.ownership, key=lambda one: one.epoch)

    @property
    def is_joined(self) -> bool:
        """Whether one file holds both: another engine's compaction has joined them."""
        return self.copy_file is not None and self.copy_file == self.apply_file

    def new_files(self, before: TableState) -> list[DataFile]:
        """Files of states that `before` does not have."""
        known = (before.copy_file, before.apply_file)
        mine = dict.fromkeys((self.copy_file, self.apply_file))
        return [file for file in mine if file is not None and file not in known]


def read_state(table: IcebergTable) -> TableState:
    """State rows of the current snapshot."""
    snapshot = table.snapshot_id()
    copy, apply = CopyState(), ApplyState()
    copy_file = apply_file = None
    found = table.files(Partition.ASSET_STATE, snapshot)
    for file, (kind, text) in ((one, row) for one in found for row in _read_rows(table, one)):
        if kind == "copy":
            if copy_file is not None:
                raise _doubled(table)
            copy, copy_file = CopyState.from_json(text), file
        else:
            if apply_file is not None:
                raise _doubled(table)
            apply, apply_file = ApplyState.from_json(text), file
    return TableState(snapshot, copy, apply, copy_file, apply_file)


def stage_states(
    table: IcebergTable,
    before: TableState,
    ownership: Ownership,
    *,
    copy: CopyState | None,
    apply: ApplyState | None,
) -> TableState:
    """Stage the files of the states that change, in the name of their owner.

    Returns the states after the commit, still with the snapshot of `before`. States that another
    engine has joined get files of their own again.
    """
    if before.is_joined:
        copy, apply = copy or before.copy, apply or before.apply
    after = before
    if copy is not None:
        copy = replace(copy, ownership=ownership)
        file = _write(table, COPY_CHANGE_IDENTIFIER, copy.position.copied_to, copy.to_json())
        after = replace(after, copy=copy, copy_file=file)
    if apply is not None:
        apply = replace(apply, ownership=ownership)
        file = _write(table, APPLY_CHANGE_IDENTIFIER, apply.applied_to, apply.to_json())
        after = replace(after, apply=apply, apply_file=file)
    return after


def _write(table: IcebergTable, column: str, identifier: str | None, text: str) -> DataFile:
    # An empty identifier and not NULL: which of the two columns is set tells the kind of the state.
    partition = str(Partition.ASSET_STATE)
    row = pa.table({PARTITION: [partition], column: [identifier or ""], STATE: [text]})
    (file,) = write_rows(table, row)
    return file


def _read_rows(table: IcebergTable, file: DataFile) -> list[tuple[str, str]]:
    """Kind and text of each state in a file; one of ours holds one."""
    stream = table.java.io().newInputFile(file.path).newStream()
    try:
        content = bytes(stream.readAllBytes())
    finally:
        stream.close()
    # Not `pq.read_table`: threads that it leaves may abort a process that exits right after.
    rows = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False).to_pylist()
    return [
        ("copy" if row.get(COPY_CHANGE_IDENTIFIER) is not None else "apply", str(row[STATE]))
        for row in rows
    ]


def _doubled(table: IcebergTable) -> InternalError:
    return InternalError(
        "POLYNYA-LAKE-006",
        f"{table.name} holds two state rows of one kind",
        where=table.name,
        state="nothing was written; the table was changed by something that is not Polynya",
        fix="roll the table back to the snapshot before that change",
    )
