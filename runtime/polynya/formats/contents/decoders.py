"""From a content type to its decoder; Parquet, ORC and detected content."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from typing import BinaryIO

import pyarrow as pa
from pyarrow import orc, parquet
from typing_extensions import override

from polynya.formats import limits
from polynya.formats.contents.avro import ContainerDecoder, DatumDecoder, RegistryDecoder
from polynya.formats.contents.decoded import Decoded, Decoder, Item, OneByOne, too_many
from polynya.formats.contents.text import JsonDecoder, RegexDecoder, SeparatedDecoder, SplitDecoder
from polynya.formats.contents.xml import XmlDecoder
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.columnar import OpenedFile, open_orc, open_parquet
from polynya.model.config.settings import SchemaRegistry
from polynya.model.config.stream_content import (
    AutoContent,
    AvroContent,
    Content,
    CsvContent,
    JsonContent,
    LandedContent,
    LandedRegistryAvroContent,
    OrcContent,
    ParquetContent,
    RegexContent,
    RegistryAvroContent,
    SplitLinesContent,
    TsvContent,
    XmlContent,
)
from polynya.model.error_catalogue.stream_sources import SCHEMA_REGISTRY_NOT_NAMED
from polynya.model.names import shown
from polynya.store.schema_registry import HttpSchemaRegistry
from polynya.store.vault import vault


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

    @override
    def one(self, message: bytes) -> Decoded:
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


class AutoDecoder(OneByOne):
    """Whatever a message begins like."""

    def __init__(self) -> None:
        self._avro, self._parquet, self._json = ContainerDecoder(), parquet_decoder(), JsonDecoder()

    @override
    def one(self, message: bytes) -> Decoded:
        if message.startswith(b"Obj\x01"):
            return self._avro.one(message)
        if message.startswith(b"PAR1"):
            return self._parquet.one(message)
        return self._json.one(message)


def decoder_of(  # noqa: PLR0911
    content: Content | LandedContent, access: SchemaRegistry | None = None
) -> Decoder:
    """The decoder of a content.

    `access` is the registry of the project's settings. No other one is asked: a content that
    landed may be anybody's.

    Raises:
        OperationError: POLYNYA-STR-021, a pattern or a schema cannot be used; or the settings name
            no registry (POLYNYA-STR-091).
    """
    match content:
        case JsonContent():
            return JsonDecoder()
        case CsvContent() | TsvContent():
            return SeparatedDecoder(content)
        case AvroContent(schema_=None):
            return ContainerDecoder()
        case AvroContent():
            return DatumDecoder(str(content.schema_))
        case RegistryAvroContent() | LandedRegistryAvroContent():
            return RegistryDecoder(registry_at(access, content))
        case ParquetContent():
            return parquet_decoder()
        case OrcContent():
            return orc_decoder()
        case XmlContent():
            return XmlDecoder(content)
        case RegexContent():
            return RegexDecoder(content)
        case SplitLinesContent():
            return SplitDecoder(content)
        case AutoContent():
            return AutoDecoder()


def registry_at(
    access: SchemaRegistry | None, content: RegistryAvroContent | LandedRegistryAvroContent
) -> HttpSchemaRegistry:
    """The registry that the settings name, with what was learnt from it.

    Raises:
        OperationError: POLYNYA-STR-091, they name none.
        DependencyError: POLYNYA-STR-090, its login cannot be read.
    """
    if access is None:
        url = shown(content.schema_registry.url)
        raise SCHEMA_REGISTRY_NOT_NAMED(where=f"the landed batch names {url}, which is not asked")
    secrets = vault()
    user = None if access.user is None else secrets.open(access.user).text
    password = None
    if access.password is not None:
        password = secrets.open(access.password.get_secret_value()).text
    return _registry(access.url, user, password)


@lru_cache(maxsize=64)
def _registry(url: str, user: str | None, password: str | None) -> HttpSchemaRegistry:
    return HttpSchemaRegistry(url, user, password)
