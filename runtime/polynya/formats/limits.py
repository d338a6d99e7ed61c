"""Limits on input: the largest record, message and landed file.

A few landed bytes can expand to any amount of memory, disk and time. Readers check these limits
before they allocate. Tests set smaller limits, so read them as attributes: `limits.NAME`.
"""

from __future__ import annotations

from polynya.formats.errors import TooLargeError

#: Most bytes of one record: a line, the lines of a quoted field, a block of Avro, decompressed.
RECORD_BYTES = 64 * 1024 * 1024
#: Most fields of one record, each of which may become a column. Fewer bytes than `FEW_BYTES` hold
#: fewer fields.
RECORD_FIELDS = 10_000
FEW_BYTES = 4 * RECORD_FIELDS
#: Most values of one JSON record or message. In memory each takes far more than its bytes.
RECORD_VALUES = 4_000_000

#: A file may expand to `SMALL_BYTES` whatever its size, beyond that to `RATIO` times its size, and
#: never to more than `CONTENT_BYTES`. Text that compresses well becomes 20 to 100 times as large.
SMALL_BYTES = 128 * 1024 * 1024
RATIO = 200
CONTENT_BYTES = 64 * 1024**3
#: Most rows of a Parquet or ORC file that has less than a byte for `RATIO` of them.
SMALL_ROWS = 2_000_000
#: Most values of lists and maps in such a file, which can be more than its rows.
SMALL_VALUES = 20_000_000
#: Most values of all its other columns together.
SMALL_CELLS = 200_000_000
#: Most bytes of the header of an Avro file, which holds its schema.
HEADER_BYTES = 4 * 1024 * 1024

#: Most bytes that one message may expand to, and most records and values in it.
MESSAGE_BYTES = 64 * 1024 * 1024
MESSAGE_RECORDS = 2_000_000
MESSAGE_VALUES = 20_000_000
#: Most schemas of a registry that the schema of a message may refer to.
MESSAGE_REFERENCES = 200
#: Most elements and attributes of one XML message.
MESSAGE_ELEMENTS = 2_000_000


def content_bytes(size: int) -> int:
    """Most bytes that a file of `size` bytes may expand to."""
    return min(max(SMALL_BYTES, RATIO * size), CONTENT_BYTES)


def refuse_content(kind: str, size: int) -> TooLargeError:
    """Why a file of `size` bytes is refused that expands to too much."""
    return TooLargeError(
        f"{kind} of {size:,} bytes holds more than {content_bytes(size):,} bytes; "
        "if these are meant, land them uncompressed or in several files"
    )


def refuse_record(begin: int) -> TooLargeError:
    """Why a file is refused that has too large a record, which begins at a byte."""
    return TooLargeError(
        f"a record of more than {RECORD_BYTES:,} bytes begins at byte {begin:,}; "
        "where quotes have a meaning, one that is never closed makes such a record, and a JSON "
        "document on one line is one unless `record_path` is set"
    )


def check_columns(count: int) -> None:
    """Refuse a file that declares more columns than can be meant. Raises TooLargeError."""
    if count > RECORD_FIELDS:
        raise TooLargeError(f"it has {count:,} columns, at most {RECORD_FIELDS:,} are read")


def check_rows(rows: int, columns: int, size: int) -> None:
    """Refuse a columnar file of `size` bytes that says it has far more than they can hold.

    Raises TooLargeError.
    """
    check_columns(columns)
    _check(rows, "rows", max(SMALL_ROWS, RATIO * size), size)
    _check(rows * columns, "values", max(SMALL_CELLS, RATIO * size), size)


def check_nested(values: int, size: int) -> None:
    """Likewise for the values of its lists and maps."""
    _check(values, "values in lists and maps", max(SMALL_VALUES, RATIO * size), size)


def _check(count: int, what: str, most: int, size: int) -> None:
    if count > most:
        raise TooLargeError(
            f"a file of {size:,} bytes says that it has {count:,} {what}, at most {most:,} are read"
        )
