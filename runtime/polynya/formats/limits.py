"""What a record, a message and a landed file may be: one place for limits on input.

A few landed bytes can stand for any amount of memory, disk and time. Readers check these limits
before they pay. Tests set smaller ones, so read them as attributes of this module.
"""

from __future__ import annotations

from polynya.formats.errors import TooLargeError

#: Most bytes of one record: a line, the lines of a quoted field, a block of Avro, decompressed.
RECORD_BYTES = 64 * 1024 * 1024


def refuse_record(begin: int) -> TooLargeError:
    """Why a file is refused that has too large a record, which begins at a byte."""
    return TooLargeError(
        f"a record of more than {RECORD_BYTES:,} bytes begins at byte {begin:,}; "
        "where quotes have a meaning, one that is never closed makes such a record"
    )
