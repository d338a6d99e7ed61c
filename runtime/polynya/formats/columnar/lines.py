"""Text in blocks of whole lines, and how many of its lines are records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from polynya.formats import limits

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
#: A line that begins with one of these may be blank.
_SUSPICIOUS = (b"\n\n", b"\n\r", b"\n ", b"\n\t")


def blocks(
    file: BinaryIO, size: int, *, begin: int = 0, end: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """Where each block begins, and its bytes: about `size`, up to the end of a line.

    Both `begin` and `end` are where a line begins. Iterating raises TooLargeError, before a line
    without an end fills the memory.
    """
    file.seek(begin)
    held = b""
    while True:
        wanted = size if end is None else min(size, end - begin - len(held))
        read = file.read(wanted) if wanted > 0 else b""
        if not read:
            break
        cut = read.rfind(b"\n") + 1
        if not cut:
            held += read
            if len(held) > limits.RECORD_BYTES:
                raise limits.refuse_record(begin)
            continue
        if held and len(held) + read.index(b"\n") >= limits.RECORD_BYTES:
            raise limits.refuse_record(begin)
        block, held = held + read[:cut], read[cut:]
        yield begin, block
        begin += len(block)
    if held:
        yield begin, held


def without_mark(block: bytes) -> bytes:
    """The first block of a file without its byte order mark."""
    return block.removeprefix(_BOM)


def count_records(block: bytes, *, at_start: bool) -> int:
    """How many records a block holds: its lines that are not blank."""
    if at_start:
        block = without_mark(block)
    if may_have_blank_lines(block):
        return sum(1 for line in block.split(b"\n") if line.strip(_BLANK))
    return block.count(b"\n") + (1 if block and not block.endswith(b"\n") else 0)


def may_have_blank_lines(block: bytes) -> bool:
    """False if every line of a block surely is a record."""
    return block[:1] in {b" ", b"\t", b"\r", b"\n"} or any(two in block for two in _SUSPICIOUS)


def records_of(block: bytes) -> Iterator[bytes]:
    """The lines of a block that are records, without their ends."""
    for line in block.split(b"\n"):
        raw = line.rstrip(b"\r")
        if raw.strip(_BLANK):
            yield raw
