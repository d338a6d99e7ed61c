"""Read and write the state rows of an internal table (see `state.py` for what they mean)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.iceberg.gateway import IcebergTable, LiveFile
from polynya.lake.table.copy_state import CopyState
from polynya.lake.table.state import ApplyState
from polynya.model.contract.headers import (
    APPLY_CHANGE_IDENTIFIER,
    COPY_CHANGE_IDENTIFIER,
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
    copy_file: LiveFile | None = None
    apply_file: LiveFile | None = None

    @property
    def epoch(self) -> int:
        """Highest epoch that ever owned the table."""
        return max(self.copy.ownership.epoch, self.apply.ownership.epoch)


def read_state(table: IcebergTable) -> TableState:
    """State rows of the current snapshot."""
    snapshot = table.snapshot_id()
    copy, apply = CopyState(), ApplyState()
    copy_file = apply_file = None
    for file in table.files(Partition.ASSET_STATE, snapshot):
        kind, text = _read_row(table, file)
        if kind == "copy":
            if copy_file is not None:
                raise _doubled(table)
            copy, copy_file = CopyState.from_json(text), file
        else:
            if apply_file is not None:
                raise _doubled(table)
            apply, apply_file = ApplyState.from_json(text), file
    return TableState(snapshot, copy, apply, copy_file, apply_file)


def write_copy_state(table: IcebergTable, state: CopyState) -> Any:
    """Stage the file of a copy state."""
    return _write(table, COPY_CHANGE_IDENTIFIER, state.position.copied_to, state.to_json())


def write_apply_state(table: IcebergTable, state: ApplyState) -> Any:
    """Stage the file of an apply state."""
    return _write(table, APPLY_CHANGE_IDENTIFIER, state.applied_to, state.to_json())


def _write(table: IcebergTable, column: str, identifier: str | None, text: str) -> Any:
    # An empty identifier and not NULL: which of the two columns is set tells the kind of the state.
    columns = {
        column: pa.array([identifier or ""], pa.string()),
        STATE: pa.array([text], pa.string()),
    }
    return table.write_data_file(Partition.ASSET_STATE, columns)


def _read_row(table: IcebergTable, file: LiveFile) -> tuple[str, str]:
    stream = table.java.io().newInputFile(file.path).newStream()
    try:
        content = bytes(stream.readAllBytes())
    finally:
        stream.close()
    # Not `pq.read_table`: threads that it leaves may abort a process that exits right after.
    row = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False).to_pylist()[0]
    return ("copy" if row.get(COPY_CHANGE_IDENTIFIER) is not None else "apply"), str(row[STATE])


def _doubled(table: IcebergTable) -> InternalError:
    return InternalError(
        "POLYNYA-LAKE-006",
        f"{table.name} holds two state rows of one kind",
        where=table.name,
        state="nothing was written; the table was changed by something that is not Polynya",
        fix="roll the table back to the snapshot before that change",
    )
