"""What the rows of DMS files become: operations, names and values, from CSV and Parquet."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pytest

from polynya.formats.batch import WHOLE_FILE, BatchLimits, FileProgress
from tests.formats.dms.files import FIRST, LOAD, SECOND, a_table, lines, read, table
from tests.formats.helpers import column, rules, schema, types


def test_a_full_load_becomes_loaded_rows_and_changes_keep_their_operation() -> None:
    batch = read(
        {
            LOAD: lines("id,name", "1,Ann", "2,Ben"),
            FIRST: lines("Op,id,name", "I,3,Cid", "U,1,Anna", "D,2,Ben"),
        }
    )

    assert column(batch, "__op") == ["L", "L", "I", "U", "D"]
    assert column(batch, "id") == [1, 2, 3, 1, 2]
    assert column(batch, "name") == ["Ann", "Ben", "Cid", "Anna", "Ben"]
    assert "Op" not in batch.schema


def test_a_full_load_with_operations_is_the_same() -> None:
    batch = read({LOAD: lines("Op,id,name", "I,1,Ann")})

    assert (column(batch, "__op"), column(batch, "id")) == (["L"], [1])
    assert "Op" not in batch.schema


def test_parquet_files_bring_their_types() -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    load = {"s/t/LOAD00000001.parquet": table(id=[1], at=[at])}
    changes = {"s/t/20260101-120000123.parquet": table(Op=["U", "D"], id=[1, 2], at=[at, None])}

    batch = read({**load, **changes})

    assert column(batch, "__op") == ["L", "U", "D"]
    assert schema(batch) == {"id": "bigint", "at": "timestamp"}


def test_a_file_of_another_format_waits_for_the_next_batch() -> None:
    parquet = "s/t/20260101-120000123.parquet"

    batch = read({LOAD: lines("id", "1"), parquet: table(Op=["U"], id=[1])})

    assert list(batch.files) == [LOAD]
    assert column(batch, "id") == [1]


def test_gzip_is_read_whatever_the_name() -> None:
    batch = read({"s/t/LOAD1.csv.gz": gzip.compress(lines("id", "1")), FIRST: gzip.compress(b"")})

    assert column(batch, "id") == [1]
    assert [(one.file, one.rule) for one in batch.rejected] == []


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("X,1,a", "unknown_op"),
        (",1,a", "unknown_op"),
        ("U,1", "bad_csv"),
        ("U,1,a,b", "bad_csv"),
        ('U,1,"a"b', "bad_csv"),
        ('U,1,a"b"', "bad_csv"),
    ],
)
def test_a_bad_row_is_refused_alone(row: str, rule: str) -> None:
    batch = read({FIRST: lines("Op,id,name", "I,1,a", row, "I,2,b")})

    assert rules(batch) == [(1, rule)]
    assert column(batch, "id") == [1, 2]


def test_a_loaded_row_with_another_operation_than_insert_is_refused() -> None:
    assert rules(read({LOAD: lines("Op,id", "D,1", "I,2")})) == [(0, "unknown_op")]


def test_bytes_that_are_no_utf_8_are_refused_by_row() -> None:
    assert rules(read({LOAD: b"id,x\n1,\xff\n2,b\n"})) == [(0, "bad_utf8")]


@pytest.mark.parametrize(
    ("delivery", "texts", "values"),
    [
        ({}, ["", '""', "NULL", '"NULL"', "null"], [None, "", None, "NULL", "null"]),
        ({}, ["", '""', "NULL", '"a""b,c\nd"'], [None, "", None, 'a"b,c\nd']),
        ({"null_value": ""}, ["", '""', "NULL"], [None, "", "NULL"]),
        ({"null_value": "N"}, ["", "NULL", "N"], ["", "NULL", None]),
        ({"null_value": "NULL"}, ["", '""', "NULL", '"NULL"'], ["", "", None, "NULL"]),
    ],
)
def test_null_is_what_the_task_says_and_a_quoted_field_never_is(
    delivery: dict[str, str], texts: list[str], values: list[str | None]
) -> None:
    rows = [f"{index},{text}" for index, text in enumerate(texts)]

    assert column(read({LOAD: lines("id,x", *rows)}, a_table(**delivery)), "x") == values


def test_the_word_null_leaves_a_column_of_numbers_one() -> None:
    """What DMS writes where neither side has a setting."""
    batch = read({LOAD: lines("id,amount,x", "1,1.5,NULL", '2,NULL,"NULL"', "3,NULL,a")})

    assert str(batch.schema["amount"]) == "double"
    assert column(batch, "amount") == [1.5, None, None]
    assert column(batch, "x") == [None, "NULL", "a"]


def test_a_key_that_is_the_word_null_has_no_value() -> None:
    batch = read({FIRST: lines("Op,id,x", "I,NULL,a", "I,1,b")})

    assert column(batch, "id") == [None, 1]


def test_a_column_of_the_table_that_is_called_op_is_no_operation() -> None:
    rows = {LOAD: lines("id,Op", "1,I"), FIRST: lines("Op,id", "U,1")}
    parquet = {"s/t/LOAD00000002.parquet": table(id=[1], Op=["I"])}

    assert [one.rule for one in read(rows).rejected] == ["unreadable_file"]
    assert [one.rule for one in read(parquet).rejected] == ["unreadable_file"]


def test_another_delimiter() -> None:
    batch = read({FIRST: lines("Op|id|x", 'U|1|"a|b"', "U|2|c,d")}, a_table(delimiter="|"))

    assert column(batch, "x") == ["a|b", "c,d"]


def test_values_that_were_not_logged_are_unsent() -> None:
    rows = lines("Op,id,a,b", "U,1,x,y", "U,1,~,y")

    batch = read({FIRST: rows}, a_table(unsent_value="~"))

    assert column(batch, "a") == ["x", None]
    assert column(batch, "__unsent") == [None, ["a"]]


def test_the_word_null_may_mean_that_a_value_was_not_logged() -> None:
    batch = read({FIRST: lines("Op,id,a", "U,1,NULL")}, a_table(unsent_value="NULL"))

    assert column(batch, "__unsent") == [["a"]]


def test_types_are_inferred_as_for_csv_and_declared_ones_win() -> None:
    rows = lines("id,a,b,c", "1,007,1.5,12.10", "2,8,2,3")

    batch = read({LOAD: rows}, a_table({"columns": {"c": "decimal(9,2)"}}))

    assert schema(batch) == {"c": "decimal(9,2)", "id": "bigint", "a": "string", "b": "double"}


def test_a_known_type_stays() -> None:
    batch = read({FIRST: lines("Op,id,n", "U,1,x", "U,2,5")}, known=types(id="bigint", n="bigint"))

    assert rules(batch) == [(0, "type_mismatch")]
    assert column(batch, "n") == [5]


class TestFilesWithoutHeaderLine:
    """`columns` names the fields in order; DMS puts the operation before them."""

    settings = {"columns": {"id": "int", "name": "string"}}  # noqa: RUF012 - read only

    def test_the_operation_is_the_first_field_of_changes(self) -> None:
        batch = read(
            {LOAD: lines("1,Ann"), FIRST: lines("U,1,Anna", "D,1,")},
            a_table(self.settings, header=False),
        )

        assert column(batch, "__op") == ["L", "U", "D"]
        assert column(batch, "name") == ["Ann", "Anna", None]
        assert schema(batch) == {"id": "int", "name": "string"}

    def test_a_full_load_with_operations_is_told_by_its_fields(self) -> None:
        batch = read({LOAD: lines("I,1,Ann", "2,Ben")}, a_table(self.settings, header=False))

        assert column(batch, "id") == [1, 2]

    def test_the_time_of_the_commit_stands_behind_the_operation(self) -> None:
        table = a_table(self.settings, header=False, timestamp_column="ts")

        batch = read({FIRST: lines("U,2026-01-01 10:00:00.000001,1,Ann")}, table)

        assert column(batch, "ts") == [datetime(2026, 1, 1, 10, 0, 0, 1, UTC)]

    def test_the_time_of_the_commit_may_be_declared_elsewhere(self) -> None:
        settings = {"columns": {"id": "int", "ts": "timestamp"}}
        table = a_table(settings, header=False, timestamp_column="ts")

        batch = read({FIRST: lines("U,1,2026-01-01 10:00:00")}, table)

        assert column(batch, "id") == [1]

    def test_a_header_line_is_never_taken_for_data(self) -> None:
        table = a_table(self.settings, header=False)
        files = {LOAD: lines("ID,NAME", "1,Ann"), FIRST: lines("Op,id,name", "U,1,Anna")}

        batch = read(files, table)

        assert batch.rows.num_rows == 0
        assert [(one.offset, one.rule) for one in batch.rejected] == [
            (WHOLE_FILE, "unreadable_file")
        ] * 2
        assert all("header: false" in one.error for one in batch.rejected)

    def test_nothing_is_read_without_declared_columns(self) -> None:
        assert rules(read({LOAD: lines("1")}, a_table(header=False))) == [
            (WHOLE_FILE, "unreadable_file")
        ]

    def test_rows_with_another_number_of_fields_are_refused(self) -> None:
        table = a_table(self.settings, header=False)

        batch = read({LOAD: lines("1"), FIRST: lines("1,Ann", "U,1,Ann,x")}, table)

        assert rules(batch) == [(0, "bad_csv"), (0, "bad_csv"), (1, "bad_csv")]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (LOAD, lines("1,Ann", "2,Ben")),
        (LOAD, lines("Ann,x", "Ben,y")),
        (LOAD, lines("I,7", "I,1")),
        (LOAD, lines(",id", "I,1")),
        (LOAD, lines("id,id", "1,1")),
        (LOAD, lines("id,2.5", "1,1")),
        (LOAD, lines('id,"x')),
        (FIRST, lines("U,1,Ann", "U,2,Ben")),
        (FIRST, lines("id,name", "2,Ben")),
        (FIRST, lines("Op,name", "U,Ben")),
        (FIRST, b"\x89PNG\r\n\x1a\n" + b"\0" * 20),
        (FIRST, gzip.compress(lines("Op,id", "U,1") * 99, mtime=0)[:-9]),
        ("s/t/20260101-120000123.parquet", lines("Op,id", "U,1")),
        ("s/t/20260101-120000123.parquet", table(id=[1])),
        ("s/t/20260101-120000123.json", b'{"Op":"U","id":1}'),
        ("s/t/changes.csv", lines("Op,id", "U,1")),
        ("s/t/20261341-120000123.csv", lines("Op,id", "U,1")),
    ],
)
def test_a_file_that_is_not_what_the_task_says_is_quarantined_whole(
    path: str, content: bytes
) -> None:
    batch = read({path: content, SECOND: lines("Op,id", "U,9")})

    (refused,) = batch.rejected
    assert (refused.file, refused.offset, refused.rule) == (path, WHOLE_FILE, "unreadable_file")
    assert refused.error
    assert batch.files[path] == FileProgress(len(content), 0, complete=True)
    assert column(batch, "id") == [9]


def test_a_batch_ends_between_rows_and_goes_on_there() -> None:
    files = {LOAD: lines("id", "1", "2", "3")}

    first = read(files, limits=BatchLimits(max_rows=2))
    rest = read(files, starts={LOAD: 2})

    assert first.files[LOAD] == FileProgress(len(files[LOAD]), 2, complete=False)
    assert (column(rest, "id"), column(rest, "__offset")) == ([3], [2])
