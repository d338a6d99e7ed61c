"""Messages that were made to hurt are refused: soon, and without much memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zlib
from time import monotonic
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from backports import zstd
from pyarrow import parquet

from polynya.formats import limits
from polynya.formats.contents.compressed import expanded
from polynya.formats.contents.decoded import Decoded
from polynya.formats.contents.decoders import decoder_of
from polynya.formats.errors import RecordError
from polynya.model.config.stream_content import landed_content
from tests.formats.contents.test_decoders import refused

LIMIT = 4 * 1024 * 1024
BOMB = b"\0" * (5 * 1024 * 1024)


@pytest.fixture(autouse=True)
def soon() -> Any:
    began = monotonic()
    yield
    assert monotonic() - began < 20


def test_entities_are_refused() -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;">]><a>&c;</a>'
    outside = b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'

    for message in (bomb, outside, b'<!DOCTYPE a SYSTEM "http://127.0.0.1/x.dtd"><a/>'):
        assert "a document type is not allowed" in refused(message, type="xml")


@pytest.mark.parametrize(
    "message",
    [b"<a>" * 1000, b"<a", b"", b"\xff\xfe\x00", b'<?xml version="1.0" encoding="x"?><a/>',
     b"<a b='1' b='2'/>", b"<a><_v/></b>", b"<a _='1'/>\0"],
)  # fmt: skip
def test_broken_xml_is_refused(message: bytes) -> None:
    assert refused(message, type="xml").split(":")[0] in {"bad_xml", "too_deep"}


def test_a_bomb_is_refused_whatever_packed_it() -> None:
    for message in (
        gzip.compress(BOMB, 1),
        bz2.compress(BOMB),
        pa.compress(BOMB, "zstd", asbytes=True),
    ):
        with pytest.raises(RecordError) as caught:
            expanded(message, LIMIT)
        assert caught.value.rule == "too_large"


def container(codec: str, block: bytes, schema: bytes = b'"bytes"', count: int = 1) -> bytes:
    """An Avro container of one block."""
    record = b'{"type":"record","name":"r","fields":[{"name":"a","type":' + schema + b"}]}"
    head = b"Obj\x01\x04" + _text(b"avro.codec") + _text(codec.encode())
    head += _text(b"avro.schema") + _text(record) + b"\0" + b"s" * 16
    return head + _long(count) + _long(len(block)) + block + b"s" * 16


def _long(number: int) -> bytes:
    number, found = number << 1, bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _text(text: bytes) -> bytes:
    return _long(len(text)) + text


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz", "zstandard", "snappy"])
def test_a_bomb_in_an_avro_container_is_refused(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MESSAGE_BYTES", LIMIT)
    body = _long(len(BOMB)) + BOMB
    deflate = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = {
        "deflate": lambda: deflate.compress(body) + deflate.flush(),
        "bzip2": lambda: bz2.compress(body, 1),
        "xz": lambda: lzma.compress(body, preset=0),
        # In two frames, of which neither says its size.
        "zstandard": lambda: zstd.compress(body[:1000]) + zstd.compress(body[1000:]),
        "snappy": lambda: pa.compress(body, "snappy", asbytes=True) + struct.pack(">I", 0),
    }

    assert refused(container(codec, packed[codec]()), type="avro").startswith("too_large: ")


def test_avro_of_items_without_bytes_is_refused() -> None:
    nothing = b'{"type":"array","items":"null"}'
    hidden = (
        b'{"type":"map","values":{"type":"array","items":'
        b'{"type":"record","name":"n","fields":[{"name":"x","type":"null"}]}}}'
    )

    for schema in (nothing, hidden):
        message = container("null", _long(1 << 40) + b"\0", schema)
        assert "items that take no bytes" in refused(message, type="avro")
    many = container("null", b"", b'"null"', count=1 << 40)
    assert refused(many, type="avro").startswith("too_large: ")


@pytest.mark.parametrize(
    "message",
    [
        b"Obj\x01",
        b"Obj\x01\x02",
        container("nonsense", b"x"),
        container("deflate", b"no deflate"),
        container("null", _long(1 << 50) + b"x"),
        container("null", b"x", b'{"type":"array","items":"r"}'),
        container("null", b"x", b"7"),
        container("null", b"\2", b'"int"')[:-1],
    ],
)  # fmt: skip
def test_damaged_avro_is_refused(message: bytes) -> None:
    assert refused(message, type="avro").startswith("bad_avro: ")


def test_a_parquet_file_of_very_many_nulls_is_refused() -> None:
    buffer = io.BytesIO()
    parquet.write_table(pa.table({"a": pa.nulls(3_000_000, pa.int8())}), buffer)

    assert refused(buffer.getvalue(), type="parquet").startswith("too_large: ")


def test_a_pattern_takes_linear_time() -> None:
    text = b"a" * 200_000 + b"!"

    found = decoder_of(landed_content({"type": "regex", "pattern": "^(?<x>(?:a+)+)$"})).decode(
        [text]
    )

    (one,) = found
    assert isinstance(one, Decoded)
    assert isinstance(one.items[0], RecordError)


def test_a_schema_nested_for_ever_is_refused() -> None:
    schema: Any = "int"
    for _ in range(300):
        schema = {"type": "array", "items": schema}
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "type": schema}]}
    buffer = io.BytesIO()
    fastavro.writer(buffer, record, [])

    assert refused(buffer.getvalue(), type="avro").startswith("bad_avro: ")
