"""The lines of a landed batch of a capture as records, each with the schema that its header gives.

A line is as the capture wrote it. One that is quarantined gets its schema, so that it can be read
again by itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, BinaryIO

from polynya.formats.debezium.captured.batch import CaptureHeader, Shape, header_of
from polynya.formats.debezium.envelope import UNSENT
from polynya.formats.debezium.tables import table_of
from polynya.formats.errors import RecordError
from polynya.formats.records.json_lines import parsed
from polynya.formats.records.json_text import parse_object
from polynya.formats.records.opened import RawRecord
from polynya.formats.values.exact import json_text


class CapturedLines:
    """Schemas of the events of one batch, by table and line; line 0 is the header."""

    def __init__(self, header: CaptureHeader) -> None:
        self._shapes = header.schemas
        self._more = {} if header.unsent is None else {UNSENT: header.unsent}

    def with_schema(self, record: dict[str, Any], line: int) -> dict[str, Any]:
        """An event with its schema and the text for unsent columns; other records stay as they are.

        Raises:
            RecordError: bad_schema, the header has none for its table.
        """
        value = record.get("value")
        if not isinstance(value, dict) or "op" not in value or value["op"] == "m":
            return record
        source = value.get("source")
        table = table_of(source if isinstance(source, dict) else {})
        schema = self._schema(self._shapes.get(table, ()), line)
        if schema is None:
            raise RecordError("bad_schema", f"the header of the batch has no schema of {table}")
        return {**record, "value": {"schema": schema, "payload": value}, **self._more}

    def whole(self, raw: bytes, line: int) -> bytes:
        """The text of an event with its schema; what is no event stays as it is."""
        try:
            record = parse_object(raw)
            found = self.with_schema(record, line)
        except RecordError:
            return raw
        return raw if found is record else json_text(found).encode()

    @staticmethod
    def _schema(shapes: Sequence[Shape], line: int) -> Mapping[str, Any] | None:
        if len(shapes) == 1 and shapes[0].first <= line:
            return shapes[0].schema
        index = bisect_right(shapes, line, key=lambda one: one.first)
        return shapes[index - 1].schema if index else None


class CapturedRecords(Iterator[RawRecord]):
    """The records of a batch from the `start`-th on, the header being the first."""

    def __init__(self, file: BinaryIO, path: str, start: int) -> None:
        """Read the header.

        Raises:
            UnreadableFileError: it is broken. Without it no line has its types.
            OperationError: POLYNYA-GTW-002, a newer Polynya wrote it.
        """
        line = file.readline()
        self.lines = CapturedLines(header_of(line, path))
        self._records = self._from(line, file, start)

    def __next__(self) -> RawRecord:
        return next(self._records)

    def whole(self, raw: bytes, offset: int) -> bytes:
        """See `CapturedLines.whole`."""
        return self.lines.whole(raw, offset)

    def _from(self, header: bytes, file: BinaryIO, start: int) -> Iterator[RawRecord]:
        if start == 0:
            yield parsed(header.rstrip(b"\r\n"))
        for number, line in enumerate(islice(file, max(start - 1, 0), None), max(start, 1)):
            raw, record = parsed(line.rstrip(b"\r\n"))
            if not isinstance(record, RecordError):
                try:
                    record = self.lines.with_schema(record, number)
                except RecordError as error:
                    record = error
            yield raw, record
