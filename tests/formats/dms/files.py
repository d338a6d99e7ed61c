"""Short ways to write and read what DMS lands for one table."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.dms import read_dms, reading_order
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import Delivery
from polynya.model.types import DataType
from polynya.testing.fakes import MemoryObjectStore
from tests.formats.helpers import a_dataset, request

LOAD = "s/t/LOAD00000001.csv"
FIRST = "s/t/20260101-120000123.csv"
SECOND = "s/t/20260101-120500000.csv"


def a_table(settings: dict[str, Any] | None = None, **delivery: Any) -> ResolvedDataset:
    """A table with the key `id`; keyword arguments are settings of `landing`."""
    own = {"sequence_by": (), **(settings or {})}
    return a_dataset("dms", delivery=Delivery(**delivery), **own)


def lines(*rows: str) -> bytes:
    """Rows of a CSV file."""
    return "".join(f"{row}\n" for row in rows).encode()


def table(**columns: Any) -> bytes:
    """A Parquet file."""
    out = io.BytesIO()
    parquet.write_table(pa.table(columns), out)
    return out.getvalue()


def read(
    files: Mapping[str, bytes],
    dataset: ResolvedDataset | None = None,
    known: Mapping[str, DataType] | None = None,
    *,
    limits: BatchLimits | None = None,
    starts: Mapping[str, int] | None = None,
) -> DatasetBatch:
    """Read files from memory in the order that the engine takes."""
    paths = sorted(files, key=reading_order)
    parts = [FilePart(path, len(files[path]), (starts or {}).get(path, 0)) for path in paths]
    store = MemoryObjectStore(files)
    batch = read_dms(request(store, dataset or a_table(), parts, known, limits=limits))
    assert batch.rows_in == batch.rows.num_rows + len(batch.rejected) + batch.rows_filtered
    batch.rows.validate(full=True)
    return batch
