"""Rows of a batch that are made in Arrow are those that SQL makes."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import DatasetBatch, FilePart
from polynya.formats.native.format import read_native
from polynya.lake.copy import rows as in_arrow
from polynya.lake.copy import rows as in_sql
from polynya.lake.copy.rows import Times
from polynya.lake.table.shaping import shape_of
from polynya.lake.table.state import CopyState
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.types import DataType
from polynya.testing.fakes import MemoryObjectStore
from tests.lab.lab import STARTED, Lab, drop, put

TIMES = Times(STARTED, STARTED - timedelta(hours=1), follows="0" * 35)
VALUES = {
    "flag": True,
    "half": 0.5,
    "price": "12.50",
    "day": "2026-01-31",
    "text": "ä😀\b",
    "tags": ["a", None],
    "address": {"city": "Ulm", "zip": None, "deep": [{"x": 1}]},
    "nothing": None,
}
ORDINARY = [
    put(1, 1, name="Ann", **VALUES),
    put(1, 2, name=None),
    drop(2, 3),
    put(-7, 4, name="", tags=[], address=None),
    {"id": 5, "seq": 5, "op": None},
]
REJECTED = [*ORDINARY, put(None, 6, name="no key"), b"{broken", {"id": 3}, put("x", 8)]


def dataset(**settings: Any) -> ResolvedDataset:
    """A dataset whose deletes are told by a column."""
    given = {
        "name": "users",
        "path": "*",
        "keys": ["id"],
        "sequence_by": ["seq"],
        "timestamp": "at",
        "apply_as_deletes": "op IN ('D', 'X')",
        "apply_as_truncates": "op = 'T'",
        "except_columns": ["op", "at"],
        "columns": {"price": "decimal(10,2)", "day": "date"},
    }
    document = {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": "shop",
        "schema": "shop",
        "landing": {"path": "in", "format": "json"},
        "datasets": [given | settings],
    }
    task = StorageTask.model_validate(document)
    return resolved(task, task.datasets[0])


def batch_of(
    of: ResolvedDataset, *records: Any, known: dict[str, DataType] | None = None, load: bool = False
) -> DatasetBatch:
    """Records as they are read for a dataset."""
    data = b"".join(
        (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in records
    )
    store, part = MemoryObjectStore({"f.json": data}), FilePart("f.json", len(data))
    table = KnownTable(of, known or {})
    return read_native(ReadRequest(store, [part], {table.source: table}, load=load))


def both(lab: Lab, of: ResolvedDataset, batch: DatasetBatch, times: Times = TIMES) -> pa.Table:
    """The rows in Arrow, which must be those of SQL."""
    shape = shape_of(of, CopyState(), batch.schema, batch.keys)
    made = in_arrow.arrow_rows(batch, of, shape, times)
    assert made is not None
    derived = in_sql.derive(lab.spark, batch, of, shape, times)
    expected = derived.drop(*in_sql.HELPERS).toArrow()
    full = {
        name: made.column(name)
        if name in made.column_names
        else pa.nulls(made.num_rows, expected.schema.field(name).type)
        for name in expected.column_names
    }
    assert set(made.column_names) <= set(expected.column_names)
    assert sorted(map(repr, pa.table(full).to_pylist())) == sorted(map(repr, expected.to_pylist()))
    first = in_sql.first_rejected_in_spark(derived)
    assert repr(in_arrow.first_rejected_in_arrow(made)) == repr(first)
    return made


@pytest.mark.parametrize("records", [ORDINARY, REJECTED, [b"{broken", put(1, 1)], [drop(1, 1)]])
def test_events_and_rejected_records(lab: Lab, records: list[Any]) -> None:
    of = dataset()
    first = batch_of(of, *records)

    both(lab, of, first)
    # Read again as columns of a table that knows them.
    both(lab, of, batch_of(of, *records, known=dict(first.schema)))


@pytest.mark.parametrize("records", [[b"{broken"], [put(None, 6), put(None, 7)], []])
def test_a_batch_without_a_good_record(lab: Lab, records: list[Any]) -> None:
    of = dataset()
    known = dict(batch_of(of, *ORDINARY).schema)

    made = both(lab, of, batch_of(of, *records, known=known))

    assert set(made.column("hdr__partition").to_pylist()) <= {"quarantine"}


@pytest.mark.parametrize(
    "settings",
    [
        {"keys": ["id", "name"], "sequence_by": ["at", "seq"]},
        {"timestamp": None, "sequence_by": ["at"]},
        {"apply_as_deletes": None, "apply_as_truncates": None, "except_columns": []},
        {"mode": "append_only"},
        {"mode": "append_only", "keys": []},
        {"apply_as_deletes": "missing = 'D'"},
    ],
)
def test_settings(lab: Lab, settings: dict[str, Any]) -> None:
    of = dataset(**settings)
    records = [one for one in ORDINARY if one.get("name") is not None and "at" in one]

    both(lab, of, batch_of(of, *records))
    both(lab, of, batch_of(of, *records, load=True))


def test_events_older_than_the_tombstones_that_are_kept_are_rejected(lab: Lab) -> None:
    of = dataset()
    batch = batch_of(of, *ORDINARY)
    places = sorted(batch.rows.column("__ci").to_pylist())

    made = both(lab, of, batch, Times(STARTED, None, places[1]))

    rejected = made.column("hdr__quarantine").drop_null().to_pylist()
    assert {one["rule"] for one in rejected} == {"older_than_horizon"}
    assert len(rejected) == 2
    assert all(one["raw"] for one in rejected)


@pytest.mark.parametrize(
    ("settings", "record"),
    [
        ({}, {"id": 1, "seq": 1, "op": "T"}),
        ({"apply_as_deletes": "upper(op) = 'D'"}, {"id": 1, "seq": 1}),
        ({"apply_as_deletes": "seq = '1'"}, {"id": 1, "seq": 1}),
        ({"ignore_null_updates": True}, {"id": 1, "seq": 1}),
        ({}, {"id": 1.5, "seq": 1}),
        ({"mode": "append_only"}, {"id": None, "seq": 1}),
    ],
)
def test_what_takes_a_query(settings: dict[str, Any], record: dict[str, Any]) -> None:
    of = dataset(**settings)
    batch = batch_of(of, record)
    shape = shape_of(of, CopyState(), batch.schema, batch.keys)

    assert in_arrow.arrow_rows(batch, of, shape, TIMES) is None
