"""A file becomes messages: lines, records below their line of names, whole files, parts of them."""

from __future__ import annotations

import gzip
import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from polynya.formats.errors import UnreadableFileError
from polynya.streams.files import reading
from polynya.streams.files.reading import FileMessage, pieces_of
from tests.streams.files.given import Landing, content, day

ROWS = pa.table({"id": range(1000), "text": [f"row {number}" for number in range(1000)]})


def messages(data: bytes, record: int = 0, byte: int = 0, **settings: Any) -> list[FileMessage]:
    return list(pieces_of(io.BytesIO(data), content(**settings), record, byte))


def values(data: bytes, **settings: Any) -> list[bytes]:
    return [piece.value for piece in messages(data, **settings)]


def avro(rows: pa.Table) -> bytes:
    fields = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
    schema = {"type": "record", "name": "r", "fields": fields}
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema, rows.to_pylist(), sync_interval=500)
    return buffer.getvalue()


def container(kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "avro":
        return avro(ROWS)
    if kind == "orc":
        orc.write_table(ROWS, buffer, stripe_size=4096, compression="zstd")
    else:
        parquet.write_table(ROWS, buffer, row_group_size=300)
    return buffer.getvalue()


def rows_of(kind: str, data: bytes) -> list[dict[str, Any]]:
    if kind == "avro":
        return list(fastavro.reader(io.BytesIO(data)))
    table = (orc if kind == "orc" else parquet).read_table(io.BytesIO(data))
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_json_lines_are_a_message_each() -> None:
    found = messages(b'\xef\xbb\xbf{"a":1}\r\n\n  \n{"a":\n[2,3]', type="json")

    assert [piece.value for piece in found] == [b'{"a":1}', b'{"a":', b"[2,3]"]
    assert [piece.record for piece in found] == [0, 1, 2]


@pytest.mark.parametrize(
    "text", [b'[\n{"a": 1},\n{"a": 2}\n]', b'{\n  "a": 1\n}\n', b'[{"a": 1},\n2]']
)
def test_a_document_of_json_over_several_lines_is_one_message(text: bytes) -> None:
    assert values(text, type="json") == [text]


def test_a_record_of_csv_comes_with_the_line_of_names_unless_the_settings_have_them() -> None:
    text = b'id,text\n1,"two\nlines"\n\n2,x\n'

    assert values(text, type="csv") == [b'id,text\n1,"two\nlines"', b"id,text\n2,x"]
    assert values(text, type="csv", header=["id", "text"])[0] == b"id,text"
    assert values(b"a\tb\n1\t2\n", type="tsv") == [b"a\tb\n1\t2"]


def test_lines_of_a_text_are_messages_but_not_where_a_record_may_have_several() -> None:
    text = b"one\ntwo\n"

    assert values(text, type="regex") == [b"one", b"two"]
    assert values(text, type="split_lines") == [b"one", b"two"]
    assert values(text, type="regex", multi_line=True) == [text]
    assert values(text, type="split_lines", pattern=";") == [text]
    assert values(b"<a/>", type="xml") == [b"<a/>"]
    assert values(b"", type="xml") == []


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (b"".join(b'{"n":%d}\n\r\n' % number for number in range(9)), {"type": "json"}),
        (b"a,b\n" + b'1,"x\ny"\n\n' * 9, {"type": "csv"}),
        (b'1,"x\ny"\n\n' * 9, {"type": "csv", "header": ["a", "b"]}),
    ],
)
def test_reading_goes_on_after_any_message_with_the_next(
    text: bytes, settings: dict[str, Any]
) -> None:
    whole = messages(text, **settings)

    for number, piece in enumerate(whole):
        by_byte = messages(text, piece.following, piece.byte, **settings)
        by_number = messages(text, piece.following, 0, **settings)
        assert [one.value for one in by_byte] == [one.value for one in whole[number + 1 :]]
        assert [one.record for one in by_byte] == [one.record for one in whole[number + 1 :]]
        assert by_number == by_byte


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_a_small_container_is_one_message_as_it_is(kind: str) -> None:
    data = container(kind)

    assert values(data, type=kind) == [data]
    if kind != "orc":
        assert values(data, type="auto") == [data]


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_a_large_container_is_cut_into_containers(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = container(kind)
    for module in (reading, reading):
        monkeypatch.setattr(module, "PART_BYTES", len(data) // 4)

    found = messages(data, type=kind)

    assert len(found) > 3
    assert [row for one in found for row in rows_of(kind, one.value)] == ROWS.to_pylist()
    for one in found:
        rest = messages(data, one.following, type=kind)
        assert [row for part in rest for row in rows_of(kind, part.value)] == [
            row for row in ROWS.to_pylist() if row["id"] >= one.following
        ]


def test_what_has_to_be_one_message_and_is_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "MAX_MESSAGE_BYTES", 3)

    with pytest.raises(UnreadableFileError, match="one message"):
        messages(b"<aaaa/>", type="xml")


def test_compressed_files_are_read_by_their_first_bytes() -> None:
    landing = Landing()
    landing.store.put(day(0, "a"), gzip.compress(b"1\n2\n"))

    assert landing.land(max_records=1) == [b"1", b"2"]


def test_a_file_that_is_damaged_lands_as_it_is_and_the_next_one_follows() -> None:
    landing = Landing()
    broken = gzip.compress(b"1\n2\n" * 1000)[:-9]
    landing.store.put(day(0, "a"), broken)
    landing.put(day(0, "b"), "3")

    assert landing.land() == [broken, b"3"]
    assert landing.lost == []


def test_a_damaged_file_stays_where_files_are_deleted() -> None:
    landing = Landing({"delete_after_load": True})
    landing.store.put(day(0, "a"), gzip.compress(b"1\n2\n" * 1000)[:-9])
    landing.put(day(0, "b"), "3")

    landing.land()
    landing.again()

    assert landing.land() == []
    assert list(landing.store.objects) == [day(0, "a")]


def test_a_container_that_is_damaged_behind_its_beginning_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    buffer = io.BytesIO()
    parquet.write_table(ROWS, buffer, row_group_size=100)
    data = bytearray(buffer.getvalue())
    for module in (reading, reading):
        monkeypatch.setattr(module, "PART_BYTES", len(data) // 4)
    first = len(messages(bytes(data), type="parquet")[0].value)
    last = parquet.ParquetFile(buffer).metadata.row_group(9).column(1).dictionary_page_offset
    data[last : last + 60] = b"\xff" * 60
    landing = Landing(content=content(type="parquet"))
    landing.store.put(day(0, "a"), bytes(data))

    landing.land(max_bytes=first)

    assert landing.lost
    assert landing.lost[0][0] == day(0, "a")
    assert "cannot be read: damaged" in landing.lost[0][1]
