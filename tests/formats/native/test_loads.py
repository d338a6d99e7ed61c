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

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart, FileProgress
from polynya.formats.loads import LoadLimits, LoadPlan, Report
from polynya.formats.native.loads.plan import NativeLoads
from polynya.formats.native.reader import read_native
from polynya.model.config.task import StorageTask, resolved
from polynya.model.datatypes import DataType
from polynya.model.errors import DependencyError
from polynya.testing.fakes import MemoryObjectStore

WHOLE = BatchLimits(1 << 40, 1 << 40)
Outcome = tuple[dict[str, DataType], list[Any], list[Any], dict[str, FileProgress], Any]


def request_for(
    files: dict[str, bytes], file_format: str = "json", start: int = 0, **settings: Any
) -> ReadRequest:
    """A request for all of these files, of a dataset with the key `id`."""
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "shop",
            "schema": "shop",
            "landing": {"path": "in", "format": file_format},
            "datasets": [
                {"name": "users", "keys": ["id"], "sequence_by": ["seq"],
                 "initial_load": "*"} | settings
            ],
        }
    )  # fmt: skip
    known = KnownTable(resolved(task, task.datasets[0]))
    parts = [FilePart(path, len(data), start) for path, data in files.items()]
    return ReadRequest(MemoryObjectStore(files), parts, {known.source: known}, WHOLE, load=True)


def exactly(request: ReadRequest) -> Outcome:
    """What one batch gives."""
    batch: DatasetBatch = read_native(request)
    names = ["__ci", "__tail", *batch.schema]
    rows = batch.rows.select(names).to_pylist()
    rejected = [(r.file, r.offset, r.rule, r.error, r.raw) for r in batch.rejected]
    times = [time for time in batch.rows.column("__ts").to_pylist() if time is not None]
    return dict(batch.schema), rows, rejected, dict(batch.files), max(times, default=None)


def by_tasks(request: ReadRequest, split_bytes: int) -> Outcome:
    """What tasks give that read splits of this size, and read again as the engine lets them."""
    loads, limits = NativeLoads(), LoadLimits(split_bytes=split_bytes)
    damaged: dict[str, str] = {}
    plan = loads.plan(request, limits, damaged)
    while True:
        assert isinstance(plan, LoadPlan)
        batches, reports = read(plan)
        broken = {s.file: why for s in plan.splits if (why := reports[s.number].damaged)}
        damaged.update(broken)
        following = loads.plan(request, limits, damaged) if broken else loads.settled(plan, reports)
        if following is plan:
            break
        plan = following
    rows = [row for batch in batches for row in batch.to_pylist()]
    good = [{n: v for n, v in row.items() if n in {"__ci", "__tail", *plan.schema}}
            for row in rows if row["__rule"] is None]  # fmt: skip
    service = ("__file", "__offset", "__rule", "__error", "__raw")
    bad = [tuple(row[name] for name in service) for row in rows if row["__rule"] is not None]
    bad += [(r.file, r.offset, r.rule, r.error, r.raw) for r in plan.rejected]
    newest = max((r.newest for r in reports.values() if r.newest is not None), default=None)
    time = None if newest is None else pa.scalar(newest, pa.timestamp("us", "UTC")).as_py()
    files = plan.progress_after(reports)
    order = {part.path: number for number, part in enumerate(request.files)}
    bad.sort(key=lambda one: (order[one[0]], one[1]))
    return dict(plan.schema), good, bad, files, time


def read(plan: LoadPlan) -> tuple[list[pa.RecordBatch], dict[int, Report]]:
    reports: dict[int, Report] = {}
    batches = [
        batch
        for split in plan.splits
        for batch in plan.reader.read(split, lambda number, said: reports.update({number: said}))
    ]
    return batches, reports


def same(left: Outcome, right: Outcome) -> bool:
    """Also where a value is NaN or a negative zero."""
    return repr(left) == repr(right)


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
    plan = NativeLoads().plan(request, LoadLimits(), {})
    assert isinstance(plan, LoadPlan)

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
