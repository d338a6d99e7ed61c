"""ORC, Avro and CSV in splits give what one exact batch of the same files gives."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import orc

from polynya.formats.loads import LoadLimits, SplitPlan
from polynya.formats.native.loads import NativeLoads
from polynya.formats.native.splits import AVRO, SplitTarget
from tests.formats.native.splits import by_tasks, exactly, read, request_for, same

SIZES = st.sampled_from([1, 40, 200, 1 << 20])

ORC_COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "id": (pa.int64(), st.none() | st.integers(-(1 << 63), (1 << 63) - 1)),
    "seq": (pa.timestamp("ns", "UTC"), st.none() | st.integers(-(10**15), 10**18)),
    "price": (pa.decimal128(12, 2), st.none() | st.decimals(-1000, 1000, places=2)),
    "size": (pa.float64(), st.none() | st.floats()),
    "day": (pa.date32(), st.none() | st.dates()),
    "name": (pa.string(), st.none() | st.sampled_from(["a", "b", "ü", "\0"])),
    "bytes": (pa.binary(), st.none() | st.binary(max_size=3)),
    "tags": (pa.list_(pa.int32()), st.none() | st.lists(st.integers(0, 9), max_size=2)),
}


@st.composite
def orc_file(draw: st.DrawFn) -> bytes:
    """An ORC file of some of the columns, of one stripe: the library makes none below 64 KB."""
    names = ["id", *draw(st.lists(st.sampled_from(sorted(set(ORC_COLUMNS) - {"id"})), unique=True))]
    count = draw(st.integers(0, 6))
    arrays = [
        pa.array([draw(ORC_COLUMNS[n][1]) for _ in range(count)], ORC_COLUMNS[n][0]) for n in names
    ]
    return orc_of(pa.table(arrays, names=names))


def orc_of(table: pa.Table, **options: Any) -> bytes:
    buffer = pa.BufferOutputStream()
    orc.write_table(table, buffer, **options)
    content: bytes = buffer.getvalue().to_pybytes()
    return content


@given(st.lists(orc_file(), min_size=1, max_size=3), SIZES)
def test_orc_in_splits_is_the_same_as_in_one_batch(contents: list[bytes], size: int) -> None:
    files = {f"in/{n}.orc": one for n, one in enumerate(contents)}
    request = request_for(files, "orc")

    assert same(by_tasks(request, size), exactly(request))


def test_stripes_of_an_orc_file_are_splits() -> None:
    ids = list(range(60_000))
    table = pa.table({"id": ids, "seq": ids, "x": [str(n * 7919 % 10007) for n in ids]})
    content = orc_of(table, stripe_size=64 * 1024, batch_size=1024)
    request = request_for({"in/1.orc": content}, "orc")

    plan = NativeLoads().plan(request, LoadLimits(split_bytes=1), {}, {})

    assert isinstance(plan, SplitPlan)
    assert len(plan.splits) > 1
    assert same(by_tasks(request, 1), exactly(request))
    later = request_for({"in/1.orc": content}, "orc", start=45_678)
    assert same(by_tasks(later, 1), exactly(later))


AVRO_FIELDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "seq": (["null", "long"], st.none() | st.integers(0, 9)),
    "small": ("int", st.integers(-(1 << 31), (1 << 31) - 1)),
    "size": (["null", "double"], st.none() | st.floats()),
    "single": ("float", st.floats(width=32)),
    "name": (["null", "string"], st.none() | st.text(max_size=4)),
    "raw": ("bytes", st.binary(max_size=4)),
    "yes": ("boolean", st.booleans()),
    "day": ({"type": "int", "logicalType": "date"}, st.dates()),
    "at": (
        {"type": "long", "logicalType": "timestamp-micros"},
        st.datetimes(timezones=st.just(UTC)),
    ),
    "time": ({"type": "long", "logicalType": "time-micros"}, st.times()),
    "guid": ({"type": "string", "logicalType": "uuid"}, st.uuids()),
    "price": (
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        st.decimals(-1000, 1000, places=2),
    ),
    "tags": ({"type": "array", "items": "int"}, st.lists(st.integers(0, 9), max_size=2)),
    "kind": ({"type": "enum", "name": "kind", "symbols": ["A", "B"]}, st.sampled_from("AB")),
    "any": (["null", "long", "string"], st.none() | st.integers(0, 9) | st.text(max_size=2)),
}


@st.composite
def avro_file(draw: st.DrawFn) -> bytes:
    """An Avro file of some of the columns, in blocks of a few records."""
    names = draw(st.lists(st.sampled_from(sorted(AVRO_FIELDS)), unique=True))
    fields = [
        {"name": "id", "type": "long"},
        *({"name": n, "type": AVRO_FIELDS[n][0]} for n in names),
    ]
    rows = st.fixed_dictionaries(
        {"id": st.integers(-(1 << 63), (1 << 63) - 1)} | {n: AVRO_FIELDS[n][1] for n in names}
    )
    return avro_of(
        fields, draw(st.lists(rows, max_size=8)), draw(st.sampled_from(["null", "deflate"]))
    )


def avro_of(fields: list[Any], rows: list[Any], codec: str = "null", interval: int = 20) -> bytes:
    buffer = io.BytesIO()
    schema = {"type": "record", "name": "users", "fields": fields}
    fastavro.writer(buffer, fastavro.parse_schema(schema), rows, codec, sync_interval=interval)
    return buffer.getvalue()


@given(st.lists(avro_file(), min_size=1, max_size=3), SIZES, st.integers(0, 400))
def test_avro_in_splits_is_the_same_as_in_one_batch(
    contents: list[bytes], size: int, cut: int
) -> None:
    files = {f"in/{n}.avro": one for n, one in enumerate(contents)}
    if cut < 60:  # a file that ends too early
        files["in/0.avro"] = files["in/0.avro"][: -cut or None]
    request = request_for(files, "avro")

    expected = exactly(request)
    try:
        found = by_tasks(request, size)
    except AssertionError:
        return  # said to be read in batches
    if found[3] == expected[3]:
        assert same(found, expected)


def test_blocks_of_an_avro_file_are_splits_and_columns() -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "seq", "type": "long"},
              {"name": "price", "type": AVRO_FIELDS["price"][0]}]  # fmt: skip
    rows = [{"id": n, "seq": n, "price": Decimal(n).scaleb(-2)} for n in range(5_000)]
    content = avro_of(fields, rows, interval=1000)
    request = request_for({"in/1.avro": content}, "avro")

    plan = NativeLoads().plan(request, LoadLimits(split_bytes=4096), {}, {})

    assert isinstance(plan, SplitPlan)
    assert len(plan.splits) > 5
    wanted = SplitTarget(request.table.dataset, plan.schema)
    portions = list(AVRO.portions(io.BytesIO(content), plan.splits[1], wanted))
    assert portions
    assert all(portion.chunk(0) is not None for portion in portions)
    assert sum(report.records for report in read(plan)[1].values()) == 5_000
    assert same(by_tasks(request, 4096), exactly(request))
    later = request_for({"in/1.avro": content}, "avro", start=3_333)
    assert same(by_tasks(later, 4096), exactly(later))


TEXTS = st.sampled_from(
    ["", "0", "1", "-7", "007", "9007199254740993", "99999999999999999999", "1.5", "1.50", "1e5",
     "100000.0", "true", "false", "x", "ü", '"a,b"', '"a\nb"', '""', '"say ""hi"""', "N", "#x",
     "NaN", "\ufeff", "{}", '"open']
)  # fmt: skip
ROWS = st.lists(
    st.tuples(st.integers(0, 1 << 40).map(str), st.integers(0, 9).map(str), TEXTS, TEXTS),
    max_size=12,
)
ODD_LINES = st.sampled_from(["", "#comment", "1,2", "1,2,3,4,5", '1,1,"x', "\r"])
DIALECTS = st.sampled_from(
    [{}, {"null_value": "N"}, {"comment": "#"}, {"quote": ""}, {"skip_lines": 1},
     {"encoding": "utf-16"}]
)  # fmt: skip


@example([([("1", "1", "1", "1")], []), ([("2", "1", "1.5", "")], [])], {}, {}, "\n", 1)
@given(
    st.lists(st.tuples(ROWS, st.lists(ODD_LINES, max_size=2)), min_size=1, max_size=3),
    DIALECTS,
    st.sampled_from([{}, {"x": "decimal(10,2)"}, {"x": "string"}, {"y": "double"}]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([1, 20, 60, 1 << 20]),
)
def test_csv_in_splits_is_the_same_as_in_one_batch(
    contents: list[tuple[list[tuple[str, ...]], list[str]]],
    dialect: dict[str, Any],
    declared: dict[str, str],
    end: str,
    size: int,
) -> None:
    encoding = dialect.get("encoding", "utf-8")
    files = {}
    for number, (rows, odd) in enumerate(contents):
        header = ["skipped"] * dialect.get("skip_lines", 0) + [f"id,seq,x,y{'z' * (number % 2)}"]
        body = [*map(",".join, rows[1:]), *odd, *map(",".join, rows[:1])]
        files[f"in/{number}.csv"] = end.join([*header, *body]).encode(encoding)
    request = request_for(files, "csv", landing=dialect, columns=declared)

    assert same(by_tasks(request, size), exactly(request))


@pytest.mark.parametrize("late", ["1.5", "9007199254740993.5", "x", "true", "007", ""])
def test_what_a_late_text_of_csv_needs_settles_its_column(late: str) -> None:
    texts = [str(n) for n in range(1000)]
    for first in ("5", "9007199254740993", ""):
        rows = [f"{n},{n},{text}" for n, text in enumerate([first, *texts, late])]
        content = "\n".join(["id,seq,x", *rows]).encode()
        request = request_for({"in/1.csv": content}, "csv")

        assert same(by_tasks(request, 4096), exactly(request))


def test_a_csv_file_without_a_header_line_is_cut_as_well() -> None:
    content = "".join(f"{n},{n % 7},é{n}\n" for n in range(500)).encode()
    landing = {"header": False}
    columns = {"id": "bigint", "seq": "int", "x": "string"}
    request = request_for({"in/1.csv": content}, "csv", landing=landing, columns=columns)

    for size in (1, 100, 3000):
        assert same(by_tasks(request, size), exactly(request))


def test_a_load_that_goes_on_begins_where_reading_the_file_from_its_start_would_lead() -> None:
    ids = list(range(40_000))
    rows = [{"id": n, "seq": n} for n in ids]
    fields = [{"name": "id", "type": "long"}, {"name": "seq", "type": "long"}]
    text = "\n".join(f"{n},{n}" for n in ids)
    parquet = io.BytesIO()
    pq.write_table(pa.table({"id": ids, "seq": ids}), parquet, row_group_size=1000)
    files = {
        "avro": avro_of(fields, rows, interval=1000),
        "csv": f"id,seq\n{text}\n".encode(),
        "json": "\n".join(f'{{"id":{n},"seq":{n}}}' for n in ids).encode(),
        "orc": orc_of(
            pa.table({"id": ids, "seq": [str(n * 7919 % 10007) for n in ids]}),
            stripe_size=64 * 1024,
            batch_size=1024,
        ),
        "parquet": parquet.getvalue(),
    }
    for name, content in files.items():
        limits = LoadLimits(split_bytes=4096, commit_bytes=len(content) // 3)
        request = request_for({"in/1": content}, name)
        first = NativeLoads().plan(request, limits, {}, {})
        assert isinstance(first, SplitPlan)
        reports = read(first)[1]
        places = first.places_after(reports)
        start = first.progress_after(reports)["in/1"].records
        assert places["in/1"].begin > 0
        later = request_for({"in/1": content}, name, start=start)

        on, again = (NativeLoads().plan(later, limits, {}, known) for known in (places, {}))

        assert isinstance(on, SplitPlan)
        assert isinstance(again, SplitPlan)
        assert replace(on.splits[0], size=0, end=None) == replace(again.splits[0], size=0, end=None)
        assert on.splits[0].skip == 0
        found = [number for batch in read(on)[0] for number in batch.column("id").to_pylist()]
        assert found == list(range(start, start + len(found)))
        assert [split.first for split in on.splits][1:] != []
