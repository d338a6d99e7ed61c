"""Parquet and ORC: a message is a whole file."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO

import pyarrow as pa
from pyarrow import orc, parquet

from polynya.formats import limits
from polynya.formats.contents.decoded import Decoded, Item, OneByOne, too_many
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.columnar import open_orc, open_parquet
from polynya.formats.records.opened import OpenedFile


class ColumnarDecoder(OneByOne):
    """Files of columns with their types."""

    is_typed = True

    def __init__(
        self,
        rule: str,
        opened: Callable[[BinaryIO, int], OpenedFile],
        check: Callable[[bytes], None],
    ) -> None:
        self._rule, self._opened, self._check = rule, opened, check

    def one(self, message: bytes) -> Decoded:
        """See `OneByOne`."""
        raws: list[bytes] = []
        items: list[Item] = []
        try:
            self._check(message)
            opened = self._opened(io.BytesIO(message), 0)
            for raw, item in opened.records:
                raws.append(raw)
                items.append(item)
        except UnreadableFileError as error:
            raise RecordError(self._rule, str(error)) from error
        return Decoded(items, opened.types, raws.__getitem__, is_spelled=True)


def parquet_decoder() -> ColumnarDecoder:
    """Decodes Parquet files."""
    return ColumnarDecoder("bad_parquet", open_parquet, _check_parquet)


def orc_decoder() -> ColumnarDecoder:
    """Decodes ORC files."""
    return ColumnarDecoder("bad_orc", open_orc, _check_orc)


def _check_parquet(message: bytes) -> None:
    """Refuse a file that says that it expands to more than a message may."""
    try:
        metadata = parquet.read_metadata(io.BytesIO(message))
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        size = sum(max(group.total_byte_size, 0) for group in groups)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"not a whole Parquet file: {error}") from error
    _refuse_large(metadata.num_rows, metadata.num_columns)
    if size > limits.MESSAGE_BYTES:
        raise RecordError("too_large", f"a Parquet file of {size:,} bytes, decompressed")


def _check_orc(message: bytes) -> None:
    try:
        reader = orc.ORCFile(io.BytesIO(message))
        rows, columns = reader.nrows, len(reader.schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(f"not a whole ORC file: {error}") from error
    _refuse_large(rows, columns)


def _refuse_large(rows: int, columns: int) -> None:
    if rows > limits.MESSAGE_RECORDS:
        raise too_many()
    if rows * columns > limits.MESSAGE_VALUES:
        raise RecordError("too_large", f"{rows:,} rows of {columns:,} columns in one message")
