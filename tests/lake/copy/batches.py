"""Batches of JSON records, as they are read and as they are mapped without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.native.format import read_native
from polynya.lake.copy.mapping import Before, mapped_batch
from polynya.lake.spark.api import SparkSession
from polynya.model.config.dataset import ResolvedDataset, of_source
from polynya.model.config.task import StorageTask, resolved
from polynya.testing.fakes import MemoryObjectStore

FILE = "in/0001.json"


def dataset(columns: Sequence[dict[str, Any]], **more: Any) -> ResolvedDataset:
    """An append-only JSON dataset whose columns are mapped."""
    own = {"name": "t", "mode": "append_only", "columns": list(columns), **more}
    own = {name: value for name, value in own.items() if value is not None}
    head = {"apiVersion": "polynya/v1", "kind": "storage", "name": "t", "schema": "s"}
    task = {**head, "landing": {"path": "in", "format": "json"}, "datasets": [own]}
    parsed = StorageTask.model_validate(task)
    return resolved(parsed, parsed.datasets[0])


def read(one: ResolvedDataset, records: Sequence[Any], start: int = 0, rows: int = 1000) -> Any:
    """A batch of the records from one on, as the reader of files gives it."""
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    known = KnownTable(of_source(one))
    part = FilePart(FILE, len(data), start)
    store = MemoryObjectStore({FILE: data})
    return read_native(ReadRequest(store, [part], {known.source: known}, BatchLimits(rows)))


def mapped(one: ResolvedDataset, batch: DatasetBatch, **before: Any) -> DatasetBatch:
    """What the mapping makes of it; Spark is not asked."""

    def no_session() -> SparkSession:
        raise AssertionError("only paths are mapped")

    return mapped_batch(batch, one, Before(before, {}), no_session)
