"""A probe that looks keys up finds what one that reads them finds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.lake.apply import build
from polynya.lake.apply.probe import NeededOrder, NeededRows, NeededVersions
from polynya.model import headers as h
from tests.lake.apply.stored import BUILDS, HEADERS, NEWER, Files, Watched

TYPES = {
    "long": st.integers(-4, 4),
    "int": st.integers(-4, 4),
    "string": st.sampled_from(["", "a", "aa", "b", "ä", "Z"]),
    "decimal(9, 2)": st.integers(-3, 3).map(lambda n: Decimal(n) / 4),
    "date": st.sampled_from([date(1970, 1, 1), date(2026, 1, 2), date(2026, 1, 3)]),
    "boolean": st.booleans(),
    "timestamptz": st.sampled_from(
        [datetime(1969, 12, 31, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]
    ),
    "binary": st.binary(max_size=1),
}
ALL = ("v", *HEADERS)
WAYS = (NEWER, replace(NEWER, oldest="0"), NeededRows(ALL))
CASES = st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3).flatmap(
    lambda kinds: st.tuples(
        st.just({f"k{number}": kind for number, kind in enumerate(kinds)}),
        st.lists(
            st.tuples(
                # Versions of one key: in Prior all the time, in Current where some are deleted.
                st.lists(st.tuples(*(TYPES[kind] for kind in kinds)), min_size=1, max_size=20),
                st.sampled_from(["current", "current", "prior"]),
                st.integers(1, 4),
            ),
            max_size=3,
        ),
        st.lists(st.tuples(*(TYPES[kind] for kind in kinds)), min_size=1, max_size=10),
    )
)


@given(CASES, st.sampled_from(WAYS))
def test_the_same_rows_are_found(
    case: tuple[dict[str, str], list[Any], list[tuple[Any, ...]]], wanted: NeededVersions
) -> None:
    keys, files, touched = case
    with tempfile.TemporaryDirectory() as folder:
        table = Files(Path(folder), keys)
        for rows, partition, groups in files:
            table.write(rows, partition=partition, groups=groups)
        indexes = Watched(Path(folder) / "keys")
        read = table.find(touched, wanted)

        assert table.find(touched, wanted, indexes) == read
        BUILDS.wait()
        assert table.find(touched, wanted, indexes) == read
        assert indexes.used >= bool(read)


def test_an_index_keeps_the_time_that_every_apply_needs(
    tmp_path: Path,
) -> None:
    table, indexes = Files(tmp_path, {"id": "long"}), Watched(tmp_path / "keys")
    table.write([(3,), (1,), (2,)], groups=2)
    expected = table.find([(2,), (4,)])
    indexes.build(table.source())

    file, stored = table.files[0]
    watched = _Stored(stored)
    table.files = [(file, watched)]
    assert table.find([(2,), (4,)], indexes=indexes) == expected
    assert watched.read_groups == set()
    assert [row[h.INSERTED_TIMESTAMP].microsecond for row in expected] == [2]


def test_row_groups_between_touched_keys_are_not_read(tmp_path: Path) -> None:
    table = Files(tmp_path, {"id": "long"})
    table.write([(number,) for number in range(40)], groups=4)
    file, stored = table.files[0]
    watched = _Stored(stored)
    table.files = [(file, watched)]

    found = table.find([(1,), (2,), (39,), (1000,)])

    assert [row["id"] for row in found] == [1, 2, 39]
    assert watched.read_groups == {0, 3}


def test_of_a_key_of_several_columns_all_records_in_range_are_counted(tmp_path: Path) -> None:
    table, indexes = Files(tmp_path, {"part": "int", "id": "long"}), Watched(tmp_path / "keys")
    table.write([(number // 10, number) for number in range(20)])

    table.find([(1, number) for number in range(8)] + [(2, 1)], indexes=indexes)

    assert indexes.asked == [{"read": 20, "likely": 8, "far": False}]


class _Stored:
    """A file whose row groups are counted when they are read."""

    def __init__(self, stored: Any) -> None:
        self._stored = stored
        self.read_groups: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stored, name)

    def read(self, group: int, columns: Any, **options: Any) -> Any:
        self.read_groups.add(group)
        return self._stored.read(group, columns, **options)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(1, "a"), (2, None)], "a key is NULL"),
        ([(1, "a" * 2000), (2, "b")], "take more than 1,000 bytes"),
    ],
)
def test_what_cannot_be_indexed_is_read(
    rows: Sequence[tuple[Any, ...]], reason: str, tmp_path: Path
) -> None:
    table = Files(tmp_path, {"id": "long", "part": "string"})
    table.write(rows)

    assert reason in str(build.sorted_keys(table.source(), most_bytes=1000))


def test_touched_keys_with_a_null_are_not_looked_up(tmp_path: Path) -> None:
    table, indexes = Files(tmp_path, {"id": "long"}), Watched(tmp_path / "keys")
    table.write([(1,), (2,)])
    indexes.build(table.source())

    assert table.find([(1,), (None,)], indexes=indexes) == table.find([(1,), (None,)])
    assert indexes.used == 0


def test_files_of_which_the_footer_proves_all_are_not_indexed(tmp_path: Path) -> None:
    table, indexes = Files(tmp_path, {"id": "long"}), Watched(tmp_path / "keys")
    table.write([(1,), (2,)], partition="prior")

    table.find([(1,)], NeededOrder("9", NEWER.earliest), indexes)
    BUILDS.wait()

    assert not (tmp_path / "keys").exists()
