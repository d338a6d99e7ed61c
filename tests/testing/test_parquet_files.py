"""Records of a test as a Parquet file, read by the real reader."""

from __future__ import annotations

import pytest

from polynya.formats.batch import FilePart
from polynya.formats.native.format import read_native
from polynya.model.config.task import StorageTask, resolved
from polynya.model.types import parse_type
from polynya.testing.fakes import MemoryObjectStore
from polynya.testing.runner import parquet_file
from tests.formats.helpers import request

DECLARED = {
    "amount": parse_type("decimal(10,2)"),
    "at": parse_type("timestamp"),
    "tags": parse_type("array<string>"),
}


def test_records_are_read_with_their_declared_types():
    records = [
        {"id": 1, "amount": "12.50", "at": "2026-01-01T02:00:00+02:00", "tags": ["a"]},
        {"id": 2, "name": "Ben", "amount": None},
    ]
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "t",
            "schema": "s",
            "landing": {"path": "p", "format": "parquet"},
            "datasets": [{"name": "d", "keys": ["id"], "sequence_by": ["at"]}],
        }
    )
    data = parquet_file(records, DECLARED)
    store = MemoryObjectStore({"p/1.parquet": data})
    part = FilePart("p/1.parquet", len(data))
    batch = read_native(request(store, resolved(task, task.datasets[0]), [part]))

    assert {name: str(kind) for name, kind in batch.schema.items()} == {
        "id": "bigint",
        "amount": "decimal(10,2)",
        "at": "timestamp",
        "tags": "array<string>",
        "name": "string",
    }


@pytest.mark.parametrize(
    "records",
    [
        [{"amount": "much"}],
        [{"at": "soon"}],
        [{"amount": [1]}],
        [{"id": 1}, {"id": "two"}],
        [{"id": 2**70}],
    ],
)
def test_what_does_not_fit_is_refused(records):
    with pytest.raises(ValueError, match="cannot hold this"):
        parquet_file(records, DECLARED)
