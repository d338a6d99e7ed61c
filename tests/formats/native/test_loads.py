"""Files that tasks read in splits give what one exact batch of them gives: rows, types, faults."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from datetime import UTC
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polynya.formats.loads import LoadLimits, SplitPlan
from polynya.formats.native.loads import NativeLoads
from polynya.model.errors import DependencyError
from polynya.testing.fakes import MemoryObjectStore
from tests.formats.native.splits import by_tasks, exactly, read, request_for, same


def lines(*records: Any, end: bytes = b"\n") -> bytes:
    return b"".join(
        (one if isinstance(one, bytes) else json.dumps(one).encode()) + end for one in records
    )


ODD = st.sampled_from(
    [
        b"", b"  ", b"\r", b"nothing", b"[1]", b'{"id":1,"id":2}', b'{"id":1,"\\u0069d":2}',
        b'{"id":1}{"id":2}', b'{"id":{', b'{"id":1,"seq":NaN}', b'{"id":1,"x":1e400}',
        b'{"id":1,"x":0.1234567890123456789}', b'{"id":1,"x":-0}', b'{"id":1,"x":-0.0}',
        b'{"id":1,"x":12345678901234567890}', b'{"id":1,"x":9007199254740993}',
        b'{"id":1,"x":1E2}', b'{"id":1,"x":"\xff"}', b'{"id":1,"x":"\\ud800"}',
        b'{"id":1,"hdr__x":1}', b'{"id":1,"ID":1}', b'{"id":1,"x":{}}', b'{"id":1,"x":{"y":1}}',
        b'{"id":1,"x":[1.5]}', b'{"id":1,"x":NaN}', b'{"id":1,"x":"a\tb"}', b' {"id":1} ',
        b'{"id":null,"seq":1}', b'{"seq":2,"late":true}',
    ]
)  # fmt: skip
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(["2026-01-31T10:00:00Z", "2026-01-31", "12.50", "x" * 20]),
)
RECORDS = st.fixed_dictionaries(
    {"id": st.integers(0, 1 << 40)},
    optional={"seq": st.integers(0, 9), "x": VALUES, "y": st.floats(0, 1), "z": st.text()},
)
FILES = st.lists(
    st.lists(st.one_of(RECORDS, RECORDS, RECORDS, ODD), max_size=12), min_size=1, max_size=3
)
DECLARED = st.sampled_from(
    [{}, {"x": "decimal(10,2)"}, {"x": "timestamp"}, {"x": "date"}, {"x": "double"},
     {"x": "string"}, {"seq": "int"}]
)  # fmt: skip


@example([[{"id": 0, "x": 100_000_000}]], {"x": "decimal(10,2)"}, b"\n", False, 20)
@example([[b'{"id" : 1,"x" : 0.12345678901234567890}']], {"x": "double"}, b"\n", False, 20)
@example(
    [[b'{"id":1,"x":12345678901234567890}'], [b'{"id":2,"x":0.1234567890123456789}']],
    {},
    b"\n",
    False,
    20,
)
@example(
    [[b'{"id":1,"x":123456789012345678}'], [b'{"id":2,"x":0.123456789012345678901}']],
    {}, b"\n", False, 20,
)  # fmt: skip
@given(FILES, DECLARED, st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.integers(20, 400))
def test_json_in_splits_is_the_same_as_in_one_batch(
    contents: list[list[Any]], declared: dict[str, str], end: bytes, marked: bool, size: int
) -> None:
    mark = b"\xef\xbb\xbf" if marked else b""
    files = {f"in/{n}.json": mark + lines(*one, end=end) for n, one in enumerate(contents)}
    if size % 3 == 0:
        files["in/0.json"] = gzip.compress(files["in/0.json"])
    request = request_for(files, columns=declared)

    expected = exactly(request)
    try:
        found = by_tasks(request, size)
    except AssertionError:
        return  # said to be read in batches
    if found[3] == expected[3]:
        assert same(found, expected)


COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "id": (pa.int64(), st.none() | st.integers(-(1 << 63), (1 << 63) - 1)),
    "seq": (pa.timestamp("us", "Europe/Berlin"), st.none() | st.datetimes(timezones=st.just(UTC))),
    "small": (pa.uint16(), st.none() | st.integers(0, 65_535)),
    "large": (pa.uint64(), st.none() | st.integers(0, (1 << 64) - 1)),
    "price": (pa.decimal128(12, 2), st.none() | st.decimals(-1000, 1000, places=2)),
    "size": (pa.float64(), st.none() | st.floats()),
    "single": (pa.float32(), st.none() | st.floats(width=32)),
    "day": (pa.date32(), st.none() | st.dates()),
    "fine": (pa.timestamp("ns"), st.none() | st.integers(-(1 << 62), 1 << 62)),
    "name": (pa.dictionary(pa.int8(), pa.string()), st.none() | st.sampled_from(["a", "b", "ü"])),
    "bytes": (pa.binary(3), st.none() | st.binary(min_size=3, max_size=3)),
    "time": (pa.time64("us"), st.none() | st.times()),
    "tags": (pa.list_(pa.int32()), st.none() | st.lists(st.integers(0, 9), max_size=2)),
    "nothing": (pa.null(), st.none()),
}


@st.composite
def parquet_file(draw: st.DrawFn) -> bytes:
    """A Parquet file of some of the columns, in small row groups."""
    names = ["id", *draw(st.lists(st.sampled_from(sorted(set(COLUMNS) - {"id"})), unique=True))]
    count = draw(st.integers(0, 6))
    arrays = [pa.array([draw(COLUMNS[n][1]) for _ in range(count)], COLUMNS[n][0]) for n in names]
    buffer = io.BytesIO()
    pq.write_table(pa.table(arrays, names=names), buffer, row_group_size=2)
    return buffer.getvalue()


@given(st.lists(parquet_file(), min_size=1, max_size=3), st.sampled_from([1, 1 << 20]))
def test_parquet_in_splits_is_the_same_as_in_one_batch(contents: list[bytes], size: int) -> None:
    files = {f"in/{n}.parquet": one for n, one in enumerate(contents)}
    request = request_for(files, "parquet")

    assert same(by_tasks(request, size), exactly(request))


class Silent(MemoryObjectStore):
    """A store that lists a file and does not give it."""

    def open(self, path: str) -> Any:
        """Fail as S3 does when it does not answer."""
        raise DependencyError("POLYNYA-DEP-005", "S3 did not answer", where=path)


def test_a_store_that_does_not_answer_is_no_damaged_file() -> None:
    request = request_for({"in/1.json": lines({"id": 1, "seq": 1})})
    plan = NativeLoads().plan(request, LoadLimits(), {}, {})
    assert isinstance(plan, SplitPlan)

    silent = replace(plan, reader=replace(plan.reader, store=Silent()))
    _, reports = read(silent)

    assert [one.failed and one.failed.code for one in reports.values()] == ["POLYNYA-DEP-005"]
    assert [one.damaged for one in reports.values()] == [None]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_are_cut_between_records_whatever_their_ends_and_letters(end: bytes) -> None:
    content = lines(*({"id": n, "x": "äöü😀" * n} for n in range(40)), b"", b"broken", end=end)
    request = request_for({"in/1.json": content.removesuffix(end)})

    for size in (1, 50, 51, 52, 53, 10_000):
        assert same(by_tasks(request, size), exactly(request))


def test_news_late_in_a_file_settle_the_columns_of_all_of_it() -> None:
    early = [{"id": n, "x": n} for n in range(3000)]
    content = lines(*early, {"id": 9000, "x": 0.5}, {"id": 9001, "late": "yes"})
    request = request_for({"in/1.json": content})

    found = by_tasks(request, 4096)

    assert same(found, exactly(request))
    assert str(found[0]["x"]) == "double"


def test_what_only_all_values_together_can_tell_ends_the_load_before_it() -> None:
    early = [{"id": n, "x": n + 0.5} for n in range(3000)]
    late = b'{"id":9000,"x":0.12345678901234567890123}'
    request = request_for({"in/1.json": lines(*early, late)})

    _, rows, rejected, files, _ = by_tasks(request, 4096)

    assert 2900 < len(rows) < 3000
    assert rejected == []
    assert files["in/1.json"].records == len(rows)
    assert not files["in/1.json"].complete
