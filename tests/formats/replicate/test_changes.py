"""What the records of Replicate become: operations, order, moves, columns that were not sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from polynya.formats.batch import NO_ORDER, BatchLimits
from tests.formats.helpers import column, rules, schema
from tests.formats.replicate.files import (
    FIRST,
    HEADER,
    LOAD,
    SECOND,
    TABLE,
    a_table,
    change,
    dfm,
    landed,
    read,
    seq,
)


def test_a_full_load_then_changes() -> None:
    at = "2026-01-01T12:00:00.000001"
    batch = read(
        {
            **landed(LOAD, "1,Ann,Ulm", "2,Ben,"),
            **landed(FIRST, change(1, "I", "3", "Cid", "", at=at), change(2, "D", "2", "", "")),
        }
    )

    assert column(batch, "__op") == ["L", "L", "I", "D"]
    assert column(batch, "__ci") == [NO_ORDER, NO_ORDER, seq(1), seq(2)]
    assert column(batch, "__ts")[2:] == [datetime(2026, 1, 1, 12, 0, 0, 1, UTC), None]
    assert batch.keys == ("id",)
    assert schema(batch) == {"id": "int", "name": "string", "city": "string"}


def test_a_before_image_with_the_same_key_is_left_out_and_counted() -> None:
    batch = read(
        landed(FIRST, change(1, "B", "1", "Ann", "Ulm"), change(1, "U", "1", "Anna", "Ulm"))
    )

    assert column(batch, "__op") == ["U"]
    assert (batch.rows_in, batch.rows_filtered) == (2, 1)
    assert batch.counters == {"before_images": 1}
    assert column(batch, "__old") == [None]


def test_a_before_image_with_another_key_moves_the_record() -> None:
    batch = read(
        landed(FIRST, change(1, "B", "1", "Ann", "Ulm"), change(1, "U", "2", "Ann", "", mask="10"))
    )

    assert column(batch, "__op") == ["D", "I"]
    assert column(batch, "id") == [1, 2]
    assert column(batch, "__old") == [None, {"id": 1}]
    assert column(batch, "__unsent") == [None, ["city"]]
    places = zip(column(batch, "__ci"), column(batch, "__tail"), strict=True)
    assert list(places) == [(seq(1), None), (seq(1), "1")]
    assert (batch.rows_in, batch.rows_filtered) == (2, 0)


@pytest.mark.parametrize("max_rows", [1, 2, 3])
def test_a_batch_never_ends_between_a_before_image_and_its_update(max_rows: int) -> None:
    rows = [
        change(1, "I", "1", "Ann", ""),
        change(2, "B", "1", "Ann", ""),
        change(2, "U", "2", "Ann", ""),
        change(3, "I", "9", "", ""),
    ]
    files, done, operations = landed(FIRST, *rows), 0, []
    while done < len(rows):
        batch = read(files, limits=BatchLimits(max_rows=max_rows), starts={FIRST: done})
        assert batch.files[FIRST].records > done
        assert batch.files[FIRST].complete == (batch.files[FIRST].records == len(rows))
        done = batch.files[FIRST].records
        operations += column(batch, "__op")
        assert batch.rejected == ()

    assert operations == ["I", "D", "I", "I"]


def test_a_pair_may_lie_in_two_files() -> None:
    files = {
        **landed(FIRST, change(1, "B", "1", "Ann", "")),
        **landed(SECOND, change(1, "U", "2", "Ann", "")),
    }

    assert column(read(files, limits=BatchLimits(max_rows=1)), "__op") == ["D", "I"]


@pytest.mark.parametrize(
    ("image", "rule"),
    [(change(1, "B", "1", "Ann", ""), "no_after"), (change(2, "B", "", "", ""), "null_key")],
)
def test_a_before_image_that_says_nothing_is_in_quarantine(image: str, rule: str) -> None:
    batch = read(landed(FIRST, image, change(2, "U", "2", "Ben", "")))

    assert rules(batch) == [(0, rule)]
    assert column(batch, "__op") == ["U"]


def test_a_table_without_keys_has_no_moves() -> None:
    specs = (("id", "INT4", 0, 0, 0),)
    rows = (change(1, "B", "1"), change(1, "U", "2"), change(2, "B", "1"))

    batch = read(landed(FIRST, *rows, specs=specs))

    assert (batch.keys, column(batch, "__op"), batch.rows_filtered) == ((), ["U"], 2)


@pytest.mark.parametrize(
    ("mask", "values", "unsent"),
    [
        ("20", ("1", "Anna", ""), ["city"]),
        ("0x20", ("1", "Anna", ""), ["city"]),
        ("60", ("1", "Anna", ""), None),
        ("20", ("1", "Anna", "Ulm"), None),
        ("40", ("1", "", ""), ["name"]),
        ("", ("1", "", ""), None),
        ("0", ("1", "", ""), None),
    ],
)
def test_an_unchanged_column_without_value_keeps_the_one_before(
    mask: str, values: tuple[str, ...], unsent: list[str] | None
) -> None:
    batch = read(landed(FIRST, change(1, "U", *values, mask=mask)))

    assert column(batch, "__unsent") == [unsent]


def test_only_updates_leave_columns_out() -> None:
    rows = (change(1, "I", "1", "", "", mask="7f"), change(2, "D", "1", "", "", mask="10"))

    assert column(read(landed(FIRST, *rows)), "__unsent") == [None, None]


def test_a_truncate_has_no_key() -> None:
    specs = (("header__operation", "STRING", 0, 0, 0), *TABLE)

    batch = read(landed(FIRST, change(1, "", "TRUNCATE", "", "", ""), specs=specs))

    assert (column(batch, "__op"), column(batch, "id")) == (["T"], [None])


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (change(1, "X", "1", "", ""), "unknown_op"),
        (change(1, "", "1", "", ""), "unknown_op"),
        (",U,,,1,,", "null_sequence"),
        ("2026,U,,,1,,", "bad_sequence"),
        (f"{'x' * 35},U,,,1,,", "bad_sequence"),
        (change(1, "U", "1", "", "", at="soon"), "bad_timestamp"),
        (change(1, "U", "1", "", "", mask="no"), "bad_header"),
        (change(1, "U", "1", "", "", mask="ff"), "bad_header"),
        (change(1, "U", "one", "", ""), "bad_value"),
        (change(1, "U", "1"), "bad_csv"),
    ],
)
def test_a_bad_record_is_refused_alone(row: str, rule: str) -> None:
    batch = read(landed(FIRST, change(1, "I", "7", "", ""), row, change(3, "I", "8", "", "")))

    assert rules(batch) == [(1, rule)]
    assert column(batch, "id") == [7, 8]


def test_types_come_from_the_dfm_file() -> None:
    specs = (
        ("id", "INT8", 0, 0, 1),
        ("a", "NUMERIC", 9, 2, 0),
        ("b", "BYTES", 0, 0, 0),
        ("c", "BOOLEAN", 0, 0, 0),
        ("d", "DATETIME", 0, 0, 0),
        ("e", "DATE", 0, 0, 0),
        ("f", "UINT8", 0, 0, 0),
        ("g", "WSTRING", 0, 0, 0),
        ("h", "TIME", 0, 0, 0),
        ("i", "REAL8", 0, 0, 0),
        ("j", "NEW_TYPE", 0, 0, 0),
        ("k", "NUMERIC", 0, 0, 0),
    )
    row = "1,1.50,00ff,1,2026-01-01 10:00:00,2026-01-02,18446744073709551615,007,10:00:00,.5,x,"

    batch = read(landed(LOAD, row, specs=specs))

    assert batch.rejected == ()
    assert schema(batch) == {
        "id": "bigint",
        "a": "decimal(9,2)",
        "b": "binary",
        "c": "boolean",
        "d": "timestamp",
        "e": "date",
        "f": "decimal(20,0)",
        "g": "string",
        "h": "string",
        "i": "double",
        "j": "string",
        "k": "void",
    }
    assert column(batch, "b") == [b"\0\xff"]
    assert column(batch, "c") == [True]
    assert column(batch, "g") == ["007"]


def test_declared_types_and_keys_win() -> None:
    dataset = a_table({"keys": ("name",), "columns": {"id": "string"}})

    batch = read(landed(LOAD, "007,Ann,"), dataset)

    assert (batch.keys, column(batch, "id")) == (("name",), ["007"])


def test_json_lines_are_read_like_csv() -> None:
    path = "u/s.t__ct/20260101-1200001230.json"
    record: dict[str, Any] = {"header__change_seq": seq(1), "header__change_oper": "U", "id": 1}
    odd = {**record, "secret": 1}
    content = b"\n".join(json.dumps(one).encode() for one in (record, odd))

    batch = read({path: content, path[:-5] + ".dfm": dfm((*HEADER, *TABLE), recordCount=2)})

    assert column(batch, "id") == [1]
    assert rules(batch) == [(1, "bad_column")]


def test_a_column_of_the_table_may_begin_like_those_of_the_header() -> None:
    own = (*TABLE, ("header__note", "STRING", 0, 0, 0))
    load = landed(LOAD, "1,Ann,Rome,x", specs=own)
    changes = landed(FIRST, change(1, "U", "1", "Ann", "Oslo", "y"), specs=own)

    batch = read({**load, **changes})

    assert column(batch, "header__note") == ["x", "y"]


def test_keys_in_another_order_are_the_same_and_other_keys_are_refused() -> None:
    two = (TABLE[0], ("name", "STRING", 0, 0, 2), TABLE[2])
    turned = (("id", "INT4", 0, 0, 2), ("name", "STRING", 0, 0, 1), TABLE[2])
    same = read({**landed(LOAD, "1,Ann,Rome", specs=two), **landed(FIRST, specs=turned)})
    other = read({**landed(LOAD, "1,Ann,Rome", specs=two), **landed(FIRST, specs=TABLE)})

    assert (same.keys, same.rejected) == (("id", "name"), ())
    assert [one.rule for one in other.rejected] == ["unreadable_file"]
