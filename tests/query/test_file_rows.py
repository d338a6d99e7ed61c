"""DuckDB reads rows of data files as Iceberg's readers do: by field id, without deleted ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polynya.engine.answers import answer_embedded
from polynya.query import database, live_rows
from polynya.query.database import EmbeddedDatabase
from polynya.query.file_rows import FileRows, may_be_read
from polynya.query.translate import NotEmbeddedError
from polynya.store.data_files import LocalFiles
from tests.lab.lab import Lab, drop, put
from tests.query.test_answers import project_of
from tests.query.test_committed_rows import three_files

ID = {"id": 1, "name": "id", "type": "long", "required": True}
NAME = {"id": 2, "name": "name", "type": "string", "required": False}
NONE = pa.array([], pa.int64())


def data_file(path: Path, columns: dict[int, tuple[str, Any]], **options: Any) -> str:
    """A data file of columns by their field ids, each with the name it had then."""
    arrays = [pa.array(values) if isinstance(values, list) else values
              for _, values in columns.values()]  # fmt: skip
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": str(number)})
        for (number, (name, _)), array in zip(columns.items(), arrays, strict=True)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays, schema=pa.schema(fields)), path, **options)
    return str(path)


def shown(rows: FileRows, where: str = "true") -> list[tuple[Any, ...]]:
    """The rows that a database shows of files, in order."""
    with closing(EmbeddedDatabase(rows.paths)) as opened:
        opened.read("v0", rows)
        batches = opened.batches(f"SELECT * FROM v0 WHERE {where} ORDER BY ALL", rows.schema)
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def rows_of(
    columns: Sequence[dict[str, Any]], types: Sequence[pa.DataType], *paths: str
) -> FileRows:
    """All rows of files."""
    names = [column["name"] for column in columns]
    schema = pa.schema(list(zip(names, types, strict=True)))
    return FileRows(schema, columns, dict.fromkeys(paths, NONE))


def test_columns_are_found_by_field_id_and_have_the_type_of_the_table(tmp_path: Path) -> None:
    old = data_file(tmp_path / "old.parquet", {
        1: ("number", pa.array([1, 2], pa.int32())), 7: ("name", ["dropped", "dropped"]),
    })  # fmt: skip
    new = data_file(tmp_path / "new.parquet", {2: ("name", ["n"]), 1: ("id", [3])})

    rows = rows_of([ID, NAME], [pa.int64(), pa.string()], old, new)

    assert shown(rows) == [(1, None), (2, None), (3, "n")]


def test_names_of_any_kind(tmp_path: Path) -> None:
    columns = [ID, NAME | {"name": "filename"}, {"id": 3, "name": "a\"'b", "type": "boolean"}]
    path = data_file(tmp_path / "hdr__partition=current" / "it's.parquet", {
        1: ("id", [1, 2]), 2: ("filename", ["f", "g"]), 3: ("c0", [True, False]),
    })  # fmt: skip

    rows = rows_of(columns, [pa.int64(), pa.string(), pa.bool_()], path)

    assert shown(rows) == [(1, "f", True), (2, "g", False)]
    assert shown(replace(rows, deleted={path: pa.array([0])})) == [(2, "g", False)]


def test_deleted_rows_and_those_of_touched_records_are_left_out(tmp_path: Path) -> None:
    one, two = (
        data_file(tmp_path / f"{n}.parquet", {1: ("id", [10 * n + m for m in range(4)]),
                                               2: ("name", ["x", "y", None, "z"])})
        for n in (1, 2)
    )  # fmt: skip
    schema = pa.schema({"name": pa.string()})
    touched = pa.table({"id": [12, 20, 21], "name": [None, "x", "other"]})
    beside = pa.table({"name": ["folded"]})

    rows = FileRows(
        schema, [ID, NAME], {one: pa.array([0, 3]), two: NONE}, touched=touched, beside=beside
    )

    # Of the first file only 11 stays; of the second all but 20, since 21 has another name.
    assert shown(rows) == [("folded",), ("y",), ("y",), ("z",), (None,)]


def test_conditions_do_not_reach_the_files(tmp_path: Path) -> None:
    """Statistics leave out NaN, and DuckDB takes files without them for files without NULL."""
    ratio = {"id": 2, "name": "ratio", "type": "double", "required": False}
    path = data_file(tmp_path / "a.parquet", {1: ("id", [1, 2]), 2: ("r", [1.0, float("nan")])})
    plain = data_file(
        tmp_path / "b.parquet", {1: ("id", [3]), 2: ("r", pa.nulls(1, pa.float64()))},
        write_statistics=False,
    )  # fmt: skip
    rows = rows_of([ID, ratio], [pa.int64(), pa.float64()], path, plain)

    assert [row[0] for row in shown(rows, "ratio > 5")] == [2]
    assert [row[0] for row in shown(rows, "ratio IS NULL")] == [3]
    schema = pa.schema([("c", pa.int64()), ("low", pa.float64()), ("high", pa.float64())])
    with closing(EmbeddedDatabase(rows.paths)) as opened:
        opened.read("v0", rows, filtered=False)
        (summed,) = opened.batches("SELECT count(ratio), min(ratio), max(ratio) FROM v0", schema)
    assert [str(value) for value in summed.to_pylist()[0].values()] == ["2", "1.0", "nan"]


def test_a_database_reaches_no_file_but_those_that_it_is_told(tmp_path: Path) -> None:
    path = data_file(tmp_path / "in.parquet", {1: ("id", [1])})
    other = data_file(tmp_path / "out.parquet", {1: ("id", [1])})

    with closing(EmbeddedDatabase([path])) as opened:
        assert opened.has_rows(f"FROM read_parquet('{path}')")
        for sql in (
            f"FROM read_parquet('{other}')", f"FROM read_parquet('{tmp_path}/*.parquet')",
            "FROM read_text('/etc/passwd')",
        ):  # fmt: skip
            with pytest.raises(NotEmbeddedError, match="disabled by configuration"):
                opened.has_rows(sql)
        for sql in (
            f"COPY (SELECT 1) TO '{path}'", "SET enable_external_access = true",
            f"SET allowed_paths = ['{other}']", "INSTALL httpfs",
        ):  # fmt: skip
            with pytest.raises(NotEmbeddedError):
                opened._run(sql)
    assert shown(rows_of([ID], [pa.int64()], path)) == [(1,)]


@pytest.mark.parametrize("path", ["/a/*.parquet", "/a?/b.parquet", "/a[1]/b.parquet"])
def test_a_path_that_is_a_pattern_is_left_to_our_readers(path: str) -> None:
    assert not may_be_read(path, ["id"])
    assert may_be_read("/hdr__partition=current/a'b{1}.parquet", ["id", "filename"])


def test_a_column_that_duckdb_would_add_is_left_to_our_readers() -> None:
    assert not may_be_read("/a.parquet", ["id", "file_row_number"])


def test_only_the_databases_for_the_newest_files_stay(tmp_path: Path) -> None:
    old, new = (data_file(tmp_path / f"{n}.parquet", {1: ("id", [n])}) for n in (1, 2))
    first = EmbeddedDatabase([old])
    first.close()
    with closing(EmbeddedDatabase([old])) as again:
        assert again._connection is first._connection

    shown(rows_of([ID], [pa.int64()], new))

    assert [files for _, files in database._idle if files] == [frozenset([new])]


def test_a_view_of_many_rows_is_read_by_duckdb(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    users = three_files(lab)
    users.copy(put(2, 0, name="late"), put(22, 5, name="new"), drop(23, 5), put(31, 5, name="more"))
    monkeypatch.setattr(live_rows, "_LEAST_FILE_ROWS", 1)
    monkeypatch.delattr(live_rows.LiveRows, "reader")

    _, batches = answer_embedded(
        project_of(users),
        f"SELECT a.id, b.name FROM {lab.schema}.users a JOIN {lab.schema}.users b ON a.id = b.id"
        " WHERE a.id IN (2, 12, 13, 22, 23, 31)",
    )

    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert sorted(rows) == [(2, "user 2"), (13, "user 13"), (22, "new"), (31, "more")]


def test_what_says_where_rows_are_is_read_once_for_each_commit(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, opened, open_file = three_files(lab), [], LocalFiles.open

    def opening(files: LocalFiles, location: str) -> Any:
        opened.append(location)
        return open_file(files, location)

    def answered() -> tuple[Any, set[str]]:
        opened.clear()
        _, batches = answer_embedded(
            project_of(users), f"SELECT count(*) AS n, max(name) AS name FROM {lab.schema}.users"
        )
        return batches[0].to_pylist(), {Path(one).suffix for one in opened}

    monkeypatch.setattr(LocalFiles, "open", opening)
    first, again = answered(), answered()
    users.copy(put(31, 5, name="zoe"))

    assert first == ([{"n": 14, "name": "user 5"}], {".json", ".avro", ".parquet"})
    assert again == (first[0], {".parquet"})
    assert answered()[0] == [{"n": 15, "name": "zoe"}]


def test_a_table_that_is_appended_to_is_read_by_duckdb_without_its_deletes(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = lab.feed("log", mode="append_only", history=False, keys=None, sequence_by=None)
    log.copy(put(1, 1, name="first"), put(1, 2, name="second"), drop(1, 3), put(2, 4, name=None))
    monkeypatch.setattr(live_rows, "_LEAST_FILE_ROWS", 1)
    monkeypatch.delattr(live_rows.LiveRows, "reader")

    _, batches = answer_embedded(project_of(log), f"SELECT id, name FROM {lab.schema}.log")

    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert sorted(rows, key=repr) == [(1, "first"), (1, "second"), (2, None)]
