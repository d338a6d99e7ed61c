"""JSON lines: one object a line; blank lines are no records, a byte order mark is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import BinaryIO

from polynya.formats import limits
from polynya.formats.errors import RecordError
from polynya.formats.records.json_text import parse_object
from polynya.formats.records.opened import OpenedFile, RawRecord
from polynya.formats.records.sizes import check_values, check_width

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"


def raw_lines(file: BinaryIO, begin: int = 0) -> Iterator[bytes]:
    """The lines of a file with their ends; it stands at byte `begin`.

    Iterating raises TooLargeError, before a line without an end fills the memory.
    """
    most = limits.RECORD_BYTES
    for line in iter(partial(file.readline, most + 1), b""):
        if len(line) > most:
            raise limits.refuse_record(begin)
        yield line
        begin += len(line)


def lines(file: BinaryIO, start: int = 0) -> Iterator[bytes]:
    """The lines that are records, from the `start`-th on, without their line ends.

    Iterating raises TooLargeError.
    """
    return islice(_all_lines(file), start, None)


def _all_lines(file: BinaryIO) -> Iterator[bytes]:
    first = True
    for line in raw_lines(file):
        raw = line.rstrip(b"\r\n")
        if first:
            first = False
            raw = raw.removeprefix(_BOM)
        if raw.strip(_BLANK):
            yield raw


def open_json(file: BinaryIO, start: int) -> OpenedFile:
    """Read a file of JSON lines."""
    return OpenedFile(_records(file, start))


def _records(file: BinaryIO, start: int) -> Iterator[RawRecord]:
    return map(parsed, lines(file, start))


def parsed(raw: bytes) -> RawRecord:
    """A line as a record, or with why it is none."""
    try:
        if len(raw) <= limits.FEW_BYTES:
            return raw, parse_object(raw)
        check_values(raw)
        record = parse_object(raw)
        check_width(record)
        return raw, record
    except RecordError as error:
        return raw, error
