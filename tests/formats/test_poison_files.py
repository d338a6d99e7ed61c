"""Small files that stand for any amount of memory, disk or time are refused before they take it."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import sys
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import cramjam
import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from polynya.formats import limits
from polynya.formats.batch import DatasetBatch
from polynya.formats.debezium.tables import DebeziumScope
from polynya.formats.loads import Split
from polynya.formats.native.splits import KINDS, SplitTarget
from polynya.formats.values import columns
from tests.formats.debezium.builders import capture, read_capture
from tests.formats.helpers import a_dataset, column, json_lines, read, rules

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROW = {"type": "record", "name": "r", "fields": [
    {"name": "id", "type": "int"}, {"name": "n", "type": "int"}, {"name": "a", "type": "bytes"},
]}  # fmt: skip


def number(value: int) -> bytes:
    """A number as Avro writes it."""
    value, found = value << 1, bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def container(schema: Any, block: bytes, count: int, codec: str = "null") -> bytes:
    head = b"Obj\x01\x04" + text(b"avro.codec") + text(codec.encode())
    head += text(b"avro.schema") + text(json.dumps(schema).encode()) + b"\0" + b"s" * 16
    return head + number(count) + text(block) + b"s" * 16


def why(batch: DatasetBatch) -> str:
    """Why the one file of a batch was refused as a whole."""
    (one,) = batch.rejected
    assert (one.offset, one.rule, batch.rows.num_rows) == (-1, "unreadable_file", 0)
    assert all(done.complete for done in batch.files.values())
    return one.error


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def snappy(content: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(content)) + zlib.crc32(content).to_bytes(4, "big")


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": deflated,
    "snappy": snappy,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": zstd.compress,
}


@pytest.mark.parametrize("codec", CODECS)
def test_an_avro_block_that_expands_to_too_much_is_refused(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES", 100_000)
    large = number(1) + number(1) + text(b"\0" * 200_000)
    file = container(ROW, CODECS[codec](large), 1, codec)

    assert "a block of more than 100,000 bytes" in why(read(file, a_dataset("avro")))


@pytest.mark.parametrize("codec", [one for one in CODECS if one != "null"])
def test_an_avro_file_of_many_blocks_may_not_expand_to_any_size(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SMALL_BYTES", 100_000)
    monkeypatch.setattr(limits, "RATIO", 5)
    one = number(1) + number(1) + text(b"\0" * 10_000)
    file = container(ROW, CODECS[codec](one), 1, codec)
    start = file.index(b"s" * 16) + 16

    assert "holds more than" in why(read(file + file[start:] * 50, a_dataset("avro")))
    assert column(read(file, a_dataset("avro")), "id") == [1]


@pytest.mark.parametrize(
    "kind",
    [
        "null",
        {"type": "record", "name": "e", "fields": []},
        {"type": "fixed", "name": "f", "size": 0},
    ],
)
def test_avro_records_that_take_no_bytes_are_refused(kind: Any) -> None:
    nothing = {"type": "record", "name": "r", "fields": [{"name": "id", "type": kind}]}

    for count in (400_000, 1 << 60):
        assert "take no bytes" in why(read(container(nothing, b"", count), a_dataset("avro")))


def test_an_avro_block_cannot_have_more_records_than_bytes() -> None:
    two = number(1) + number(1) + text(b"") + number(2) + number(1) + text(b"")

    assert column(read(container(ROW, two, 2), a_dataset("avro")), "id") == [1, 2]
    assert "says that it has 1,125" in why(read(container(ROW, two, 1 << 50), a_dataset("avro")))


def test_avro_arrays_of_items_that_take_no_bytes_are_refused() -> None:
    items = {"type": "array", "items": "null"}
    schema = {**ROW, "fields": [*ROW["fields"], {"name": "many", "type": items}]}
    row = number(1) + number(1) + text(b"") + number(1_000_000_000) + number(0)

    assert "items that take no bytes" in why(read(container(schema, row, 1), a_dataset("avro")))


@pytest.mark.parametrize("leaf", ["int", "null"])
def test_a_few_types_of_avro_that_contain_each_other_are_no_wide_table(leaf: str) -> None:
    kind: Any = leaf
    for level in range(40):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"t{level - 1}"}]
        kind = {"type": "record", "name": f"t{level}", "fields": fields[: 2 if level else 1]}
    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": kind}]}

    file = container(schema, b"\2" * 99, 1)

    assert "columns" in why(read(file, a_dataset("avro")))
    found = read_capture(capture(file), DebeziumScope()).unrouted
    assert found is not None
    assert "columns" in why(found)


def test_an_avro_header_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEADER_BYTES", 10_000)
    fields = [{"name": f"c{at}", "type": "int"} for at in range(1000)]
    large = container({**ROW, "fields": fields}, b"", 0)
    claimed = b"Obj\x01\x02" + number(1 << 60) + b"avro.schema"

    for file in (large, claimed):
        assert "its header has more than 10,000 bytes" in why(read(file, a_dataset("avro")))


def test_an_avro_file_of_events_is_guarded_too() -> None:
    event = {"type": "record", "name": "e", "fields": [{"name": "op", "type": "string"}]}
    found = read_capture(capture(container(event, b"\0", 400_000)), DebeziumScope())
    assert found.unrouted is not None
    (one,) = found.unrouted.rejected

    assert "take no bytes" in one.error


def test_an_avro_file_that_tasks_load_is_guarded_too() -> None:
    file = container({**ROW, "fields": ROW["fields"][:1]}, b"\2", 1 << 50)
    split = Split(0, "f", 0, 0, before=0, size=len(file))

    with pytest.raises(Exception, match="says that it has"):
        list(KINDS["avro"].portions(io.BytesIO(file), split, SplitTarget(a_dataset("avro"), {})))


def parquet_of(rows: pa.Table, **settings: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(rows, file, **settings)
    return file.getvalue()


def orc_of(rows: pa.Table, codec: str = "zlib") -> bytes:
    file = io.BytesIO()
    orc.write_table(rows, file, compression=codec)
    return file.getvalue()


@pytest.mark.parametrize(("kind", "write"), [("parquet", parquet_of), ("orc", orc_of)])
def test_a_few_bytes_of_equal_rows_are_refused(
    kind: str, write: Callable[[pa.Table], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SMALL_ROWS", 10_000)
    monkeypatch.setattr(limits, "RATIO", 1)
    one = pa.array([1] * 100_000, pa.int64())
    good = write(pa.table({"id": list(range(100)), "n": [1] * 100}))

    batch = read({"1": write(pa.table({"id": one, "n": one})), "2": good}, a_dataset(kind))

    (refused,) = batch.rejected
    assert (refused.file, refused.rule) == ("1", "unreadable_file")
    assert "says that it has 100,000 rows" in refused.error
    assert batch.rows.num_rows == 100


def test_a_few_bytes_of_a_parquet_list_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SMALL_VALUES", 10_000)
    monkeypatch.setattr(limits, "RATIO", 1)
    rows = pa.table({"id": [1], "n": [1], "a": [[7] * 100_000]})

    assert "100,000 values in lists" in why(read(parquet_of(rows), a_dataset("parquet")))


@pytest.mark.parametrize("codec", ["uncompressed", "zlib", "snappy", "zstd", "lz4"])
@pytest.mark.parametrize(
    "values",
    [[[7] * 100_000], [{"deep": [7] * 100_000}], [[(1, 1)] * 100_000]],
    ids=["list", "struct", "map"],
)
def test_a_few_bytes_of_an_orc_list_are_refused(
    values: list[Any], codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SMALL_VALUES", 10_000)
    monkeypatch.setattr(limits, "RATIO", 1)
    is_map = isinstance(values[0], list) and isinstance(values[0][0], tuple)
    kind = pa.map_(pa.int64(), pa.int64()) if is_map else None
    rows = pa.table({"id": [1], "n": [1], "a": pa.array(values, kind)})
    few = pa.table({"id": [1], "n": [1], "a": [[7] * 100]})

    assert "values in lists" in why(read(orc_of(rows, codec), a_dataset("orc")))
    assert read(orc_of(few, codec), a_dataset("orc")).rejected == ()


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_few_bytes_of_many_columns_of_equal_values_are_refused(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SMALL_CELLS", 10_000)
    monkeypatch.setattr(limits, "RATIO", 1)
    rows = pa.table({name: [1] * 5_000 for name in ("id", "n", "a", "b", "c", "d")})
    file = parquet_of(rows) if kind == "parquet" else orc_of(rows)

    assert "it has 30,000 values" in why(read(file, a_dataset(kind)))


def test_a_parquet_file_that_expands_to_too_much_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SMALL_BYTES", 10_000)
    monkeypatch.setattr(limits, "RATIO", 5)
    rows = pa.table({"id": [1], "n": [1], "a": ["x" * 1_000_000]})
    file = parquet_of(rows, compression="zstd", use_dictionary=False)

    assert "holds more than" in why(read(file, a_dataset("parquet")))


def test_the_rows_of_an_orc_stripe_are_taken_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def seen(rows: pa.RecordBatch) -> Any:
        sizes.append(rows.num_rows)
        return iter(())

    monkeypatch.setattr("polynya.formats.records.columnar.records_of", seen)
    read(orc_of(pa.table({"id": list(range(40_000)), "n": [1] * 40_000})), a_dataset("orc"))

    assert len(sizes) > 1
    assert max(sizes) <= 16_384


@pytest.mark.parametrize("kind", ["csv", "avro", "parquet"])
def test_a_file_of_very_many_columns_is_refused_at_once(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RECORD_FIELDS", 300)
    names = ["id", "n", *(f"c{at}" for at in range(400))]
    if kind == "csv":
        file = (",".join(names) + "\n" + ",".join("1" for _ in names)).encode()
    elif kind == "parquet":
        file = parquet_of(pa.table({name: [1] for name in names}))
    else:
        out = io.BytesIO()
        schema = {**ROW, "fields": [{"name": name, "type": "int"} for name in names]}
        fastavro.writer(out, schema, [dict.fromkeys(names, 1)])
        file = out.getvalue()

    assert "it has 402 columns, at most 300 are read" in why(read(file, a_dataset(kind)))


def test_a_line_of_very_many_fields_or_values_is_refused_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "FEW_BYTES", 100)
    monkeypatch.setattr(limits, "RECORD_FIELDS", 50)
    monkeypatch.setattr(limits, "RECORD_VALUES", 1000)
    good = {"id": 1, "n": 1}
    wide = {"id": 2, "n": 1, "s": {f"c{at}": 1 for at in range(60)}}
    many = {"id": 3, "n": 1, "a": [1] * 1001}
    long = {"id": 4, "n": 1, "t": "," * 2000}

    batch = read(json_lines(good, wide, many, long), a_dataset("json"))

    assert rules(batch) == [(1, "too_large"), (2, "too_large")]
    assert column(batch, "id") == [1, 4]


def test_names_that_are_values_do_not_become_fields_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "MAX_FIELDS", 3)
    rows = [{"id": at, "n": 1, "s": {"deep": {f"k{at}": 1}}} for at in range(5)]
    file = json_lines(*rows, {"id": 9, "n": 1, "s": {"deep": {"k0": 2}}})

    batch = read(file, a_dataset("json"))
    as_map = read(file, a_dataset("json", columns={"s": "map<string,map<string,int>>"}))

    assert column(batch, "id") == [0, 1, 2, 9]
    assert rules(batch) == [(3, "bad_column"), (4, "bad_column")]
    assert "an object may have" in batch.rejected[0].error
    assert as_map.rejected == ()


def test_an_object_of_too_many_fields_takes_no_room_from_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "MAX_FIELDS", 3)
    wide = {f"k{at}": 1 for at in range(5)}
    rows = [{"id": at, "n": 1, "s": s} for at, s in enumerate([{"a": 1}, wide, {"b": 2}])]

    batch = read(json_lines(*rows), a_dataset("json"))

    assert rules(batch) == [(1, "bad_column")]
    assert column(batch, "s") == [{"a": 1, "b": None}, {"a": None, "b": 2}]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_number_as_long_as_a_book_spoils_its_record_only(kind: str) -> None:
    texts = ("0." + "9" * 1_000_000, "9" * 1_000_000, "1." + "0" * 100, "1.5")
    rows = [{"id": at, "n": 1, "d": one} for at, one in enumerate(texts)]
    csv = "id,n,d\n" + "\n".join(f"{row['id']},1,{row['d']}" for row in rows)
    file = json_lines(*rows) if kind == "json" else csv.encode()

    batch = read(file, a_dataset(kind, columns={"d": "decimal(38,2)"}))

    assert rules(batch) == [(0, "bad_value"), (1, "bad_value")]
    assert column(batch, "d") == [Decimal("1.00"), Decimal("1.50")]
