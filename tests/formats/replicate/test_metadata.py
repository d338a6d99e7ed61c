"""A file is read only if its `.dfm` file describes it; else it is quarantined whole."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.formats.batch import WHOLE_FILE, FileProgress
from polynya.formats.files import NoTable
from polynya.formats.replicate.tables import is_load, metadata_path, table_of_replicate
from tests.formats.helpers import column, rules, types
from tests.formats.replicate.files import (
    FIRST,
    HEADER,
    LOAD,
    TABLE,
    a_table,
    change,
    dfm,
    landed,
    read,
)

_DFM = metadata_path(LOAD)
_GOOD = landed(LOAD, "1,Ann,Ulm")[LOAD]


def _document(**sections: Any) -> bytes:
    return json.dumps({**json.loads(dfm(TABLE)), **sections}).encode()


def _columns(*columns: Any) -> bytes:
    return _document(dataInfo={"columns": list(columns)})


@pytest.mark.parametrize(
    ("content", "metadata", "told"),
    [
        (_GOOD, None, "cannot be opened"),
        (_GOOD, b"not json", "cannot be read"),
        (_GOOD, b'{"a":1,"a":2}', "cannot be read"),
        (_GOOD, b"[" * 500, "cannot be read"),
        (_GOOD, b" " * (8 * 1024 * 1024 + 1), "larger"),
        (_GOOD, b"{}", "lists no columns"),
        (_GOOD, _document(dataInfo=[]), "not an object"),
        (_GOOD, _columns(1), "not an object"),
        (_GOOD, _columns({"name": ""}), "no name"),
        (_GOOD, _columns({"name": "a"}, {"name": "a"}), "same name"),
        (_GOOD, _columns({"name": "a", "ordinal": 1}, {"name": "b", "ordinal": 1}), "same ordinal"),
        (_GOOD, _columns({"name": "a", "ordinal": "1"}), "not a number"),
        (_GOOD, _columns({"name": "a", "ordinal": 10**9}), "ordinal"),
        (_GOOD, _columns({"name": "a", "primaryKeyPos": True}), "not a number"),
        (_GOOD, dfm(TABLE, recordCount=2), "says 2 records, the file has 1"),
        (_GOOD, dfm(TABLE, recordCount=-1), "not a number"),
        (_GOOD, dfm(TABLE, name="LOAD00002"), "describes 'LOAD00002'"),
        (_GOOD, dfm((*TABLE, ("hdr__partition", "INT4", 0, 0, 0))), "keeps for itself"),
        (_GOOD, dfm((*TABLE, ("__file", "STRING", 0, 0, 0))), "keeps for itself"),
        (_GOOD, dfm((*TABLE, ("ID", "INT4", 0, 0, 0))), "differ only in case"),
        (_GOOD, dfm((*TABLE, ("a\nb", "INT4", 0, 0, 0))), "control character"),
        (_GOOD, dfm(TABLE[:2]), "does not name the columns"),
        (_GOOD, dfm((*TABLE[:2], ("town", "STRING", 0, 0, 0))), "does not name the columns"),
        (_GOOD, dfm(TABLE, options={"fieldDelimiter": "||"}), "fieldDelimiter"),
        (_GOOD, dfm(TABLE, options={"escapeChar": "\\"}), "escapeChar"),
        (_GOOD, dfm(TABLE, options={"quoteChar": "'"}), "quoteChar"),
        (_GOOD, dfm(TABLE, options={"recordDelimiter": "|"}), "recordDelimiter"),
        (_GOOD, dfm(TABLE, options={"nullValue": 1}), "nullValue"),
        (b"1,Ann,Ulm\n", dfm(TABLE), "header: false"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 20, dfm(TABLE), "PNG"),
    ],
)
def test_a_file_that_its_metadata_does_not_describe_is_quarantined_whole(
    content: bytes, metadata: bytes | None, told: str
) -> None:
    later = landed("u/s.t/LOAD00002.csv", "2,Ben,")
    files = {LOAD: content, **({} if metadata is None else {_DFM: metadata}), **later}

    batch = read(files)

    (refused,) = batch.rejected
    assert (refused.file, refused.offset, refused.rule) == (LOAD, WHOLE_FILE, "unreadable_file")
    assert told in refused.error
    assert batch.files[LOAD] == FileProgress(len(content), 0, complete=True)
    assert column(batch, "id") == [2]


def test_changes_need_their_header_columns() -> None:
    path = "u/s.t__ct/20260101-1200001230.csv"

    (refused,) = read({path: _GOOD, metadata_path(path): dfm(TABLE)}).rejected

    assert "header__change_oper" in refused.error


@pytest.mark.parametrize(
    "info",
    [{"name": "LOAD00001"}, {"name": "LOAD00001.csv"}, {"name": None}, {"extension": ".csv"}],
)
def test_names_are_written_with_and_without_ending(info: dict[str, Any]) -> None:
    assert rules(read({LOAD: _GOOD, _DFM: dfm(TABLE, **info)})) == []


@pytest.mark.parametrize("header", ["id:INT4(10),name:STRING(9),city", "id,name:NUMERIC(9,2),city"])
def test_a_header_line_may_have_types(header: str) -> None:
    content = f"{header}\n1,5,x\n".encode()

    assert column(read({LOAD: content, _DFM: dfm(TABLE)}), "id") == [1]


def test_files_without_header_line_have_their_names_from_the_metadata() -> None:
    dataset = a_table(header=False)

    batch = read({LOAD: b"1,Ann,Ulm\n", _DFM: dfm(TABLE, recordCount=1)}, dataset)

    assert column(batch, "name") == ["Ann"]
    (refused,) = read({LOAD: _GOOD, _DFM: dfm(TABLE)}, dataset).rejected
    assert "begins with a header line" in refused.error


def test_the_metadata_says_how_csv_is_written() -> None:
    options = {"fieldDelimiter": "|", "nullValue": "NULL"}
    content = b'id|name|city\n1|NULL|"NULL"\n'

    batch = read({LOAD: content, _DFM: dfm(TABLE, options=options)})

    assert (column(batch, "name"), column(batch, "city")) == ([None], ["NULL"])


def test_keys_that_differ_from_those_of_the_table_are_not_taken() -> None:
    (refused,) = read(landed(LOAD, "1,Ann,"), keys=("name",)).rejected

    assert "['id']" in refused.error


def test_a_column_that_differs_only_in_case_from_one_of_the_table_is_not_taken() -> None:
    (refused,) = read(landed(LOAD, "1,Ann,"), known=types(Name="string")).rejected

    assert "differ only in case" in refused.error


def test_a_file_without_records_is_no_bad_file() -> None:
    empty = read({LOAD: b"", _DFM: dfm(TABLE, recordCount=0)})

    assert (empty.rows_in, empty.files[LOAD].complete) == (0, True)
    assert rules(read(landed(LOAD))) == []


def test_metadata_without_keys_takes_those_of_the_table() -> None:
    specs = tuple((*spec[:4], 0) for spec in TABLE)

    batch = read(landed(FIRST, change(1, "U", "1", "", ""), specs=specs), keys=("id",))

    assert batch.keys == ("id",)


@pytest.mark.parametrize("lost", [False, True])
def test_parquet_files_have_the_columns_that_the_metadata_names(lost: bool) -> None:
    out = io.BytesIO()
    names = [spec[0] for spec in (*HEADER, *TABLE)]
    values = ["2026010112000000" + "1".zfill(19), "U", b"\x20", None, 1, "Anna", None]
    table = pa.table({name: [value] for name, value in zip(names, values, strict=True)})
    parquet.write_table(table.drop_columns(["city"]) if lost else table, out)
    path = FIRST.replace(".csv", ".parquet")

    batch = read({path: out.getvalue(), metadata_path(path): dfm((*HEADER, *TABLE), recordCount=1)})

    if lost:
        assert "differ in the column 'city'" in batch.rejected[0].error
    else:
        assert column(batch, "id") == [1]
        assert column(batch, "__unsent") == [["city"]]


@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("s.t/LOAD00001.csv", "s.t"),
        ("s.t__ct/20260101-1200001230.csv", "s.t"),
        ("s.t__CT/20260101/20260101-1200001230.csv.gz", "s.t"),
        ("s.t/LOAD00001.dfm", NoTable.COMPANION),
        ("s.attrep_ddl_history/20260101-1200001230.csv", NoTable.CONTROL),
        ("attrep_status/LOAD00001.csv", NoTable.CONTROL),
        ("t/LOAD00001.csv", NoTable.UNPLACED),
        ("LOAD00001.csv", NoTable.UNPLACED),
        ("s.t.csv", NoTable.UNPLACED),
    ],
)
def test_folders_are_named_by_schema_and_table(path: str, table: object) -> None:
    assert table_of_replicate(path) == table


def test_names_of_metadata_and_of_loads() -> None:
    assert metadata_path("u/s.t/LOAD1.csv.gz") == "u/s.t/LOAD1.dfm"
    assert metadata_path("u/s.t/LOAD1.odd") == "u/s.t/LOAD1.dfm"
    assert is_load("u/s.t/LOAD1.csv", "u")
    assert not is_load("u/s.t__ct/1.csv", "u")
