"""Blocks of plain JSON lines as Arrow columns.

Arrow's reader is fast but accepts input that the exact reader rejects. So a block goes to Arrow,
and its result counts, only under these conditions: every line is one object in UTF-8, no key occurs
twice, every value has the type of its column, and every number keeps the value that was written.
`None` sends the block to the exact reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from polynya.formats import limits
from polynya.formats.columnar import typed
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.times import instants_of
from polynya.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Array,
    DataType,
    Decimal,
    Struct,
    Void,
)

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


#: Values that a double may not hold as they are written: long numbers, and those with an exponent.
#: What a pattern begins with decides how fast it is, so keys are expected to end at the colon.
_LONG = re.compile(rb'":[ \t\r]*+([-0-9](?:[0-9.]{15}|[0-9.]*+[eE])[-+0-9.eE]*)')
_SPACED = (b'" ', b'"\t', b'"\r')
_LONG_SPACED = re.compile(rb":[ \t\r]*+([-0-9](?:[0-9.]{15}|[0-9.]*+[eE])[-+0-9.eE]*)")
_EXACT_INTEGERS = float(1 << 53)
_MINUS_ZERO = -(1 << 63)
#: The same, and some that are none of it: what it does not match needs no other look.
_MAYBE_LONG = r":[ \t\r]*[-0-9](?:[0-9.]{15}|[0-9.]*[eE])"
#: What Arrow says of the line that it cannot read.
_ROW = re.compile(r" in row (\d+)$")
_DAY = r"^\d{4}-\d\d-\d\d$"
#: Columns of these types are read as they are; times and days as their text.
_READ: dict[DataType, pa.DataType] = {
    **{kind: arrow_type(kind) for kind in (BOOLEAN, INT, BIGINT, DOUBLE, STRING)},
    TIMESTAMP: pa.string(),
    DATE: pa.string(),
    # Nothing but NULLs so far.
    Void(): pa.null(),
}


def typed_lines(
    block: bytes,
    schema: Mapping[str, DataType],
    declared: Collection[str],
    odd: list[int] | None = None,
) -> dict[str, pa.Array] | None:
    """The columns of a block of whole lines, None when it has to be read exactly.

    Args:
        block: the lines.
        schema: types of the columns.
        declared: columns whose type the settings say.
        odd: gets the number of the line that is to blame, where that is known.
    """
    if not reads(schema, declared):
        return None
    records = _plain_lines(block)
    if records is None or (_has_doubles(schema) and not _is_spelled_exactly(block)):
        return None
    return _columns(pa.py_buffer(block), records, schema, odd)


def typed_objects(
    objects: pa.BinaryArray,
    text: pa.Buffer,
    schema: Mapping[str, DataType],
    odd: list[int] | None = None,
) -> dict[str, pa.Array] | None:
    """The same of objects that begin with a brace and end with one, and of the lines of them.

    Raises pa.ArrowInvalid for one that is not in UTF-8.
    """
    objects.cast(pa.string())
    if _has_doubles(schema):
        may_be_long = objects.filter(pc.match_substring_regex(objects, _MAYBE_LONG))
        if len(may_be_long) and not _is_spelled_exactly(b"\n".join(may_be_long.to_pylist())):
            return None
    return _columns(text, len(objects), schema, odd)


def _columns(
    text: pa.Buffer, records: int, schema: Mapping[str, DataType], odd: list[int] | None
) -> dict[str, pa.Array] | None:
    rows = _read(text, schema, odd)
    if rows is None or rows.num_rows != records:
        return None
    found = {name: _column(one_array(rows.column(name)), kind) for name, kind in schema.items()}
    return None if any(column is None for column in found.values()) else found


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column in one piece, which are copied only where they are in several."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def reads(schema: Mapping[str, DataType], declared: Collection[str]) -> bool:
    """Whether columns of these types can be read so at all; see `typed_lines`."""
    return all(_is_read(kind, declared=name in declared) for name, kind in schema.items())


def _is_read(kind: DataType, *, declared: bool) -> bool:
    # A decimal that was not declared takes no text, and Arrow would read it.
    return _read_as(kind) is not None or (declared and isinstance(kind, Decimal))


def _read_as(kind: DataType) -> pa.DataType | None:
    """The type that values of a type are read as, None when they are not."""
    match kind:
        case Struct(()):
            # Only empty objects so far, which are texts.
            return None
        case Struct(fields):
            inner = [(name, _read_as(one)) for name, one in fields]
            known = [pa.field(name, one) for name, one in inner if one is not None]
            return pa.struct(known) if len(known) == len(inner) else None
        case Array(element):
            # Numbers without a key are not looked for by `_is_spelled_exactly`.
            one = None if _is_double(element) else _read_as(element)
            return None if one is None else pa.list_(pa.field("element", one))
        case _:
            return _READ.get(kind)


def _is_double(kind: DataType) -> bool:
    return kind == DOUBLE or (isinstance(kind, Array) and _is_double(kind.element))


def _has_double(kind: DataType) -> bool:
    match kind:
        case Struct(fields):
            return any(_has_double(one) for _, one in fields)
        case Array(element):
            return _has_double(element)
        case _:
            return kind == DOUBLE


def is_met(name: str, column: pa.Array, text: bytes | pa.Buffer) -> bool:
    """Whether lines have a column, be it with NULLs only. `column` is what was read of it."""
    if column.null_count < len(column):
        return True
    key = re.escape(json.dumps(name, ensure_ascii=False).encode())
    return re.search(key + rb"[ \t\r]*:", text) is not None


def _plain_lines(block: bytes) -> int | None:
    """How many lines there are, when each surely is one object or none at all.

    Each begins with a brace and ends with one: an object that goes on in the next line would need
    a comma, colon or bracket between them.
    """
    text = block.rstrip(b"\r\n")
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return None
    ends = text.count(b"\n")
    if text.count(b"}\n{") != ends and text.count(b"}\r\n{") != ends:
        return None
    if not block.isascii():
        try:
            block.decode("utf-8")
        except UnicodeDecodeError:
            return None
    return ends + 1


def _has_doubles(known: Mapping[str, DataType]) -> bool:
    return any(map(_has_double, known.values()))


def _is_spelled_exactly(block: bytes) -> bool:
    """Whether every number can be held by a double without a change."""
    # A search for one byte is several times as fast as one for two.
    spaced = any(two[1:] in block and two in block for two in _SPACED)
    texts = (_LONG_SPACED if spaced else _LONG).findall(block)
    if not texts:
        return True
    spelled = b",".join(texts).decode("ascii").split(",")
    try:
        return list(map(repr, map(float, spelled))) == spelled
    except ValueError:
        return False


def _read(text: pa.Buffer, known: Mapping[str, DataType], odd: list[int] | None) -> pa.Table | None:
    fields = [pa.field(name, _read_as(kind) or arrow_type(kind)) for name, kind in known.items()]
    try:
        return arrow_json.read_json(
            pa.BufferReader(text),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=text.size + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=pa.schema(fields), unexpected_field_behavior="error"
            ),
        )
    except pa.ArrowException as error:
        row = _ROW.search(str(error))
        if odd is not None and row is not None:
            odd.append(int(row[1]))
        return None


def _column(column: Any, kind: DataType) -> pa.Array | None:
    match kind:
        case Void():
            return pa.nulls(len(column), pa.string())
        case Struct():
            return _struct(column, kind)
        case Array(element):
            values = _column(column.values, element)
            if values is None:
                return None
            mask = column.is_null()
            kept = {"type": arrow_type(kind), "mask": mask}
            return pa.ListArray.from_arrays(column.offsets, values, **kept)
        case _:
            return _leaf(column, kind)


def _struct(column: Any, kind: Struct) -> pa.Array | None:
    inner = [_column(column.field(at), one) for at, (_, one) in enumerate(kind.fields)]
    if any(kind is None for kind in inner):
        return None
    fields = list(arrow_type(kind))
    return pa.StructArray.from_arrays(inner, fields=fields, mask=column.is_null())


def _leaf(column: Any, kind: DataType) -> pa.Array | None:
    if kind == TIMESTAMP:
        return instants_of(column)
    if kind == DATE:
        return _days(column)
    if kind == DOUBLE and not _are_exact(column):
        return None
    if isinstance(kind, Decimal) and not _fits(column):
        return None
    return column


def _fits(decimals: pa.Array) -> bool:
    """Whether no number has more digits than its type: Arrow reads them all the same."""
    try:
        decimals.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _are_exact(doubles: pa.Array) -> bool:
    """Whether the exact reader would read the same.

    That is no NaN, no integer that a double cannot hold, and no negative zero, which as an integer
    is just zero.
    """
    size = pc.abs(doubles)
    sound = pc.and_(pc.is_finite(doubles), pc.less(size, _EXACT_INTEGERS))
    minus = pc.equal(doubles.view(pa.int64()), _MINUS_ZERO)
    return bool(pc.all(sound, min_count=0).as_py() and not pc.any(minus, min_count=0).as_py())


def _days(texts: pa.Array) -> pa.Array | None:
    if not pc.all(pc.match_substring_regex(texts, _DAY), min_count=0).as_py():
        return None
    try:
        return typed(texts.cast(pa.date32()), DATE)
    except pa.ArrowInvalid:
        return None
