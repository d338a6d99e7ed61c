"""Event lines made of the values that `COPY` sends.

The server writes each value as JSON, and Arrow puts them between the texts that are the same in
every line: names of columns, and what all rows of a view carry. A server that concatenates a line
needs several times as long as for its values, and sends four times as many bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from polynya.capture.postgresql.tables import PgColumn

#: Control characters stand in no JSON, so nothing is ever quoted.
FORMAT: Final = "(FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01', ENCODING 'UTF8')"
#: Bytes that are put together at a time: those of values, and those of the texts between them. Each
#: array has to stay below 2 GB, also with a value of 1 GB.
_VALUE_BYTES, _TEXT_BYTES = 32 << 20, 64 << 20


class CopiedLines:
    """Takes the rows of a copy, in `FORMAT`, and makes their lines.

    Attributes:
        rows: how many came.
    """

    def __init__(self, columns: Sequence[PgColumn], parts: Sequence[str | PgColumn]) -> None:
        """Lines of `parts`, between which stand values of `columns`, those that are copied."""
        self.rows = 0
        self._names = [str(index) for index in range(len(columns))]
        places = {item.name: index for index, item in enumerate(columns)}
        #: Texts, and numbers of columns.
        self._parts: list[bytes | int] = []
        text = b""
        for part in parts:
            if isinstance(part, PgColumn):
                self._parts += [text, places[part.name]]
                text = b""
            else:
                text += part.encode()
        self._parts.append(text + b"\n")
        text_bytes = sum(len(part) for part in self._parts if isinstance(part, bytes))
        self._most_rows = max(_TEXT_BYTES // text_bytes, 1)
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._lines: list[bytes] = []

    def write(self, row: bytes) -> None:
        """Take a row with its end of line."""
        self._held.append(row)
        self._held_bytes += len(row)
        if len(self._held) >= self._most_rows or self._held_bytes >= _VALUE_BYTES:
            self._join()

    def content(self) -> bytes:
        """All lines, each with its end."""
        self._join()
        return self._lines[0] if len(self._lines) == 1 else b"".join(self._lines)

    def _join(self) -> None:
        if not self._held:
            return
        rows, self.rows = len(self._held), self.rows + len(self._held)
        copied, self._held, self._held_bytes = b"".join(self._held), [], 0
        values = self._values(copied, rows)
        pieces: list[Any] = [
            values[part] if isinstance(part, int) else pa.scalar(part, pa.binary())
            for part in self._parts
        ]
        joined = pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))
        if not values:
            joined = pa.repeat(joined, rows)
        size = pc.sum(pc.binary_length(joined)).as_py()
        self._lines.append(joined.buffers()[2].slice(0, size).to_pybytes())

    def _values(self, copied: bytes, rows: int) -> list[pa.Array]:
        if not self._names:
            return []
        read = pv.read_csv(
            pa.BufferReader(copied),
            read_options=pv.ReadOptions(
                column_names=self._names, use_threads=False, block_size=len(copied) + 1
            ),
            parse_options=pv.ParseOptions(
                delimiter="\x02", quote_char=False, escape_char=False, ignore_empty_lines=False
            ),
            convert_options=pv.ConvertOptions(
                column_types=dict.fromkeys(self._names, pa.binary()), strings_can_be_null=False
            ),
        )
        if read.num_rows != rows:
            raise AssertionError(f"{rows} rows were copied, and {read.num_rows} read")
        return [column.combine_chunks() for column in read.columns]
