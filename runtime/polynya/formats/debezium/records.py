"""The records of a file of a capture: JSON lines, or an Avro container, told by its first bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, Final

from polynya.formats.debezium.avro import open_connect_avro
from polynya.formats.records.json_lines import open_json
from polynya.formats.records.opened import RawRecord

_AVRO: Final = b"Obj\x01"


def records_of(file: BinaryIO, start: int) -> Iterator[RawRecord]:
    """The records from the `start`-th on; iterating may raise UnreadableFileError."""
    magic = file.read(len(_AVRO))
    file.seek(0)
    if magic == _AVRO:
        return open_connect_avro(file, start)
    return open_json(file, start).records


def record_of(raw: bytes) -> RawRecord:
    """A record from its raw bytes, which are JSON for every kind of file."""
    (record,) = open_json(io.BytesIO(raw), 0).records
    return record
