"""Columns that stay in memory: the last used, up to a limit; and files are not opened again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polynya.lake.iceberg import reading
from polynya.lake.iceberg.reading import COLUMN_BYTES, ColumnCache, TableFile
from polynya.store.data_files import LocalFiles

EIGHT_BYTES = pa.chunked_array([pa.array([1], pa.int64())])
A_COLUMN = 8 + COLUMN_BYTES
COLUMNS = [{"name": name, "id": number, "type": "long"} for number, name in enumerate("ab", 1)]


def test_the_least_recently_used_are_forgotten_at_the_limit() -> None:
    kept = ColumnCache(limit=3 * A_COLUMN)
    for place in "abc":
        kept.add(place, {"x": EIGHT_BYTES})
    kept.of("a", ["x"])

    kept.add("d", {"x": EIGHT_BYTES})

    assert [bool(kept.of(place, ["x"])) for place in "abcd"] == [True, False, True, True]
    assert kept.size_bytes == 3 * A_COLUMN


def test_what_is_larger_than_the_limit_is_not_kept() -> None:
    kept = ColumnCache(limit=A_COLUMN - 1)

    kept.add("a", {"x": EIGHT_BYTES})

    assert kept.of("a", ["x"]) == {}
    assert kept.size_bytes == 0


def test_a_column_that_is_added_twice_counts_once() -> None:
    kept = ColumnCache()

    for _ in range(2):
        kept.add("a", {"x": EIGHT_BYTES, "y": EIGHT_BYTES})

    assert kept.size_bytes == 2 * A_COLUMN


class CountedFiles(LocalFiles):
    """Files that know how often one was opened."""

    opened = 0

    @contextmanager
    def open(self, location: str) -> Iterator[Any]:
        type(self).opened += 1
        with super().open(location) as file:
            yield file


def test_only_columns_that_are_not_known_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "COLUMN_CACHE", ColumnCache())
    monkeypatch.setattr(CountedFiles, "opened", 0)
    rows = pa.table({"a": [1, 2], "b": [3, 4]})
    fields = [
        field.with_metadata({"PARQUET:field_id": str(number)})
        for number, field in enumerate(rows.schema, 1)
    ]
    path = tmp_path / "rows.parquet"
    pq.write_table(rows.cast(pa.schema(fields)), path)
    stored = TableFile(CountedFiles(), str(path))

    def read(*columns: int, keep: bool = True) -> tuple[dict[str, list[int]], int]:
        before = CountedFiles.opened
        found = stored.read(0, [COLUMNS[number] for number in columns], keep=keep)
        return found.to_pydict(), CountedFiles.opened - before

    assert read(0, keep=False) == ({"a": [1, 2]}, 1)
    assert read(0) == ({"a": [1, 2]}, 1)
    assert read(0, 1) == ({"a": [1, 2], "b": [3, 4]}, 1)
    assert read(1, 0) == ({"b": [3, 4], "a": [1, 2]}, 0)
    assert read(0, keep=False) == ({"a": [1, 2]}, 1)
