"""Avro container files with logical types, checked for decompression bombs before they are decoded.

The Avro library reads and decompresses a whole block at once and trusts every count in it. So it
gets the container block by block, already decompressed and checked against limits.
"""

from __future__ import annotations

import bz2
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import cramjam
import fastavro
from fastavro.schema import SchemaParseException
from typing_extensions import override

from polynya.formats import limits
from polynya.formats.errors import TooLargeError, UnreadableFileError
from polynya.formats.records.columnar import OpenedFile, RawRecord, as_text, plain
from polynya.formats.values.exact import json_text
from polynya.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    MapType,
    Struct,
    Void,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_DEPTH = 64
#: What a damaged file makes the decoder and its codecs raise; it has no exception of its own.
DAMAGE = (
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    OverflowError,
    OSError,
    RuntimeError,
    UnicodeError,
    zlib.error,
    lzma.LZMAError,
    cramjam.DecompressionError,
    zstd.ZstdError,
    SchemaParseException,
)
_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_BUFFER_BYTES: Final = 1024 * 1024
_CODECS: Final[Mapping[str, Callable[[], Any] | None]] = {
    "null": None,
    "snappy": None,
    "deflate": lambda: zlib.decompressobj(-15),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
    "zstandard": zstd.ZstdDecompressor,
}
#: Two numbers of at most ten bytes stand before a block.
_NUMBERS_BYTES = 20
_PRIMITIVES: dict[str, DataType] = {
    "null": Void(),
    "boolean": BOOLEAN,
    "int": INT,
    "long": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BINARY,
    "fixed": BINARY,
    "enum": STRING,
}
_LOGICAL: dict[str, DataType] = {
    "date": DATE,
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": TIMESTAMP_NTZ,
    "local-timestamp-micros": TIMESTAMP_NTZ,
    "time-millis": STRING,
    "time-micros": STRING,
    "uuid": STRING,
}


@dataclass(frozen=True, slots=True)
class Most:
    """Most records and bytes of a container, decompressed; None: what its size lets expect."""

    records: int | None = None
    size: int | None = None


OF_A_FILE: Final = Most()


def open_avro(file: BinaryIO, start: int) -> OpenedFile:
    """Read an Avro file."""
    types, values = opened_avro(file)
    return OpenedFile(records_of_values(islice(values, start, None)), types)


def opened_avro(file: BinaryIO) -> tuple[Mapping[str, DataType], Iterator[Any]]:
    """The types that an Avro file declares, and its records as the library decodes them.

    Raises UnreadableFileError, as reading the records may.
    """
    try:
        reader = reader_of(file)
        types = record_types(reader.writer_schema)
    except DAMAGE as error:
        raise UnreadableFileError(f"not a whole Avro file: {error}") from error
    return types, _decoded(reader)


def reader_of(file: BinaryIO, most: Most = OF_A_FILE) -> Any:
    """The library's reader of a container whose blocks are checked before they are decoded.

    Raises what DAMAGE names, and TooLargeError; reading the records does, too.
    """
    reader = fastavro.reader(checked(file, read_header(file), most))
    check_schema(reader.writer_schema, {})
    return reader


def _decoded(reader: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from reader
    except DAMAGE as error:
        raise _damaged(error) from error


def records_of_values(values: Iterator[Any]) -> Iterator[RawRecord]:
    """Decoded records with their JSON text. Raises UnreadableFileError."""
    try:
        for value in values:
            record = as_text(value)
            yield json_text(plain(record)).encode(), record
    except DAMAGE as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> UnreadableFileError:
    return UnreadableFileError(f"damaged: {type(error).__name__} {error}")


def header_of(file: BinaryIO) -> bytes:
    """The header of a file, which ends with the mark that ends each block.

    Raises UnreadableFileError.
    """
    file.seek(0)
    try:
        return read_header(file).raw
    except ValueError as error:
        raise UnreadableFileError(f"not a whole Avro file: {error}") from error


def blocks_of(file: BinaryIO, header: bytes, begin: int) -> Iterator[tuple[int, int, int]]:
    """Where each block from one on begins, its records and its bytes; nothing is decoded.

    From a block on that is damaged all that follows is one block: reading it says what is wrong.
    """
    mark = header[-_SYNC_BYTES:]
    size = file.seek(0, io.SEEK_END)
    while begin < size:
        file.seek(begin)
        numbers = io.BytesIO(file.read(_NUMBERS_BYTES))
        try:
            records, length = _number(numbers.read), _number(numbers.read)
        except ValueError:
            records = length = -1
        end = begin + numbers.tell() + length + _SYNC_BYTES
        file.seek(max(end - _SYNC_BYTES, begin))
        if records < 0 or length < 0 or file.read(_SYNC_BYTES) != mark:
            yield begin, 1, size - begin
            return
        yield begin, records, end - begin
        begin = end


@dataclass(frozen=True, slots=True)
class ContainerHeader:
    """The header of a container.

    Attributes:
        raw: all its bytes.
        schema: the JSON text of the schema of its records.
        codec: how its blocks are compressed.
    """

    raw: bytes
    schema: bytes
    codec: str

    @property
    def mark(self) -> bytes:
        """What ends each block."""
        return self.raw[-_SYNC_BYTES:]

    @property
    def plain(self) -> bytes:
        """The header of the same container without compression."""
        name = b"avro.schema"
        schema = _number_bytes(len(name)) + name + _number_bytes(len(self.schema)) + self.schema
        return _MAGIC + _number_bytes(1) + schema + _number_bytes(0) + self.mark


def read_header(file: BinaryIO) -> ContainerHeader:
    """The header of a container; the file stands at its start, and then at its first block.

    Raises:
        ValueError: it is none, or is cut off.
        TooLargeError: it is larger than any that describes a table.
    """
    reading = _Reading(file, limits.HEADER_BYTES)
    if reading.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as a container does")
    metadata: dict[bytes, bytes] = {}
    while count := reading.number():
        if count < 0:
            count = -count
            reading.number()
        for _ in range(count):
            name = reading.take(reading.number())
            metadata[name] = reading.take(reading.number())
    reading.take(_SYNC_BYTES)
    if b"avro.schema" not in metadata:
        raise ValueError("its header has no schema")
    codec = metadata.get(b"avro.codec", b"null").decode()
    if codec not in _CODECS:
        raise ValueError(f"codec {codec!r} is not known")
    return ContainerHeader(bytes(reading.taken), metadata[b"avro.schema"], codec)


class _Reading:
    """Reads numbers and bytes of a file, up to a limit."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self.taken = bytearray()
        self._file, self._most = file, most

    def take(self, size: int) -> bytes:
        """So many bytes. Raises ValueError at the end of the file, and TooLargeError."""
        if size < 0:
            raise ValueError("a length below zero")
        if len(self.taken) + size > self._most:
            raise TooLargeError(f"its header has more than {self._most:,} bytes")
        found = self._file.read(size)
        self.taken += found
        if len(found) < size:
            raise ValueError("it is cut off in its header")
        return found

    def number(self) -> int:
        """A zigzag number of variable length."""
        return _number(self.take)


def checked(file: BinaryIO, header: ContainerHeader, most: Most = OF_A_FILE) -> BinaryIO:
    """A container as one without compression, from the block on at which the file stands.

    Reading it raises ValueError for damage, what the codecs raise, and TooLargeError.
    """
    pieces = _blocks(file, header, most)
    return io.BufferedReader(_Pieces(header.plain, pieces), _BUFFER_BYTES)


def _blocks(file: BinaryIO, header: ContainerHeader, most: Most) -> Iterator[bytes]:
    largest = min(limits.RECORD_BYTES, limits.RECORD_BYTES if most.size is None else most.size)
    records = size = read = 0
    while first := file.read(1):
        count, length = _number(file.read, first), _number(file.read)
        if count < 0 or length < 0:
            raise ValueError("a block has a length below zero")
        if length > 2 * largest:
            raise _large_block(largest)
        body = file.read(length)
        if len(body) < length or file.read(_SYNC_BYTES) != header.mark:
            raise ValueError("expected sync marker not found")
        data = _expanded(header.codec, body, largest)
        if count > len(data):
            raise TooLargeError(
                f"a block of {len(data):,} bytes says that it has {count:,} records: "
                "records that take no bytes could be any number"
            )
        records, size, read = records + count, size + len(data), read + length
        _check(records, size, read, most)
        yield b"".join((_number_bytes(count), _number_bytes(len(data)), data, header.mark))


def _check(records: int, size: int, read: int, most: Most) -> None:
    """Refuse a container whose first `read` bytes hold too much."""
    if most.records is not None and records > most.records:
        raise TooLargeError(f"more than {most.records:,} records in one message")
    if most.size is not None and size > most.size:
        raise TooLargeError(f"an Avro container of more than {most.size:,} bytes, decompressed")
    if most.size is None and size > limits.content_bytes(read):
        raise limits.refuse_content("an Avro file", read)


def _expanded(codec: str, body: bytes, most: int) -> bytes:
    """The content of a block, at most so many bytes."""
    if codec == "snappy":
        packed, sent = body[:-4], body[-4:]
        if cramjam.snappy.decompress_raw_len(packed) > most:
            raise _large_block(most)
        found = bytes(cramjam.snappy.decompress_raw(packed))
        if zlib.crc32(found) != int.from_bytes(sent, "big"):
            raise ValueError("the checksum of a block is wrong")
        return found
    make = _CODECS[codec]
    data = body if make is None else _in_streams(make, body, most)
    if len(data) > most:
        raise _large_block(most)
    return data


def _in_streams(make: Callable[[], Any], body: bytes, most: int) -> bytes:
    """The content of streams one after the other, or more than `most` bytes of it."""
    found: list[bytes] = []
    size = 0
    while body and size <= most:
        stream = make()
        piece = stream.decompress(body, most + 1 - size)
        found.append(piece)
        size += len(piece)
        if size <= most and not stream.eof:
            raise ValueError("a block is cut off")
        # Raw deflate is one stream, and some writers leave bytes of its checksum behind it.
        body = b"" if make is _CODECS["deflate"] else stream.unused_data
    return b"".join(found)


def _large_block(most: int) -> TooLargeError:
    return TooLargeError(f"a block of more than {most:,} bytes, decompressed")


class _Pieces(io.RawIOBase):
    """Pieces as one file, which is read from its start to its end. The first one comes alone."""

    def __init__(self, first: bytes, pieces: Iterator[bytes]) -> None:
        self._held = memoryview(first)
        self._pieces = pieces

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._held:
            self._held = memoryview(next(self._pieces, b""))
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        return size


def _number(read: Callable[[int], bytes], byte: bytes = b"") -> int:
    """A zigzag number of variable length, of which the first byte may be there already."""
    found = 0
    for shift in range(0, 70, 7):
        byte = byte or read(1)
        if not byte:
            break
        found |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (found >> 1) ^ -(found & 1)
        byte = b""
    raise ValueError("a number is cut off or too long")


def _number_bytes(value: int) -> bytes:
    """A number above zero as `_number` reads it."""
    value, found = value << 1, bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def check_schema(schema: Any, others: Mapping[str, Any]) -> None:
    """Refuse a schema of which a few bytes stand for any number of fields or values.

    Raises:
        ValueError: an array has items that take no bytes, or types are nested too deeply.
        TooLargeError: it has more fields than can be meant, those of types with a name at each
            place where these are used.
    """
    check = _Check({**others, **named_types(schema)})
    check.walk(schema, 0)
    limits.check_columns(check.fields(schema, 0))


class _Check:
    """A walk over the types of a schema, those with a name once."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._seen: set[str] = set()
        self._empty: dict[str, bool] = {}
        self._sizes: dict[str, int] = {}

    def walk(self, schema: Any, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ValueError("the schema is nested too deeply")
        if isinstance(schema, list):
            for branch in schema:
                self.walk(branch, depth + 1)
        elif isinstance(schema, str):
            if schema in self._named and schema not in self._seen:
                self._seen.add(schema)
                self.walk(self._named[schema], depth + 1)
        elif isinstance(schema, Mapping):
            for item in schema.get("fields", ()):
                self.walk(item["type"], depth + 1)
            if "items" in schema and self._takes_no_bytes(schema["items"], 0):
                raise ValueError("an array has items that take no bytes")
            for inner in ("items", "values", "type"):
                if isinstance(schema.get(inner), list | Mapping) or inner != "type":
                    self.walk(schema.get(inner), depth + 1)

    def fields(self, schema: Any, depth: int) -> int:
        """How many fields a type has, at all depths."""
        if depth > MAX_DEPTH:
            return 0
        if isinstance(schema, str):
            if schema in self._named and schema not in self._sizes:
                # One that contains itself is refused by whoever makes a table of it.
                self._sizes[schema] = 0
                self._sizes[schema] = self.fields(self._named[schema], depth + 1)
            return self._sizes.get(schema, 0)
        if isinstance(schema, list):
            return sum(self.fields(branch, depth + 1) for branch in schema)
        if not isinstance(schema, Mapping):
            return 0
        own = sum(1 + self.fields(item["type"], depth + 1) for item in schema.get("fields", ()))
        inner = (schema[key] for key in ("items", "values", "type") if key in schema)
        return own + sum(self.fields(part, depth + 1) for part in inner)

    def _takes_no_bytes(self, schema: Any, depth: int) -> bool:
        if depth > MAX_DEPTH:
            return False
        if isinstance(schema, str):
            if schema not in self._named:
                return schema == "null"
            if schema not in self._empty:
                # One that contains itself cannot be empty.
                self._empty[schema] = False
                self._empty[schema] = self._takes_no_bytes(self._named[schema], depth + 1)
            return self._empty[schema]
        if not isinstance(schema, Mapping):
            return False
        kind = schema.get("type")
        if kind == "record":
            return all(self._takes_no_bytes(item["type"], depth + 1) for item in schema["fields"])
        if kind == "fixed":
            return int(schema["size"]) == 0
        return kind not in {"array", "map", "enum"} and self._takes_no_bytes(kind, depth + 1)


def record_types(
    schema: Any, others: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, DataType]:
    """The column types of a record schema. Raises ValueError when it has no counterpart.

    `others` are types of other schemas that it uses by name.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "record":
        raise ValueError("the file does not hold records")
    named = {**others, **named_types(schema)}
    return {item["name"]: _type(item["type"], named, 0) for item in schema["fields"]}


def named_types(schema: Any) -> dict[str, Any]:
    """The types that a schema may use by name, also before their place comes in a walk."""
    named: dict[str, Any] = {}
    _collect(schema, named)
    return named


def _collect(schema: Any, named: dict[str, Any]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, named)
    elif isinstance(schema, Mapping):
        if "name" in schema and schema.get("type") in {"record", "enum", "fixed", "error"}:
            named[schema["name"]] = schema
        for item in schema.get("fields", ()):
            _collect(item["type"], named)
        for inner in ("items", "values", "type"):
            if isinstance(schema.get(inner), list | Mapping):
                _collect(schema[inner], named)


def _type(schema: Any, named: Mapping[str, Any], depth: int) -> DataType:
    if depth > MAX_DEPTH:
        raise ValueError("a recursive schema has no table form")
    if isinstance(schema, list):
        return _union(schema, named, depth)
    if isinstance(schema, str):
        return (
            _PRIMITIVES[schema] if schema in _PRIMITIVES else _type(named[schema], named, depth + 1)
        )
    kind = schema["type"]
    if schema.get("logicalType") == "decimal":
        return Decimal(int(schema["precision"]), int(schema.get("scale", 0)))
    if schema.get("logicalType") in _LOGICAL:
        return _LOGICAL[schema["logicalType"]]
    if kind == "record":
        fields = (
            (item["name"], _type(item["type"], named, depth + 1)) for item in schema["fields"]
        )
        return Struct(tuple(fields))
    if kind == "array":
        return Array(_type(schema["items"], named, depth + 1))
    if kind == "map":
        return MapType(STRING, _type(schema["values"], named, depth + 1))
    return _type(kind, named, depth + 1)


def _union(branches: list[Any], named: Mapping[str, Any], depth: int) -> DataType:
    kinds = {_type(branch, named, depth + 1) for branch in branches if branch != "null"}
    if len(kinds) > 1:
        # A union of several types: the values decide, as in JSON.
        return Void()
    return kinds.pop() if kinds else Void()
