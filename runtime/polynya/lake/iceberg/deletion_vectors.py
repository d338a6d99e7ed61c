"""Deletion vectors of format v3 as bytes: a bitmap per data file, in one Puffin file.

The Iceberg specification defines both layouts ("Deletion Vectors" in the table specification,
"Puffin file format"). Polynya encodes them itself instead of calling Iceberg's classes, so that no
position crosses py4j and vectors work wherever Arrow reads and writes
(docs/adr/0016-deleted-rows.md).
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64

_MAGIC: Final = b"\xd1\xd3\x39\x64"
_PUFFIN: Final = b"PFA1"
#: The field id that Iceberg reserves for the position of a row.
_POSITION_ID: Final = 2147483645


@dataclass(frozen=True, slots=True)
class Blob:
    """The vector of one data file in a Puffin file: where it is, and how many rows it names."""

    data_file: str
    offset: int
    size: int
    rows: int


def encoded(positions: pa.Array) -> bytes:
    """Positions of rows, int64 without NULL, as the blob of a deletion vector."""
    numbers = array("Q")
    begin, end = (8 * at for at in (positions.offset, positions.offset + len(positions)))
    numbers.frombytes(memoryview(positions.buffers()[1])[begin:end])
    bitmap = BitMap64(numbers)
    bitmap.run_optimize()
    vector = _MAGIC + bitmap.serialize()
    return len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")


def decoded(blob: bytes) -> pa.Array:
    """Positions of a deletion vector, int64, ascending. Raises ArrowInvalid when damaged."""
    vector = blob[4:-4]
    stored = int.from_bytes(blob[:4], "big"), int.from_bytes(blob[-4:], "big")
    if stored != (len(vector), zlib.crc32(vector)) or not vector.startswith(_MAGIC):
        raise pa.ArrowInvalid("a deletion vector is damaged: its length or checksum is another")
    numbers = BitMap64.deserialize(vector[len(_MAGIC) :]).to_array()
    buffers = [None, pa.py_buffer(numbers)]
    return pa.Array.from_buffers(pa.uint64(), len(numbers), buffers).cast(pa.int64())


def puffin(vectors: Sequence[tuple[str, pa.Array]]) -> tuple[bytes, list[Blob]]:
    """A Puffin file of the positions of each data file, and where each is in it."""
    content, blobs = bytearray(_PUFFIN), []
    for data_file, positions in vectors:
        blob = encoded(positions)
        blobs.append(Blob(data_file, len(content), len(blob), len(positions)))
        content += blob
    footer = json.dumps({"blobs": [_described(blob) for blob in blobs], "properties": {}}).encode()
    # The four bytes in between are flags; none is set.
    content += _PUFFIN + footer + len(footer).to_bytes(4, "little") + bytes(4) + _PUFFIN
    return bytes(content), blobs


def _described(blob: Blob) -> dict[str, object]:
    return {
        "type": "deletion-vector-v1",
        "fields": [_POSITION_ID],
        # Both are inherited from the commit.
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": blob.offset,
        "length": blob.size,
        "properties": {"referenced-data-file": blob.data_file, "cardinality": str(blob.rows)},
    }
