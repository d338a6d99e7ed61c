"""A chunk of a view as a landed batch, for whoever reads it without a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from polynya.formats.debezium.captured.batch import CaptureHeader, Shape, batch_name, write_batch
from polynya.formats.debezium.decode import TIME_UNITS, whole_micros
from polynya.formats.debezium.order import log_of, native_position
from polynya.formats.sources.eras import Era, placed_before


def chunk_as_batch(
    task: str,
    number: int,
    now: datetime,
    *,
    table: str,
    schema: Mapping[str, Any],
    lines: bytes,
    rows: int,
) -> tuple[str, bytes]:
    """Name and content of a batch with the rows of one chunk; `schema` is that of its events."""
    header = CaptureHeader(task, number, now, rows, schemas={table: [Shape(1, schema)]}, unsent="")
    return batch_name(number), write_batch(header, lines)


def change_identifier(source: Mapping[str, Any], eras: Sequence[Era] = ()) -> str | None:
    """The place of a view's rows in the order of changes; `source` is what they carry.

    `eras` are those of the log that the table has met.

    None for a connector whose order we do not know. Raises RecordError for a place that is none.
    """
    value = {"op": "r", "source": source}
    place = native_position(value)
    if place is None:
        return None
    place = placed_before(place, eras, log_of(value), whole_micros(source, TIME_UNITS))
    return place[0] + (place[1] or "")
