"""A load that is compared in memory makes the events that the comparison by SQL makes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.lake.copy.compared_load import _ORDER, _are_older, _events, _read, _SideFiles, _Sides
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.deletes import FILE_STEP
from polynya.lake.iceberg.reading import TableFile
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import Reloading
from polynya.model import headers as h
from polynya.model.config.dataset import DELETING, KEEPING
from polynya.model.types import BIGINT, DOUBLE, STRING
from polynya.store.data_files import LocalFiles

SHAPE = Shape(("a", "b"), {"a": BIGINT, "b": STRING, "x": DOUBLE, "y": STRING})
STARTED = datetime(2026, 11, 29, tzinfo=UTC)
OWN = datetime(2026, 11, 28, tzinfo=UTC)
PLACE = "5" * 35
NAN = float("nan")
#: No table: keys of these types are hashed without one.
NO_TABLE = cast("DatasetTable", None)

KEYS = st.tuples(st.integers(0, 3), st.sampled_from("pq"))
VALUES = st.tuples(st.sampled_from([0.0, -0.0, 1.5, NAN, None]), st.sampled_from(["", "x", None]))
LOADED = st.dictionaries(KEYS, st.tuples(st.sampled_from("LD"), VALUES))
STORED = st.dictionaries(
    KEYS, st.tuples(st.sampled_from(["L", "U", "d", "D"]), VALUES, st.booleans())
)


def side(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows: key, values, operation, change identifier, tail."""
    text, time = pa.string(), pa.timestamp("us", "UTC")
    types = (pa.int64(), text, pa.float64(), text, text, text, text, time)
    names = (*SHAPE.columns, h.OPERATION, h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL, h.TIMESTAMP)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(one, kind) for one, kind in zip(columns, types, strict=True)]
    return pa.table(dict(zip(names, arrays, strict=True)))


def loaded_side(rows: dict[Any, Any]) -> pa.Table:
    loaded = side([(*key, *values, op, PLACE, None, OWN) for key, (op, values) in rows.items()])
    return loaded.drop_columns(list(_ORDER))


def stored_side(rows: dict[Any, Any], *, ordered: bool = True) -> pa.Table:
    """`ordered`: where no row is newer than the load, their order is read all the same."""
    stored = side(
        [
            (*key, *values, op, "6" * 35 if later else "4" * 35, None, OWN)
            for key, (op, values, later) in rows.items()
        ]
    ).drop_columns([h.TIMESTAMP])
    is_read = ordered or any(later for _, _, later in rows.values())
    return stored if is_read else stored.drop_columns(list(_ORDER))


def same(one: Any, other: Any) -> bool:
    """As `<=>` has it."""
    return bool(one == other or (one != one and other != other))


def expected(loaded: dict[Any, Any], stored: dict[Any, Any], *, deletes: bool) -> dict[Any, str]:
    """Operations by key, one record at a time."""
    found: dict[Any, str] = {}
    for key in loaded.keys() | stored.keys():
        operation, values, later = stored.get(key, (None, None, False))
        was_live = operation in {"L", "U"}
        if later:
            continue
        if key not in loaded:
            if was_live and deletes:
                found[key] = "d"
            continue
        sent, new = loaded[key]
        if sent == "D":
            if was_live:
                found[key] = "d"
        elif not was_live:
            found[key] = "i"
        elif not all(map(same, new, values)):
            found[key] = "u"
    return found


@given(LOADED, STORED, st.booleans(), st.booleans())
def test_only_records_that_differ_make_events(
    loaded: dict[Any, Any], stored: dict[Any, Any], deletes: bool, ordered: bool
) -> None:
    reloading = Reloading(DELETING if deletes else KEEPING, 1, STARTED.isoformat(), PLACE)
    sides = _Sides(loaded_side(loaded), stored_side(stored, ordered=ordered))

    events = _events(NO_TABLE, SHAPE, sides, reloading, SHAPE.values)

    assert isinstance(events, pa.Table)
    rows = events.to_pylist()
    found = {(row["a"], row["b"]): row[h.OPERATION] for row in rows}
    assert found == expected(loaded, stored, deletes=deletes)
    assert len(rows) == len(found)
    for row in rows:
        is_delete = row[h.OPERATION] == "d"
        values = (None, None) if is_delete else loaded[row["a"], row["b"]][1]
        assert all(map(same, (row["x"], row["y"]), values))
        assert row[h.TIMESTAMP] == (STARTED if is_delete else OWN)
        assert (row[h.CHANGE_IDENTIFIER], row[h.SEQUENCE_TAIL]) == (PLACE, "~000001")
        assert len(row[h.KEY_HASH]) == 20


def test_a_record_that_was_loaded_twice_is_left_to_spark() -> None:
    twice = side([(1, "p", 1.5, None, "L", PLACE, None, OWN)] * 2).drop_columns(list(_ORDER))
    reloading = Reloading(DELETING, 1, STARTED.isoformat(), PLACE)

    found = _events(NO_TABLE, SHAPE, _Sides(twice, stored_side({})), reloading, SHAPE.values)

    assert found == "a record was loaded twice"


@pytest.mark.parametrize(
    ("places", "are_older"),
    [
        ([("4" * 35, None), ("3" * 35, "f")], True),
        ([("4" * 35, None), (PLACE, "~000001"), (PLACE, "~000002")], True),
        ([("4" * 35, "f"), (PLACE, "~000003")], False),
        ([("4" * 35, None), ("6" * 35, None)], False),
        # Nothing is known of the tails.
        ([(PLACE, None)], False),
    ],
)
def test_the_order_of_rows_is_not_read_where_their_ranges_tell_it(
    tmp_path: Path, places: list[tuple[str, str | None]], are_older: bool
) -> None:
    columns = {name: {"id": n, "name": name, "type": "string"} for n, name in enumerate(_ORDER, 1)}
    fields = [
        pa.field(name, pa.string(), metadata={"PARQUET:field_id": str(column["id"])})
        for name, column in columns.items()
    ]
    identifiers, tails = zip(*places, strict=True)
    rows = pa.table([pa.array(identifiers), pa.array(tails, pa.string())], pa.schema(fields))
    pq.write_table(rows, tmp_path / "rows.parquet")
    file = TableFile(LocalFiles(), str(tmp_path / "rows.parquet"))

    second = Reloading(DELETING, 2, STARTED.isoformat(), PLACE)

    assert _are_older([file], columns, second) is are_older


def test_each_side_has_its_live_rows(tmp_path: Path) -> None:
    """Of files with row groups of two, the second, third and fifth row of the middle one are gone.

    So is the last one of the last file, which is of the other side.
    """
    column = {"id": 1, "name": "a", "type": "long"}
    field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "1"})
    stored = []
    for number in range(3):
        rows = pa.table([pa.array(range(10 * number, 10 * number + 5))], pa.schema([field]))
        path = tmp_path / f"{number}.parquet"
        pq.write_table(rows, path, row_group_size=2)
        stored.append((number, TableFile(LocalFiles(), str(path))))
    gone = pa.array([FILE_STEP + at for at in (1, 2, 4)] + [2 * FILE_STEP + 4])

    sides = _read(
        LocalFiles(), [_SideFiles(stored[:2], [column]), _SideFiles(stored[2:], [column])], gone
    )

    assert [sorted(side.column("a").to_pylist()) for side in sides] == [
        [0, 1, 2, 3, 4, 10, 13],
        [20, 21, 22, 23],
    ]
