"""Rows of a live view by values of its columns, over files, deletes and pending changes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.arrow_columns import arrow_type, as_stored
from polynya.lake.iceberg.deletes import FILE_STEP, Deleted
from polynya.lake.iceberg.files import DataFile
from polynya.lake.read.rows_by_value import RowsByValue
from polynya.model import headers as h
from polynya.model.types import BIGINT, DOUBLE, INT, STRING
from polynya.store.data_files import LocalFiles

SHAPE = Shape(("a", "b"), {"a": BIGINT, "b": STRING, "g": INT, "v": DOUBLE})
TYPES = {
    "a": "long", "b": "string", "g": "int", "v": "double",
    h.CHANGE_IDENTIFIER: "string", h.SEQUENCE_TAIL: "string", h.OPERATION: "string",
    h.COPY_CHANGE_IDENTIFIER: "string", h.UNSENT: "string", h.OLD_KEY: "string",
}  # fmt: skip
COLUMNS = {
    name: {"id": number, "name": name, "type": kind, "required": False}
    for number, (name, kind) in enumerate(TYPES.items(), 1)
}
KEYS = st.tuples(st.integers(0, 5), st.sampled_from("pq"))
GROUPS = st.sampled_from([1, 2, 3, None])
#: Versions of records in some files: the last one of each is live.
FILES = st.lists(
    st.lists(st.tuples(KEYS, GROUPS), max_size=6, unique_by=lambda row: row[0]), max_size=4
)
EVENTS = st.lists(st.tuples(KEYS, GROUPS, st.sampled_from("UUD")), max_size=6)
BY_KEY = st.lists(KEYS, min_size=1, max_size=8)
BY_GROUP = st.lists(GROUPS, min_size=1, max_size=3)


def written(folder: Path, number: int, rows: list[dict[str, Any]], partition: str) -> DataFile:
    """A data file in row groups of two rows."""
    arrays = [pa.array([row.get(name) for row in rows], arrow_type(k)) for name, k in TYPES.items()]
    path = folder / f"{number}.parquet"
    stored = as_stored(pa.table(arrays, list(TYPES)), list(COLUMNS.values()))
    pq.write_table(stored, path, row_group_size=2)
    return DataFile(None, str(path), partition, len(rows), path.stat().st_size)


def view(folder: Path, files: Any, events: Any, **other: Any) -> tuple[RowsByValue, dict[Any, Any]]:
    """A view of files and pending events, and the rows that it shows by their keys."""
    shown: dict[Any, Any] = {}
    places: dict[Any, int] = {}
    gone, current = [], []
    for number, rows in enumerate(files):
        for at, (key, group) in enumerate(rows):
            if key in places:
                gone.append(places[key])
            places[key] = number * FILE_STEP + at
            shown[key] = {"a": key[0], "b": key[1], "g": group, "v": float(places[key])}
        made = [shown[key] for key, _ in rows]
        current.append(written(folder, number, made, "current"))
    pending = []
    for number, (key, group, operation) in enumerate(events):
        row = {"a": key[0], "b": key[1], "g": group, "v": -float(number)}
        shown.pop(key, None)
        if operation == "U":
            shown[key] = row
        place = {h.CHANGE_IDENTIFIER: f"{number:03}", h.OPERATION: operation}
        pending.append({**row, **place, h.COPY_CHANGE_IDENTIFIER: "0", **other})
    changes = [written(folder, len(current), pending, "changes")] if pending else []
    paths = tuple(file.path for file in (*current, *changes))
    deleted = Deleted(paths, pa.array(gone, pa.int64()))
    made_view = RowsByValue(LocalFiles(), SHAPE, COLUMNS, tuple(current), tuple(changes), deleted)
    return made_view, shown


def rows_of(found: pa.Table | str) -> list[Any]:
    """The rows, in an order."""
    assert not isinstance(found, str), found
    return sorted(map(repr, found.to_pylist()))


@settings(max_examples=40, deadline=None)
@given(FILES, EVENTS, BY_KEY)
def test_rows_are_found_by_their_keys(files: Any, events: Any, wanted: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made, shown = view(Path(folder), files, events)
        keys = pa.table({"b": [key[1] for key in wanted], "a": [key[0] for key in wanted]})

        found = made.find(["a", "b", "g", "v"], keys)

        assert rows_of(found) == sorted(repr(row) for key, row in shown.items() if key in wanted)


@settings(max_examples=40, deadline=None)
@given(FILES, EVENTS, BY_GROUP)
def test_rows_are_found_by_another_column(files: Any, events: Any, wanted: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made, shown = view(Path(folder), files, events)

        found = made.find(["v"], pa.table({"g": pa.array(wanted, pa.int64())}))

        expected = [repr({"v": row["v"]}) for row in shown.values() if row["g"] in wanted]
        assert rows_of(found) == sorted(expected)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({h.COPY_CHANGE_IDENTIFIER: None}, "may be late"),
        ({h.OPERATION: "T"}, "truncate"),
        ({h.OLD_KEY: "x"}, "only the fold knows"),
        ({h.CHANGE_IDENTIFIER: "1"}, "claim one place"),
    ],
)
def test_pending_changes_that_need_a_fold_are_left_to_spark(
    tmp_path: Path, other: dict[str, Any], reason: str
) -> None:
    made, _ = view(tmp_path, [[((1, "p"), 1)]], [((1, "p"), 2, "U"), ((1, "p"), 3, "U")], **other)

    found = made.find(["v"], pa.table({"g": [1]}))

    assert isinstance(found, str)
    assert reason in found


def test_values_that_are_not_compared_exactly_are_left_to_spark(tmp_path: Path) -> None:
    made, _ = view(tmp_path, [], [])

    assert "exactly" in str(made.find(["a"], pa.table({"v": [0.5]})))
