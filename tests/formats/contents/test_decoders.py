"""Each content gives the records that its messages mean; what is no record says why."""

from __future__ import annotations

import gzip
import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from polynya.formats.contents.compressed import expanded
from polynya.formats.contents.decoded import Decoded
from polynya.formats.contents.decoders import decoder_of
from polynya.formats.errors import RecordError
from polynya.model.config.stream_content import landed_content
from polynya.model.types import BIGINT, STRING

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price",
         "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}  # fmt: skip
ROW = {
    "id": 1,
    "price": Decimal("10.50"),
    "day": date(2026, 11, 23),
    "at": datetime(2026, 11, 23, 12, tzinfo=UTC),
}


def decoded(message: bytes, **content: Any) -> Decoded | RecordError:
    (one,) = decoder_of(landed_content(content)).decode([message])
    return one


def records(message: bytes, **content: Any) -> list[Any]:
    found = decoded(message, **content)
    assert isinstance(found, Decoded), found
    return [one.rule if isinstance(one, RecordError) else one for one in found.items]


def refused(message: bytes, **content: Any) -> str:
    found = decoded(message, **content)
    assert isinstance(found, RecordError), found
    return f"{found.rule}: {found.error}"


def avro(rows: list[dict[str, Any]], schema: Any = SCHEMA, codec: str = "null") -> bytes:
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), rows, codec=codec)
    return buffer.getvalue()


def datum(row: dict[str, Any], schema: Any = SCHEMA) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), row)
    return buffer.getvalue()


def parquet_file(rows: pa.Table) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(rows, buffer)
    return buffer.getvalue()


def orc_file(rows: pa.Table) -> bytes:
    buffer = io.BytesIO()
    orc.write_table(rows, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (b'{"a":1,"b":{"c":[1,"x"]}}', [{"a": 1, "b": {"c": [1, "x"]}}]),
        (b'\xef\xbb\xbf {"a": 1}\r\n', [{"a": 1}]),
        (b'{\n "a": 1\n}', [{"a": 1}]),
        (b'[{"a":1}, 7, {"a":0.10000000000000000001}]',
         [{"a": 1}, "not_an_object", {"a": Decimal("0.10000000000000000001")}]),
        (b"[]", []),
        (b'{"a":1}\n\n{"a":}\n{"a":3}\n', [{"a": 1}, "bad_json", {"a": 3}]),
        (b'{"a":1}\n{"a":\n{"a":3}\n7', [{"a": 1}, "bad_json", {"a": 3}, "not_an_object"]),
        (b'{"a":1,"a":1}\nno json', ["duplicate_key", "bad_json"]),
    ],
)  # fmt: skip
def test_json_is_an_object_an_array_or_lines(message: bytes, found: list[Any]) -> None:
    assert records(message, type="json") == found


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (b"", "bad_json"),
        (b"7", "not_an_object"),
        (b'{"a":1} x', "bad_json"),
        (b'{\n"a": 1,\n}', "bad_json"),
        # A document that was cut off: its parts are no records.
        (b'{"a":[\n{"b":1},\n{"b":2}\n', "bad_json"),
        (b"  \n", "bad_json"),
        (b'{"a":1,"a":2}', "duplicate_key"),
        (b"[" * 100, "too_deep"),
        (b'{"a":"\xff"}', "bad_utf8"),
    ],
)
def test_a_message_that_is_no_json_is_refused_with_its_rule(message: bytes, rule: str) -> None:
    assert refused(message, type="json").startswith(f"{rule}: ")


def test_a_record_of_many_can_be_read_by_itself() -> None:
    whole = decoded(
        b'[{"n":0.10000000000000000001,"t":"\xc3\xa9","m":{"k":[1.5,null]}},{}]', type="json"
    )
    assert isinstance(whole, Decoded)
    assert whole.part is not None

    part = whole.part(0)

    assert records(part, type="json") == [whole.items[0]]
    assert b"0.10000000000000000001" in part


@pytest.mark.parametrize(
    ("message", "content", "found"),
    [
        (b'a,b\r\n1,x\r\n,"y,""z"\n', {}, [{"a": "1", "b": "x"}, {"a": None, "b": 'y,"z'}]),
        (b"1;x\n2", {"header": ["a", "b"], "delimiter": ";"}, [{"a": "1", "b": "x"}, "bad_csv"]),
        (b"a,a,a_2\n1,2,3", {"duplicate_header": True}, [{"a": "1", "a_3": "2", "a_2": "3"}]),
        (b"1,NA", {"header": ["a", "b"], "null_value": "NA"}, [{"a": "1", "b": None}]),
    ],
)  # fmt: skip
def test_csv_has_a_header_or_is_told_one(
    message: bytes, content: dict[str, Any], found: list[Any]
) -> None:
    assert records(message, type="csv", **content) == found


def test_tsv_is_csv_with_tabs() -> None:
    assert records(b"a\tb\n1\t2", type="tsv") == [{"a": "1", "b": "2"}]


def test_a_row_keeps_its_line_of_names() -> None:
    found = decoded(b"a,b\n1,2\n3", type="csv")

    assert isinstance(found, Decoded)
    assert found.part is not None
    assert found.part(1) == b"a,b\n3"


def test_a_name_twice_refuses_the_message() -> None:
    assert "column 'a' stands twice" in refused(b"a,a\n1,2", type="csv")
    assert "no line" in refused(b"\n", type="csv")


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2", "xz", "zstandard"])
def test_an_avro_container_brings_its_types(codec: str) -> None:
    found = decoded(avro([ROW], codec=codec), type="avro")

    assert isinstance(found, Decoded)
    assert found.items == [ROW]
    assert {name: str(kind) for name, kind in found.types.items()} == {
        "id": "bigint", "price": "decimal(9,2)", "day": "date", "at": "timestamp",
    }  # fmt: skip


def test_a_bare_datum_needs_the_schema() -> None:
    assert records(datum(ROW), type="avro", schema=SCHEMA) == [ROW]
    assert "bytes follow it" in refused(datum(ROW) + b"x", type="avro", schema=SCHEMA)
    assert refused(datum(ROW)[:-3], type="avro", schema=SCHEMA).startswith("bad_avro: ")


def test_parquet_and_orc_are_whole_files() -> None:
    rows = pa.table({"id": [1, 2], "name": ["Ann", None]})

    for content, message in (("parquet", parquet_file(rows)), ("orc", orc_file(rows))):
        found = decoded(message, type=content)

        assert isinstance(found, Decoded)
        assert found.items == rows.to_pylist()
        assert found.types == {"id": BIGINT, "name": STRING}
        assert found.part is not None
        assert (found.part(0), found.is_spelled) == (b'{"id":1,"name":"Ann"}', True)
        assert refused(message[:-9], type=content).startswith(f"bad_{content}: ")


@pytest.mark.parametrize(
    ("message", "content", "found"),
    [
        (
            b'<o id="7"><c>Ann</c><l q="1">x</l><l q="2"/><e/></o>',
            {},
            [{"_id": "7", "c": "Ann", "l": [{"_q": "1", "_value": "x"}, {"_q": "2"}], "e": None}],
        ),
        (b"<o>text</o>", {}, [{"_value": "text"}]),
        (
            b"<os><o><n>1</n></o><x/><o><n>2</n></o></os>",
            {"record": "o", "infer_types": True},
            [{"n": 1}, {"n": 2}],
        ),
        (b"<o><l>1</l></o>", {"arrays": ["l"]}, [{"l": ["1"]}]),
        (b'<a:o xmlns:a="u"><a:b>1</a:b></a:o>', {}, [{"b": "1"}]),
        (b'<a:o xmlns:a="u"><a:b>1</a:b></a:o>', {"namespaces": "keep"}, [{"a_b": "1"}]),
        (
            b'<o xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><b i:nil="1"/><c> x </c></o>',
            {},
            [{"b": None, "c": " x "}],
        ),
        (b"<o><b>007</b><c>1.50</c><d>1.5</d></o>", {"infer_types": True},
         [{"b": "007", "c": "1.50", "d": 1.5}]),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><o><b>é</b></o>'.encode("latin-1"), {},
         [{"b": "é"}]),
    ],
)  # fmt: skip
def test_xml_becomes_structs_and_arrays(
    message: bytes, content: dict[str, Any], found: list[Any]
) -> None:
    assert records(message, type="xml", **content) == found


def test_documents_of_one_batch_get_one_shape() -> None:
    decoder = decoder_of(landed_content({"type": "xml"}))
    messages = [b"<o><l>1</l></o>", b"<o><l>2</l><l k='x'>3</l></o>", b"<o/>"]
    found = [one.items[0] for one in decoder.decode(messages) if isinstance(one, Decoded)]

    decoder.settle(found, {})  # type: ignore[arg-type]

    assert found == [
        {"l": [{"_value": "1"}]},
        {"l": [{"_value": "2"}, {"_k": "x", "_value": "3"}]},
        {"_value": None},
    ]


@pytest.mark.parametrize(
    ("message", "content", "found"),
    [
        (
            b"GET /a 200\n\nnonsense\nPUT /b 500",
            {"pattern": r"^(?<verb>[A-Z]+) (?<path>\S+) (?<code>\d+)?"},
            [
                {"verb": "GET", "path": "/a", "code": "200"},
                "no_match",
                {"verb": "PUT", "path": "/b", "code": "500"},
            ],
        ),
        (b"a\nb", {"pattern": "(?<all>a.b)", "multi_line": True}, [{"all": "a\nb"}]),
        (b"one line", {}, [{"line": "one line"}]),
    ],
)
def test_the_groups_of_a_pattern_are_columns(
    message: bytes, content: dict[str, Any], found: list[Any]
) -> None:
    assert records(message, type="regex", **content) == found


def test_split_text_has_one_column() -> None:
    assert records(b"a\r\nb\n\nc", type="split_lines") == [
        {"line": "a"},
        {"line": "b"},
        {"line": "c"},
    ]
    assert records(b"a;b, c", type="split_lines", pattern="[;,] ?") == [
        {"line": "a"}, {"line": "b"}, {"line": "c"},
    ]  # fmt: skip
    assert refused(b"\xff", type="split_lines").startswith("bad_utf8")


def test_auto_looks_at_the_first_bytes() -> None:
    rows = pa.table({"id": [1]})

    assert records(avro([ROW]), type="auto") == [ROW]
    assert records(parquet_file(rows), type="auto") == [{"id": 1}]
    assert records(b'{"id": 1}', type="auto") == [{"id": 1}]


def test_compressed_messages_are_told_by_their_first_bytes() -> None:
    text = b'{"a":1}' * 100
    codecs = {"gzip": gzip.compress(text), "zstd": pa.compress(text, "zstd", asbytes=True)}

    for message in (*codecs.values(), text):
        assert expanded(message) == text
    with pytest.raises(RecordError, match="broken gzip"):
        expanded(codecs["gzip"][:-5])
    with pytest.raises(RecordError, match="gzip archive of more than"):
        expanded(codecs["gzip"], limit=100)
