"""Rows are compared with what data files hold of them, and few columns are read for that."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from polynya.lake.copy.stored_values import StoredValues
from polynya.lake.iceberg.arrow_columns import as_stored
from polynya.lake.iceberg.deletes import FILE_STEP
from polynya.lake.iceberg.reading import TableFile
from polynya.store.data_files import LocalFiles

NAN = float("nan")
TYPES = {"amount": pa.float64(), "status": pa.string(), "seen": pa.int64()}
COLUMNS = {
    name: {"id": number, "name": name, "type": kind, "required": False}
    for number, (name, kind) in enumerate(
        {"amount": "double", "status": "string", "seen": "long"}.items(), 1
    )
}
ROWS = st.tuples(
    st.sampled_from([0.0, -0.0, 1.5, NAN, None]),
    st.sampled_from(["", "open", None]),
    st.integers(0, 1) | st.none(),
)


class One(LocalFiles):
    """Files that are read one after another, so that the order of reads is known."""

    @property
    @override
    def readers(self) -> int:
        return 1


@dataclass
class Watched(TableFile):
    """A data file which tells the columns that were read of it, one entry for each read."""

    path: str
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(LocalFiles(), self.path)

    @override
    def read_at(
        self,
        group: int,
        columns: Sequence[Mapping[str, Any]],
        rows: pa.Array,
        *,
        keep: bool = False,
    ) -> pa.Table:
        self.asked.append(tuple(column["name"] for column in columns))
        return super().read_at(group, columns, rows, keep=keep)


def table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows with all columns."""
    arrays = {
        name: pa.array([row[index] for row in rows], kind)
        for index, (name, kind) in enumerate(TYPES.items())
    }
    return pa.table(arrays)


def written(folder: Path, files: Sequence[Sequence[tuple[Any, ...]]]) -> list[Watched]:
    """Data files with row groups of two rows."""
    paths = [str(folder / f"{number}.parquet") for number in range(len(files))]
    for path, rows in zip(paths, files, strict=True):
        pq.write_table(as_stored(table(rows), list(COLUMNS.values())), path, row_group_size=2)
    return [Watched(path) for path in paths]


def same(one: Any, other: Any) -> bool:
    """As `<=>` of Spark has it."""
    return one == other or (one is not None and other is not None and one != one and other != other)


@given(
    st.lists(st.lists(ROWS, min_size=1, max_size=9), min_size=1, max_size=3),
    st.randoms(use_true_random=False),
    st.lists(ROWS, min_size=1),
)
def test_exactly_the_rows_with_another_value_differ(
    files: list[list[tuple[Any, ...]]], chance: Any, new: list[tuple[Any, ...]]
) -> None:
    places = [
        (n * FILE_STEP + at, row) for n, rows in enumerate(files) for at, row in enumerate(rows)
    ]
    chosen = chance.sample(places, chance.randint(0, len(places)))
    computed = [chance.choice([*new, stored]) for _, stored in chosen]
    with tempfile.TemporaryDirectory() as folder:
        values = StoredValues(LocalFiles(), written(Path(folder), files), COLUMNS)
        differ = values.differ(table(computed), pa.array([at for at, _ in chosen], pa.int64()))

    expected = [
        not all(map(same, row, stored)) for row, (_, stored) in zip(computed, chosen, strict=True)
    ]
    assert differ.to_pylist() == expected


def test_a_column_that_always_differs_is_read_alone(tmp_path: Path) -> None:
    stored = [(1.0, "open", number) for number in range(12)]
    (file,) = written(tmp_path, [stored])
    values = StoredValues(One(), [file], COLUMNS)

    computed = table([(1.0, "open", number + 100) for number in range(12)])
    differ = values.differ(computed, pa.array(range(12), pa.int64()))

    assert differ.to_pylist() == [True] * 12
    # The smallest column tells nothing of the first row group.
    assert file.asked == [("status",), ("amount", "seen")] + [("seen",)] * 5


def test_the_other_columns_are_read_where_it_does_not_differ(tmp_path: Path) -> None:
    stored = [(1.0, "open", number) for number in range(8)]
    (file,) = written(tmp_path, [stored])
    values = StoredValues(One(), [file], COLUMNS)

    # Of the third row group, one row has another amount and one is as it was.
    new = [(1.0, "open", number + 100) for number in range(8)]
    new[4:6] = [(2.0, "open", 4), stored[5]]
    differ = values.differ(table(new), pa.array(range(8), pa.int64()))

    assert differ.to_pylist() == [True] * 5 + [False] + [True] * 2
    first = [("status",), ("amount", "seen")]
    assert file.asked == [*first, ("seen",), ("seen",), ("amount", "status"), ("seen",)]


def test_rows_that_are_as_they_were_take_one_read_of_a_row_group(tmp_path: Path) -> None:
    stored = [(1.0, "open", number) for number in range(8)]
    (file,) = written(tmp_path, [stored])
    values = StoredValues(One(), [file], COLUMNS)

    differ = values.differ(table(stored), pa.array(range(8), pa.int64()))

    assert differ.to_pylist() == [False] * 8
    assert file.asked == [("status",), ("amount", "seen")] + [tuple(TYPES)] * 3
