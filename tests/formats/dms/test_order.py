"""The order of changes: the sequence, the time of the commit, the place in DMS's own files."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polynya.formats.batch import NO_ORDER, BatchLimits, DatasetBatch
from polynya.formats.dms import dms_file, reading_order
from polynya.model.config.dataset import ResolvedDataset
from tests.formats.dms.files import FIRST, LOAD, SECOND, a_table, lines, read
from tests.formats.helpers import column, rules


def sequence_is_strictly_ascending(batch: DatasetBatch) -> bool:
    """Whether each row stands behind the one before."""
    found = column(batch, "__ci")
    return found == sorted(set(found))


def test_without_settings_the_order_is_that_of_files_and_rows() -> None:
    batch = read({SECOND: lines("Op,id", "U,3"), FIRST: lines("Op,id", "U,1", "U,2")})

    assert column(batch, "id") == [1, 2, 3]
    assert sequence_is_strictly_ascending(batch)
    assert set(map(len, column(batch, "__ci"))) == {35}
    assert column(batch, "__ts")[0] == datetime(2026, 1, 1, 12, 0, 0, 123000, UTC)


def test_the_time_of_the_commit_goes_before_the_file() -> None:
    late = lines("Op,ts,id", "U,2026-01-01 09:00:00.000002,1")
    early = lines("Op,ts,id", "U,2026-01-01 09:00:00.000003,2", "U,2026-01-01 09:00:00.000001,3")

    batch = read({FIRST: early, SECOND: late}, a_table(timestamp_column="ts"))

    by_order = sorted(zip(column(batch, "__ci"), column(batch, "id"), strict=True))
    assert [key for _, key in by_order] == [3, 1, 2]
    assert set(map(len, column(batch, "__ci"))) == {50}
    assert column(batch, "__ts")[0] == datetime(2026, 1, 1, 9, 0, 0, 3, UTC)


def test_rows_of_one_commit_keep_their_order_also_across_files() -> None:
    row = "2026-01-01 09:00:00.000002,1"
    files = {
        FIRST: lines("Op,ts,id", f"D,{row}", f"I,{row}"),
        SECOND: lines("Op,ts,id", f"U,{row}"),
    }

    batch = read(files, a_table(timestamp_column="ts"))

    assert column(batch, "__op") == ["D", "I", "U"]
    assert sequence_is_strictly_ascending(batch)


def test_a_change_without_the_time_of_its_commit_has_no_place() -> None:
    rows = lines("Op,ts,id", "U,,1", "U,soon,2", "U,2026-01-01 09:00:00,3")

    batch = read({FIRST: rows}, a_table(timestamp_column="ts"))

    assert rules(batch) == [(0, "null_sequence"), (1, "bad_value")]
    assert column(batch, "id") == [3]


def test_a_file_without_the_column_of_the_commit_has_no_order() -> None:
    batch = read({FIRST: lines("Op,id", "U,1")}, a_table(timestamp_column="ts"))

    assert rules(batch) == [(0, "null_sequence")]


def test_a_sequence_decides_and_the_place_in_the_file_breaks_ties() -> None:
    rows = lines("Op,id,seq", "U,1,20", "U,1,10", "U,1,10")

    batch = read({FIRST: rows}, a_table({"sequence_by": ("seq",)}))

    first, second, third = column(batch, "__ci")
    assert second == third < first
    positions = column(batch, "__position")
    assert positions == sorted(set(positions))


def test_a_redelivered_row_has_the_sequence_that_it_had() -> None:
    rows = lines("Op,id,seq", "U,1,20")

    batch = read({FIRST: rows, SECOND: rows}, a_table({"sequence_by": ("seq",)}))

    assert len(set(column(batch, "__ci"))) == 1


@pytest.mark.parametrize(
    "table", [a_table(), a_table(timestamp_column="ts"), a_table({"sequence_by": ("ts",)})]
)
def test_a_full_load_stands_before_all_changes(table: ResolvedDataset) -> None:
    """A cached change may have been committed before the time that the load writes."""
    load, changes = "2026-06-01 00:00:00,1", "U,2026-01-01 00:00:00,1"

    batch = read({LOAD: lines("ts,id", load, ",2"), FIRST: lines("Op,ts,id", changes)}, table)

    assert column(batch, "__ci")[:2] == [NO_ORDER] * 2
    assert column(batch, "__ci")[2] > NO_ORDER
    assert column(batch, "__position")[:2] == [None, None]


def test_another_column_may_hold_the_time_of_the_event() -> None:
    rows = lines("Op,ts,at,id", "U,2026-01-01 09:00:00,2020-02-02,1")

    batch = read({FIRST: rows}, a_table({"timestamp": "at"}, timestamp_column="ts"))

    assert column(batch, "__ts") == [datetime(2020, 2, 2, tzinfo=UTC)]
    assert column(batch, "__ci")[0].startswith("20260101")


def test_names_of_different_widths_sort_by_the_time_that_they_say() -> None:
    names = ["20141029-1134010000.csv", "20141029-113401001.csv", "20141029-113401.csv"]

    places = [dms_file(name).place for name in names]

    assert [len(place or "") for place in places] == [20, 20, 20]
    assert [name for _, name in sorted(zip(places, names, strict=True))] == [
        names[2],
        names[0],
        names[1],
    ]


def test_the_load_is_read_first_then_changes_then_foreign_names() -> None:
    names = ["c/s/t/20260101-000000000.csv", "s/t/odd.csv", "s/t/LOAD0000000A.csv"]

    assert sorted(names, key=reading_order) == [names[2], names[0], names[1]]


@pytest.mark.parametrize("delivery", [{}, {"timestamp_column": "ts"}])
def test_the_split_into_batches_does_not_change_a_place(delivery: dict[str, str]) -> None:
    rows = [f"U,2026-01-01 09:00:0{n % 2},{n}" for n in range(4)]
    files = {FIRST: lines("Op,ts,id", *rows), SECOND: lines("Op,ts,id", *rows)}
    whole = read(files, a_table(**delivery))

    places: list[str] = []
    for path, content in files.items():
        for start in range(len(rows)):
            part = {path: content}
            limits = BatchLimits(max_rows=1)
            batch = read(part, a_table(**delivery), limits=limits, starts={path: start})
            places += column(batch, "__ci")

    assert places == column(whole, "__ci")
