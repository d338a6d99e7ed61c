"""A batch that is read as columns is the batch that the exact reader gives."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.formats.base import ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.native import columnar, format
from polynya.formats.native.columnar import columnar_batch
from polynya.model.types import BIGINT, STRING, DataType
from polynya.testing.fakes import MemoryObjectStore
from tests.formats.native.splits import WHOLE, request_for, same
from tests.formats.native.test_loads import DECLARED, FILES, lines, parquet_file


def knowing(request: ReadRequest, schema: dict[str, DataType]) -> ReadRequest:
    """The request for a table that has these columns."""
    known = replace(request.table, schema=schema)
    return replace(request, tables={known.source: known}, load=False)


def all_of(batch: DatasetBatch) -> Any:
    """All that a batch says, but for raw bytes that nobody needs."""
    rows = batch.rows.drop_columns(["__raw"])
    return (
        rows.schema,
        rows.to_pylist(),
        batch.rejected,
        dict(batch.schema),
        batch.rows_in,
        dict(batch.files),
        batch.changes,
        batch.declared,
        sorted(batch.met or ()),
    )


def raws(batch: DatasetBatch) -> list[bytes]:
    """The raw bytes of every row."""
    everything = pa.array([True] * batch.rows.num_rows, pa.bool_())
    found: list[bytes] = batch.with_raw(everything).column("__raw").to_pylist()
    return found


def assert_exact(request: ReadRequest) -> bool:
    """Compare both readers; whether there was something to compare.

    Columns are cut by the mean size of their records, so bytes may end a batch sooner or later.
    """
    found = columnar_batch(request)
    if found is None:
        return False
    expected = format._read_exactly(request)
    if request.limits.max_bytes < BatchLimits().max_bytes and found.rows_in != expected.rows_in:
        both = min(found.rows.num_rows, expected.rows.num_rows)
        found, expected = (
            replace(one, rows=one.rows.slice(0, both), rejected=(), rows_in=both, files={})
            for one in (found, expected)
        )
    assert same(all_of(found), all_of(expected))
    assert raws(found) == raws(expected)
    return True


@given(FILES, FILES, DECLARED)
def test_json_of_known_columns(before: Any, after: Any, declared: dict[str, str]) -> None:
    first = {f"in/{n}.json": lines(*one) for n, one in enumerate(before)}
    second = {f"in/1{n}.json": lines(*one) for n, one in enumerate(after)}
    known = format._read_exactly(request_for(first, columns=declared)).schema

    assert_exact(knowing(request_for(second, columns=declared), dict(known)))


@given(st.lists(parquet_file(), min_size=1, max_size=2), parquet_file())
def test_parquet_of_known_columns(before: list[bytes], after: bytes) -> None:
    first = {f"in/{n}.parquet": one for n, one in enumerate(before)}
    known = format._read_exactly(request_for(first, "parquet")).schema

    assert_exact(knowing(request_for({"in/9.parquet": after}, "parquet"), dict(known)))
    again = {"in/8.parquet": before[0], "in/9.parquet": before[-1]}
    assert_exact(knowing(request_for(again, "parquet"), dict(known)))


def records(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"id": n, "seq": n, "name": f"n{n}"} for n in range(start, start + count)]


def request_of(kind: str, count: int, start: int = 0, **settings: Any) -> ReadRequest:
    """A request for two files of so many records, of a table that knows their columns."""
    contents = [records(count), records(count, start=count)]
    if kind == "json":
        files = {f"in/{n}.json": lines(*one) for n, one in enumerate(contents)}
    else:
        files = {f"in/{n}.parquet": parquet(one) for n, one in enumerate(contents)}
    request = request_for(files, kind, start, **settings)
    return knowing(request, dict(format._read_exactly(replace(request, limits=WHOLE)).schema))


def parquet(rows: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer, row_group_size=3)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["json", "parquet"])
@pytest.mark.parametrize("start", [0, 1, 4, 7])
@pytest.mark.parametrize("most", [1, 3, 7, 8, 13, 14, 100])
def test_a_batch_ends_and_begins_at_the_same_record(kind: str, start: int, most: int) -> None:
    request = replace(request_of(kind, 7, start), limits=BatchLimits(max_rows=most))

    assert assert_exact(request)


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_bytes_end_a_batch_too_and_no_record_is_lost(kind: str) -> None:
    request = replace(request_of(kind, 40), limits=BatchLimits(max_bytes=300))
    seen: list[int] = []
    parts = list(request.files)
    while parts:
        batch = columnar_batch(replace(request, files=parts))
        assert batch is not None
        assert 0 < batch.rows.num_rows < 40
        seen += batch.rows.column("id").to_pylist()
        parts = [
            FilePart(part.path, part.size, done.records if done is not None else part.start)
            for part in parts
            if not ((done := batch.files.get(part.path)) is not None and done.complete)
        ]

    assert seen == list(range(80))


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_record_without_a_sequence_is_rejected_with_its_text(kind: str) -> None:
    contents = [{"id": 1, "seq": 1}, {"id": 2, "seq": None}, {"id": None, "seq": 3}]
    content = lines(*contents) if kind == "json" else parquet(contents)
    request = request_for({f"in/1.{kind}": content}, kind)
    request = knowing(request, dict(format._read_exactly(request).schema))

    assert assert_exact(request)
    (refused,) = columnar_batch(request).rejected  # type: ignore[union-attr]
    assert (refused.offset, refused.rule) == (1, "null_sequence")


def test_new_columns_and_damaged_files_are_for_the_exact_reader() -> None:
    request = request_of("parquet", 3)
    new = parquet([{"id": 1, "seq": 1, "name": "a", "late": 1}])
    for content in (new, new[:40]):
        odd = request_for({"in/1.parquet": content}, "parquet")
        assert columnar_batch(knowing(odd, dict(request.table.schema))) is None


def test_a_file_of_columns_that_only_the_exact_reader_takes_is_opened_once() -> None:
    request = request_for({"in/1.json": lines({"id": 1, "seq": 1, "tags": ["a"]})})
    request = knowing(request, dict(format._read_exactly(request).schema))
    opened: list[str] = []

    class Counted(MemoryObjectStore):
        def open(self, path: str) -> Any:
            opened.append(path)
            return request.store.open(path)

    batch = format.read_native(replace(request, store=Counted()))

    assert (batch.rows.num_rows, opened) == (1, ["in/1.json"])


def test_a_decimal_that_is_not_declared_any_more_takes_no_text() -> None:
    files = {"in/1.json": lines({"id": 1, "seq": 1, "x": "12.50"})}
    known = dict(format._read_exactly(request_for(files, columns={"x": "decimal(10,2)"})).schema)

    batch = format.read_native(knowing(request_for(files), known))

    assert [one.rule for one in batch.rejected] == ["type_mismatch"]


@pytest.mark.parametrize("text", ["2026-01-31", "2026-02-30", "20260131"])
def test_a_day_that_is_not_declared_any_more_is_read_as_before(text: str) -> None:
    first = {"in/1.json": lines({"id": 1, "seq": 1, "x": "2026-01-01"})}
    known = dict(format._read_exactly(request_for(first, columns={"x": "date"})).schema)
    request = knowing(request_for({"in/2.json": lines({"id": 1, "seq": 1, "x": text})}), known)

    # Any other spelling is for the exact reader.
    assert assert_exact(request) is (text == "2026-01-31")


#: Files of lines as they come, each of few records.
SMALL_FILES = [
    b'{"id": 1, "seq": 1, "name": "a"}\n',
    b'{"id": 2, "seq": 2, "name": "b"}',
    b"",
    b'\xef\xbb\xbf{"id": 3, "seq": 3}\n{"id": 4, "seq": 4, "name": null}\n',
    b"\n",
    b'{"id": null, "seq": 5, "name": "no key"}\n',
    b'{"id": 6, "seq": 6, "name": "c"}\r\n',
    b'{"id": 7, "seq": 7, "name": "d"}\n\n',
    b'{"id": 8, "seq": "x", "name": "e"}\n',
    b'{"id": 9, "seq": 9, "other": "f"}\n',
    b'{"id": 10, "seq": 1' + b"0" * 30 + b"}\n",
    b'{"id": 11, "seq": 11, "name": "' + b"y" * 70_000 + b'"}\n',
    b'{"id": 12,\n "seq": 12}\n',
    b'{"id": 13, "seq": 13, "name": "\xff"}\n',
    gzip.compress(b'{"id": 14, "seq": 14, "name": "g"}\n'),
]


@given(
    st.lists(st.sampled_from(SMALL_FILES), min_size=1, max_size=8),
    st.integers(0, 2),
    st.sampled_from([BatchLimits(), BatchLimits(max_rows=3), BatchLimits(max_bytes=60)]),
)
def test_many_small_files_are_read_as_each_by_itself(
    contents: list[bytes], start: int, limits: BatchLimits
) -> None:
    files = {f"in/{n:02}.json": content for n, content in enumerate(contents)}
    request = replace(request_for(files, "json", start), limits=limits)

    assert_exact(knowing(request, {"id": BIGINT, "seq": BIGINT, "name": STRING}))


def test_ordinary_small_files_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    real = columnar.typed_lines
    monkeypatch.setattr(
        columnar, "typed_lines", lambda text, *more: parsed.append(text) or real(text, *more)
    )
    files = {f"in/{n:02}.json": lines(*records(1, start=n)) for n in range(50)}
    request = knowing(request_for(files, "json"), {"id": BIGINT, "seq": BIGINT, "name": STRING})

    batch = columnar_batch(request)

    assert batch is not None
    assert len(parsed) == 1
    assert batch.rows.column("__file").to_pylist() == list(files)
    assert batch.rows.column("__offset").to_pylist() == [0] * 50
