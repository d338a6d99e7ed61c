"""Rows and values as text: tables, JSON lines, CSV or Parquet; sizes and ages in words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

from rich.table import Table
from rich.text import Text

from polynya.cli.visible import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from polynya.lake.read.values import Answer


def to_json(value: object) -> str:
    """Return a value as one line of JSON in plain ASCII, valid on every terminal and pipe."""
    text = json.dumps(jsonable(value), separators=(",", ":"), allow_nan=False)
    # JSON leaves this control character as it is; it can only stand in a string.
    return text.replace("\x7f", "\\u007f")


def jsonable(value: object) -> object:  # noqa: PLR0911 - one line per type
    """Return a value made of what JSON has.

    Instants (aware) become ISO 8601 in UTC with `Z`, wall-clock times (naive) have no zone,
    decimals and non-finite numbers become text, binary lower-case hex, durations seconds as text.
    """
    match value:
        case None | bool() | int() | str() if not isinstance(value, Enum):
            return value
        case Enum():
            return jsonable(value.value)
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return _instant(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return f"{value.total_seconds():f}"
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case Mapping():
            return {_key(key): jsonable(inner) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [jsonable(inner) for inner in value]
        case _:
            return str(value)


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _key(key: object) -> str:
    simple = jsonable(key)
    return simple if isinstance(simple, str) else json.dumps(simple)


def moment_in_words(text: str | None, now: datetime) -> str:
    """A time in UTC to the second and how long ago that was; `never` without one."""
    if text is None:
        return "never"
    moment = datetime.fromisoformat(text).astimezone(UTC)
    ago = max((now - moment).total_seconds(), 0.0)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC, {age_in_words(ago)} ago"


def age_in_words(seconds: float) -> str:
    """Seconds in the largest unit that fits."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.1f} s"


def size_in_words(size: int) -> str:
    """Bytes as KiB or MiB."""
    return f"{size / 1024:,.0f} KiB" if size < 1024**2 else f"{size / 1024**2:,.1f} MiB"


_GAP: Final = "  "
_CUT: Final = "…"
#: Characters that a cell keeps at least.
_LEAST: Final = 8


def value_text(value: object) -> str:
    """A value in one line: NULL by name, nested values as JSON."""
    if value is None:
        return "NULL"
    simple = jsonable(value)
    text = simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)
    return " ".join(text.split()) if "\n" in text or "\t" in text else text


def grid(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int, indent: str
) -> Iterator[str]:
    """Lines of at most `width` characters, or one line a value where there are too many columns."""
    room = width - len(indent) - len(_GAP) * (len(header) - 1)
    widths = [
        max(len(name), *(len(row[place]) for row in rows)) for place, name in enumerate(header)
    ]
    if sum(min(column_width, _LEAST) for column_width in widths) > room:
        yield from _listed(header, rows, width, indent)
        return
    while sum(widths) > room:
        longest = max(range(len(widths)), key=widths.__getitem__)
        widths[longest] -= 1
    for row in (header, *rows):
        cells = (_cut(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True))
        yield (indent + _GAP.join(cells)).rstrip()


def _listed(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int, indent: str
) -> Iterator[str]:
    name_width = min(max(map(len, header)), width // 2)
    room = max(_LEAST, width - len(indent) - name_width - len(_GAP))
    for number, row in enumerate(rows, 1):
        yield f"{indent}{number}:"
        for name, cell in zip(header, row, strict=True):
            yield f"{indent}{_cut(name, name_width):<{name_width}}{_GAP}{_cut(cell, room)}"


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + _CUT


#: Rows of one row group of a Parquet file.
_GROUP: Final = 100_000


class RowFormat(StrEnum):
    """How rows are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def as_table(answer: Answer, most: int | None) -> tuple[Table | str, bool]:
    """The first `most` rows for people, and whether there are more."""
    table = Table(*answer.schema.names)
    for batch in answer.batches:
        types = [column.type for column in batch.columns]
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            if table.row_count == most:
                return table, True
            table.add_row(*map(_cell, row, types))
    return (table if table.row_count else "no rows"), False


def write_csv(answer: Answer, out: TextIO) -> None:
    """Write a header line and the rows. NULL is an empty field, empty text is `""`.

    What has no plain text, such as times, binary and nested values, is written as in JSON.
    """
    # Start-up time: pyarrow.
    from polynya.lake.read.values import csv_parts

    for part in csv_parts(answer):
        content = part.decode("utf-8")
        # A program gets the values as they are.
        out.write(visible(content, out.encoding) if out.isatty() else content)


def write_parquet(answer: Answer, out: BinaryIO) -> None:
    """Write one Parquet file with the types of the rows."""
    # Start-up time: pyarrow.
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetWriter(out, answer.schema) as writer:
        group: list[pa.RecordBatch] = []
        for batch in answer.batches:
            group.append(batch)
            if sum(part.num_rows for part in group) >= _GROUP:
                writer.write_table(pa.Table.from_batches(group, answer.schema))
                group = []
        if group:
            writer.write_table(pa.Table.from_batches(group, answer.schema))


def _cell(value: object, kind: pa.DataType) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    return Text(_text(value, kind))


def _text(value: object, kind: pa.DataType) -> str:
    # Start-up time: pyarrow.
    from polynya.lake.read.values import to_text

    return to_text(value, kind)
