"""Both states in one file, as another engine's compaction leaves them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.table import state
from polynya.lake.table.state import (
    ApplyState,
    CopyState,
    SourcePosition,
    TableOwnership,
    TableState,
    read_state,
    stage_states,
)
from polynya.model.errors import InternalError
from polynya.model.headers import APPLY_CHANGE_IDENTIFIER, COPY_CHANGE_IDENTIFIER, STATE

COPY = CopyState(
    ownership=TableOwnership(3, "ours", "c"), position=SourcePosition(copied_to="0042")
)
APPLY = ApplyState(ownership=TableOwnership(3, "ours", "a"), applied_to="0041")
JOINED = DataFile(None, "joined.parquet", "asset_state", 2, 100)
NEXT = TableOwnership(3, "ours", "next")


class Stored:
    """A table of one file of states, as far as reading them needs it."""

    name = "shop_internal.users_internal"

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        columns: dict[str, list[Any]] = {
            name: [text if name == kind else None for kind, text in rows]
            for name in (COPY_CHANGE_IDENTIFIER, APPLY_CHANGE_IDENTIFIER)
        }
        columns = {name: [one and "" for one in values] for name, values in columns.items()}
        table = pa.table({**columns, STATE: [text for _, text in rows]})
        out = io.BytesIO()
        pq.write_table(table, out)
        self._content = out.getvalue()

    def snapshot_id(self) -> int:
        return 7

    def files(self, *_: Any) -> tuple[DataFile, ...]:
        return (JOINED,)

    @property
    def java(self) -> Any:
        """Itself: the file is read through a chain of Java objects."""
        return self

    def io(self) -> Any:
        return self

    def newInputFile(self, _: str) -> Any:
        return self

    def newStream(self) -> Any:
        return self

    def readAllBytes(self) -> bytes:
        return self._content

    def close(self) -> None:
        """Nothing to close."""


def stored(*rows: tuple[str, str]) -> IcebergTable:
    return cast("IcebergTable", Stored(rows))


BOTH = (APPLY_CHANGE_IDENTIFIER, APPLY.to_json()), (COPY_CHANGE_IDENTIFIER, COPY.to_json())


def test_both_are_read() -> None:
    state = read_state(stored(*BOTH))

    assert state == TableState(7, COPY, APPLY, JOINED, JOINED)
    assert state.is_joined


def test_the_next_commit_parts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def write(_table: Any, column: str, _identifier: Any, _text: str) -> DataFile:
        written.append(column)
        return DataFile(None, f"{column}.parquet", "asset_state", 1, 10)

    monkeypatch.setattr(state, "_write", write)
    table = stored(*BOTH)
    before = read_state(table)

    after = stage_states(table, before, NEXT, copy=COPY, apply=None)

    assert written == [COPY_CHANGE_IDENTIFIER, APPLY_CHANGE_IDENTIFIER]
    assert before.new_files(after) == [JOINED]
    assert [file.path for file in after.new_files(before)] == [f"{one}.parquet" for one in written]
    assert (after.copy.position, after.apply.applied_to) == (COPY.position, "0041")
    assert after.copy.ownership == after.apply.ownership == NEXT
    assert not after.is_joined


def test_two_of_one_kind_are_refused_also_in_one_file() -> None:
    with pytest.raises(InternalError) as caught:
        read_state(stored(BOTH[1], BOTH[1]))

    assert caught.value.code == "POLYNYA-LAKE-006"
