"""Landed batches for tests, and reading them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.landed import SCHEMAS, Counts, StreamFooter, batch_name, write_batch
from polynya.formats.stream.reading import read_stream
from polynya.model.config.stream_content import landed_content
from polynya.model.config.task import StorageTask, resolved
from polynya.testing.fakes import MemoryObjectStore

WHOLE = BatchLimits(1 << 40, 1 << 40)
AT = datetime(2026, 11, 23, 12, tzinfo=UTC)


def landed(
    values: Sequence[bytes | None],
    number: int = 1,
    first: int = 0,
    keys: Sequence[str | None] | None = None,
    **content: Any,
) -> bytes:
    """A landed batch of Kafka messages, which begin at an offset of one partition."""
    count = len(values)
    columns = [
        pa.array(["clicks"] * count),
        pa.array([0] * count, pa.int64()),
        pa.array(range(first, first + count), pa.int64()),
        pa.array(keys or [None] * count, pa.string()),
        pa.nulls(count, pa.string()),
        pa.array([AT + timedelta(seconds=first + at) for at in range(count)]),
        pa.array(values, pa.binary()),
    ]
    rows = pa.table(
        [column.cast(field.type) for column, field in zip(columns, SCHEMAS["kafka"], strict=True)],
        schema=SCHEMAS["kafka"],
    )
    counts = Counts(count, sum(len(value or b"") for value in values))
    footer = StreamFooter(
        task="clicks",
        table="clicks",
        source="kafka",
        number=number,
        content=landed_content(content or {"type": "json"}),
        begin={},
        end={},
        written_at=AT,
        counts=counts,
        # All that came before has landed.
        totals=replace(counts, records=first + count),
    )
    return write_batch(footer, rows)


def path_of(number: int) -> str:
    return f"clicks/clicks/{batch_name(number)}"


def request_for(
    *batches: bytes,
    start: int = 0,
    limits: BatchLimits = WHOLE,
    load: bool = False,
    **settings: Any,
) -> ReadRequest:
    """A request for these landed batches, the first one from record `start` on."""
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "facts",
            "schema": "web",
            "landing": {"path": "clicks", "format": "stream", **settings.pop("landing", {})},
            "datasets": [{"name": "clicks", "keys": ["id"], **settings}],
        }
    )
    known = KnownTable(resolved(task, task.datasets[0]))
    files = {path_of(number): data for number, data in enumerate(batches, 1)}
    parts = [FilePart(path, len(data)) for path, data in files.items()]
    parts[0] = replace(parts[0], start=start)
    return ReadRequest(MemoryObjectStore(files), parts, {known.source: known}, limits, load=load)


def knowing(request: ReadRequest, batch: DatasetBatch) -> ReadRequest:
    """The request of a table that has the columns of a batch."""
    known = replace(request.table, schema=batch.schema)
    return replace(request, tables={known.source: known})


def read(*batches: bytes, **settings: Any) -> DatasetBatch:
    return read_stream(request_for(*batches, **settings))


def rows_of(batch: DatasetBatch, *names: str) -> list[Any]:
    found = batch.rows.select(list(names)).to_pylist()
    return [next(iter(row.values())) for row in found] if len(names) == 1 else found


def rules_of(batch: DatasetBatch) -> list[tuple[int, str]]:
    return [(one.offset, one.rule) for one in batch.rejected]
