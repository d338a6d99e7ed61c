"""Batches of a capture whose rows are chunks of a load: what is read together, and as what."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from polynya.formats.batch import BatchLimits, LoadPart
from polynya.formats.debezium.captured import (
    CaptureHeader,
    EventSchema,
    LoadChunk,
    batch_name,
    header_of,
    write_batch,
)
from polynya.formats.errors import UnreadableFileError
from polynya.model.config.dataset import DELETING
from tests.formats.debezium.builders import an_event, read_capture
from tests.formats.debezium.test_reading import envelope
from tests.formats.helpers import column

#: Numbers of rows; a load that they are of, its chunk, and whether that is the last.
Chunk = tuple[list[int], int, int, bool]


def chunk_file(number: int, ids: list[int], chunk: LoadChunk | None, table: str = "w.t") -> bytes:
    """A batch with rows of one table; without any, one that holds a position alone."""
    header = CaptureHeader(
        "shop_db",
        number,
        datetime(2026, 1, 1, tzinfo=UTC),
        len(ids),
        {},
        {table: [EventSchema(1, envelope(id="int64"))]},
        loads={} if chunk is None else {table: chunk},
    )
    events = [an_event("r", {"id": n}, key={"id": n}) for n in ids]
    return write_batch(header, b"".join(json.dumps(one).encode() + b"\n" for one in events))


def landed(*chunks: Chunk | list[int]) -> dict[str, bytes]:
    """Batches by path; a list has rows that are events."""
    files = {}
    for number, one in enumerate(chunks, 1):
        if isinstance(one, list):
            data = chunk_file(number, one, None)
        else:
            ids, load, chunk, is_last = one
            data = chunk_file(number, ids, LoadChunk(load, chunk, is_last, DELETING))
        files[f"shop_db/{batch_name(number)}"] = data
    return files


@pytest.mark.parametrize(
    ("files", "ids", "part"),
    [
        ([([1], 7, 1, False), ([2], 7, 2, True)], [1, 2], (7, 1, 2, True)),
        ([([1], 7, 1, False), [], ([2], 7, 2, False)], [1, 2], (7, 1, 2, False)),
        ([([1], 7, 1, False), ([2], 8, 1, True)], [1], (7, 1, 1, False)),
        ([([1], 7, 1, False), ([3], 7, 3, True)], [1], (7, 1, 1, False)),
        ([([1], 7, 1, True), [2]], [1], (7, 1, 1, True)),
        ([[1], ([2], 7, 1, True)], [1], None),
        ([[], ([2], 7, 1, True)], [2], (7, 1, 1, True)),
    ],
    ids=[
        "chunks of a load",
        "a batch with a position alone between them",
        "another load",
        "a chunk is missing",
        "events behind a load",
        "events before a load",
        "a position before a load",
    ],
)
def test_a_batch_has_rows_of_one_load_or_events(
    files: list[Any], ids: list[int], part: tuple[int, int, int, bool] | None
) -> None:
    batch = read_capture(landed(*files)).datasets["w.t"]

    assert column(batch, "id") == ids
    assert batch.part == (None if part is None else LoadPart(*part, mode=DELETING))


def test_a_chunk_that_was_read_in_part_is_not_complete() -> None:
    files = landed(([1, 2, 3], 7, 1, True))
    (path,) = files

    first = read_capture(files, limits=BatchLimits(max_rows=3)).datasets["w.t"]
    rest = read_capture(files, starts={path: 3}).datasets["w.t"]

    assert (column(first, "id"), first.part) == ([1, 2], LoadPart(7, 1, 0, False, DELETING))
    assert (column(rest, "id"), rest.part) == ([3], LoadPart(7, 1, 1, True, DELETING))


@pytest.mark.parametrize(
    "chunk",
    [
        {"load": -1, "chunk": 1, "is_last": True, "mode": DELETING},
        {"load": 1, "chunk": "1", "is_last": True, "mode": DELETING},
        {"load": 1, "chunk": 1, "is_last": "yes", "mode": DELETING},
        {"load": 1, "chunk": 1, "is_last": True, "mode": "drop"},
        {"load": 1, "chunk": 1, "is_last": True},
        [],
    ],
)
def test_a_header_with_a_chunk_that_is_none_cannot_be_read(chunk: object) -> None:
    header = CaptureHeader("shop_db", 1, datetime(2026, 1, 1, tzinfo=UTC), 0)
    line = json.loads(header.line())
    (mark,) = line
    line[mark]["loads"] = {"w.t": chunk}

    with pytest.raises(UnreadableFileError):
        header_of(json.dumps(line).encode(), "shop_db/1")
