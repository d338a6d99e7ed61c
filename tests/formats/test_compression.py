"""Every text format may be compressed; an archive is read to its last byte or refused whole."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import resource
from collections.abc import Callable

import cramjam
import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from polynya.formats import limits
from polynya.formats.opening import IDENTIFIER, codec_of, decompressed
from polynya.model.config.settings import Delivery
from tests.formats.helpers import a_dataset, column, json_lines, read, rules

_FIRST = json_lines(*({"id": n, "n": 1, "text": "x" * n} for n in range(400))) + b"\n"
_SECOND = json_lines({"id": 1000, "n": 1}) + b"\n"


def _hadoop(content: bytes, block: int = 20_000, chunk: int = 9_000) -> bytes:
    out = b""
    for start in range(0, len(content), block):
        part = content[start : start + block]
        out += len(part).to_bytes(4, "big")
        for at in range(0, len(part), chunk):
            packed = bytes(cramjam.snappy.compress_raw(part[at : at + chunk]))
            out += len(packed).to_bytes(4, "big") + packed
    return out


def _zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


def _framed(content: bytes) -> bytes:
    return bytes(cramjam.snappy.compress(content))


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "f.gz": gzip.compress,
    "f.zst": _zstd,
    "f.bz2": bz2.compress,
    "f.xz": lzma.compress,
    "f.sz": _framed,
    "f.snappy": _hadoop,
}
each_codec = pytest.mark.parametrize(("name", "compress"), CODECS.items(), ids=CODECS)


@each_codec
def test_members_one_behind_the_other_are_one_file(
    name: str, compress: Callable[[bytes], bytes]
) -> None:
    batch = read({name: compress(_FIRST) + compress(_SECOND)})

    assert column(batch, "id") == [*range(400), 1000]


@each_codec
def test_a_truncated_archive_is_refused_whole(
    name: str, compress: Callable[[bytes], bytes]
) -> None:
    whole = compress(_FIRST)
    cuts = (len(whole) - 1, len(whole) - 5, len(whole) // 2)

    for content in (*(whole[:cut] for cut in cuts), whole + compress(_SECOND)[:-3]):
        batch = read({name: content})
        assert rules(batch) == [(-1, "unreadable_file")]
        assert batch.rows.num_rows == 0


@each_codec
def test_damage_and_trailing_bytes_refuse_the_archive(
    name: str, compress: Callable[[bytes], bytes]
) -> None:
    whole = bytearray(compress(_FIRST))
    damaged = whole.copy()
    middle = len(whole) // 2
    damaged[middle : middle + 4] = bytes(byte ^ 0xFF for byte in damaged[middle : middle + 4])

    for content in (damaged, whole + b"trailing garbage"):
        assert rules(read({name: bytes(content)})) == [(-1, "unreadable_file")]


@each_codec
def test_csv_is_decompressed_as_well(name: str, compress: Callable[[bytes], bytes]) -> None:
    batch = read({name: compress(b"id,n\n1,1\n2,1\n")}, a_dataset("csv"))

    assert column(batch, "id") == [1, 2]


@each_codec
def test_documents_and_binary_files_are_decompressed_too(
    name: str, compress: Callable[[bytes], bytes]
) -> None:
    table = pa.table({"id": [1, 2], "n": [1, 1]})
    binary, avro = io.BytesIO(), io.BytesIO()
    orc.write_table(table, binary)
    fields = [{"name": column, "type": "long"} for column in table.column_names]
    fastavro.writer(
        avro,
        {"type": "record", "name": "r", "fields": fields},
        table.to_pylist(),
        sync_marker=b"s" * 16,
    )
    whole = b'[{"id": 1, "n": 1},\n{"id": 2, "n": 1}]'
    documents = a_dataset(delivery=Delivery(record_path="$"))
    tabs = a_dataset("csv", delivery=Delivery(delimiter="\t"))

    for content, dataset in (
        (whole, documents),
        (b"id\tn\n1\t1\n2\t1\n", tabs),
        (binary.getvalue(), a_dataset("orc")),
        (avro.getvalue(), a_dataset("avro")),
    ):
        assert column(read({name: compress(content)}, dataset), "id") == [1, 2]


@pytest.mark.parametrize("outer", [gzip.compress, _zstd, bz2.compress, _framed])
@pytest.mark.parametrize("inner", [gzip.compress, _zstd, bz2.compress, _framed])
def test_an_archive_in_an_archive_is_refused_by_name(
    outer: Callable[[bytes], bytes], inner: Callable[[bytes], bytes]
) -> None:
    batch = read(outer(inner(_FIRST)))

    (one,) = batch.rejected
    assert "archive inside a" in one.error


def test_a_text_that_begins_like_an_archive_or_is_only_named_like_one_is_a_text() -> None:
    text = read({"BZh.csv": b"BZh9,id,n\n1,2,3\n"}, a_dataset("csv"))

    assert column(text, "id") == [2]
    assert column(read({"f.snappy": _SECOND}), "id") == [1000]


def test_an_empty_archive_has_no_records() -> None:
    for name, compress in CODECS.items():
        batch = read({name: compress(b"")})
        assert (batch.rows_in, batch.files[name].complete) == (0, True)


def test_lengths_that_contradict_each_other_are_refused() -> None:
    packed = bytes(cramjam.snappy.compress_raw(b"x" * 100))
    chunk = len(packed).to_bytes(4, "big") + packed
    contents = (
        (99).to_bytes(4, "big") + chunk,
        (101).to_bytes(4, "big") + chunk,
        b"\0\xff\xff\xff" + b"\xff" * 4 + packed,
        b"\0\0",
    )

    for content in contents:
        assert rules(read({"f.snappy": content})) == [(-1, "unreadable_file")]


@pytest.mark.parametrize("name", ["f.gz", "f.zst", "f.bz2", "f.sz"])
def test_a_bomb_is_spooled_to_disk_and_does_not_fill_the_memory(name: str) -> None:
    """120 MB of zeros out of a small archive; the process may not grow by 60 MB."""
    bomb = _repeated(name, b"\0" * 1_000_000, 120)
    codec = codec_of(bomb[:100], name)
    assert codec is not None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with decompressed(io.BytesIO(bomb), codec) as content:
        size = content.seek(0, io.SEEK_END)

    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert size == 120_000_000
    assert grown < 60_000, f"{grown} KiB"


@pytest.mark.parametrize("name", ["f.gz", "f.zst", "f.bz2", "f.sz"])
def test_a_file_is_refused_that_expands_to_more_than_its_size_may(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json_lines({"id": 1, "n": 1}) + b"\n"
    bomb, good = _repeated(name, line * 5_000, 200), _repeated(name, line, 1)
    monkeypatch.setattr(limits, "SMALL_BYTES", 1_000_000)
    monkeypatch.setattr(limits, "RATIO", 10)

    batch = read({f"1{name}": bomb, f"2{name}": good})

    assert rules(batch) == [(-1, "unreadable_file")]
    assert "holds more than" in batch.rejected[0].error
    assert column(batch, "id") == [1]


def test_a_large_file_may_expand_more_than_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    text = b"".join(
        json_lines({"id": chance.randrange(1 << 60), "n": 1}) + b"\n" for _ in range(2000)
    )
    monkeypatch.setattr(limits, "SMALL_BYTES", 10)

    assert len(column(read({"f.gz": gzip.compress(text)}), "id")) == 2000


def _repeated(name: str, piece: bytes, times: int) -> bytes:
    """Many members would be read one by one: a bomb is one member where the format allows it."""
    if name == "f.sz":
        return IDENTIFIER + _framed(piece).removeprefix(IDENTIFIER) * times
    if name == "f.zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as archive:
            for _ in range(times):
                archive.write(piece)
        return bytes(sink.getvalue())
    if name == "f.bz2":
        packer = bz2.BZ2Compressor()
        return b"".join(packer.compress(piece) for _ in range(times)) + packer.flush()
    out = io.BytesIO()
    with gzip.open(out, "wb") as archive_file:
        for _ in range(times):
            archive_file.write(piece)
    return out.getvalue()
