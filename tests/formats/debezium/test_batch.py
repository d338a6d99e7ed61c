"""The landed batch of a capture: what it says of itself, and what is none."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from polynya.formats.debezium.captured import (
    VERSION,
    CaptureHeader,
    EventSchema,
    batch_name,
    batch_number,
    read_header,
    write_batch,
)
from polynya.formats.errors import UnreadableFileError
from polynya.model.errors import OperationError

HEADER = CaptureHeader(
    task="shop_db",
    number=17,
    written_at=datetime(2026, 11, 23, 8, 0, tzinfo=UTC),
    events=2,
    position={"stream": {"lsn": 5}},
    schemas={
        "public.orders": (EventSchema(1, {"type": "struct"}), EventSchema(2, {"type": "string"}))
    },
)
VERSION_SAID = b'"version":%d' % VERSION


def test_a_batch_says_what_was_written_into_it() -> None:
    data = write_batch(HEADER, b'{"a":1}\n{"a":2}\n')

    assert read_header(io.BytesIO(data), "x") == HEADER


def test_a_batch_without_events_is_a_position() -> None:
    assert read_header(io.BytesIO(write_batch(HEADER, b"")), "x").position == {"stream": {"lsn": 5}}


def test_the_header_comes_without_the_events_being_read() -> None:
    data = write_batch(HEADER, b"".join(b'{"a":%d}\n' % n for n in range(200_000)))

    assert read_header(io.BytesIO(data[: len(data) // 2]), "x").number == 17


def test_names_sort_as_their_numbers_do() -> None:
    assert batch_name(9) < batch_name(10) < batch_name(10**19)
    assert batch_number(f"shop_db/{batch_name(10)}") == 10
    assert batch_number("shop_db/capture-10.jsonl.zst") is None


def zipped(text: bytes) -> bytes:
    return bytes(pa.compress(text, codec="zstd", asbytes=True))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain",
        zipped(b'{"a":1}\n'),
        zipped(b'{"polynya_capture":{}}'),
        zipped(b'{"polynya_capture":{}}\n'),
        zipped(b'{"polynya_capture":[1]}\n'),
        zipped(HEADER.line().replace(VERSION_SAID, b'"version":"1"')),
        zipped(HEADER.line().replace(b'"events":2', b'"events":-2')),
        zipped(HEADER.line().replace(b'"from":1', b'"from":9')),
        zipped(HEADER.line())[:20],
    ],
)
def test_what_is_no_batch_is_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableFileError):
        read_header(io.BytesIO(data), "x")


def test_a_batch_of_a_newer_version_waits_for_an_upgrade() -> None:
    data = zipped(HEADER.line().replace(VERSION_SAID, b'"version":3'))

    with pytest.raises(OperationError, match="has version 3") as caught:
        read_header(io.BytesIO(data), "landing/x")

    assert caught.value.code == "POLYNYA-GTW-002"
