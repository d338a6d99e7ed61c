"""Reading quarantined lines of a capture again: they may belong to any of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from polynya.formats.base import ReadBatch, RereadRequest
from polynya.formats.batch import BatchLimits
from polynya.formats.debezium.reader import Reading
from polynya.formats.debezium.records import record_of
from polynya.formats.debezium.tables import DebeziumScope


def reread_debezium(request: RereadRequest, scope: DebeziumScope) -> ReadBatch:
    """Read lines again, as one batch."""
    # They are read again just because no table has them.
    known = {name: replace(table, done={}) for name, table in request.tables.items()}
    reading = Reading(scope, BatchLimits(), known)
    raws = {(one.file, one.offset): one.raw for one in request.records}
    # What is refused again is kept as it was.
    reading.kept = {file: partial(_as_kept, raws, file) for file, _ in raws}
    for record in request.records:
        reading.take(record.file, record.offset, record_of(record.file, record.raw, scope.registry))
    batch = reading.to_batch()
    # What a record says of the columns was so in its time, and is no news of the source.
    parts = {name: replace(part, declared=None) for name, part in batch.datasets.items()}
    return replace(batch, datasets=parts)


def _as_kept(raws: Mapping[tuple[str, int], bytes], file: str, raw: bytes, offset: int) -> bytes:
    del raw
    return raws[file, offset]
