"""Rows of the internal table made of a landed batch without a query.

The same rows as `derive.py` makes, where nothing of them takes SQL: keys of integers or text, and
conditions that only compare a column with texts. A test holds both equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import TIMESTAMP_UTC, DatasetBatch, Rejected
from polynya.lake.copy.derive import ERRORS
from polynya.lake.copy.said_in_arrow import can_hash, choice_in, chosen, key_hashes
from polynya.lake.copy.times import Times
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.unsent import ignored_nulls
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.observe.trace import span

_QUARANTINED = pa.struct(
    [
        pa.field("id", pa.string()),
        pa.field("file", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("rule", pa.string()),
        pa.field("error", pa.string()),
        pa.field("raw", pa.binary()),
    ]
)


@span("derive in memory")
def arrow_rows(
    batch: DatasetBatch, dataset: ResolvedDataset, shape: Shape, times: Times
) -> pa.Table | None:
    """Rows of a batch in columns of the internal table; those that are missing are NULL.

    None when they take a query.
    """
    operations = _operations(batch, dataset)
    if operations is None or not _is_plain(batch, dataset, shape):
        return None
    rows = batch.rows.append_column("__decided", operations)
    rules = _rules(rows, shape, times.horizon)
    bad = list(batch.rejected)
    if rules.null_count < len(rules):
        bad += _refused(batch, rules)
        rows = rows.filter(pc.is_null(rules))
    return pa.concat_tables(
        [_good(rows, shape, times), _quarantined(bad)], promote_options="default"
    )


def first_rejected(rows: pa.Table) -> Mapping[str, Any] | None:
    """The quarantined record that stands first, by file and offset; None when there is none."""
    if h.QUARANTINE not in rows.column_names:
        return None
    found = rows.column(h.QUARANTINE).drop_null().to_pylist()
    return min(found, key=lambda one: (one["file"], one["offset"]), default=None)


def _operations(batch: DatasetBatch, dataset: ResolvedDataset) -> pa.ChunkedArray | None:
    """The operation of each row; None when a condition takes SQL, or one is a truncate."""
    truncates = choice_in(dataset.truncates, batch.schema)
    deletes = choice_in(dataset.deletes, batch.schema)
    if truncates is None or deletes is None or chosen(truncates, batch.rows) is not None:
        return None
    operations = pc.fill_null(batch.rows.column("__op"), "U")
    if pc.any(pc.equal(operations, "T"), min_count=0).as_py():
        return None
    deleted = chosen(deletes, batch.rows)
    return operations if deleted is None else pc.if_else(deleted, "D", operations)


def _is_plain(batch: DatasetBatch, dataset: ResolvedDataset, shape: Shape) -> bool:
    """Whether the values are stored as they landed, and no header column takes SQL."""
    present = batch.rows.column_names
    unsent = batch.rows.column("__unsent")
    if ignored_nulls(dataset) or unsent.null_count < len(unsent):
        return False
    if dataset.landing.extracts is not None or not all(key in present for key in shape.keys):
        return False
    nameless = any(batch.rows.column(key).null_count for key in shape.keys)
    if not can_hash(shape) or (shape.append_only and nameless):
        return False
    return all(batch.schema.get(name, kind) == kind for name, kind in shape.columns.items())


def _rules(rows: pa.Table, shape: Shape, horizon: str | None) -> Any:
    """The rule that rejects each row, NULL for the good ones."""
    rules: Any = pa.nulls(rows.num_rows, pa.string())
    if shape.append_only:
        return rules
    if horizon is not None:
        tails = pc.fill_null(rows.column("__tail"), "")
        places = pc.binary_join_element_wise(rows.column("__ci"), tails, "")
        rules = pc.if_else(pc.less_equal(places, horizon), "older_than_horizon", rules)
    for key in shape.keys:
        if rows.column(key).null_count:
            rules = pc.if_else(pc.is_null(rows.column(key)), "null_key", rules)
    return rules


def _refused(batch: DatasetBatch, rules: Any) -> list[Rejected]:
    refused = pc.is_valid(rules)
    rows = batch.with_raw(refused).select(["__file", "__offset", "__raw"]).filter(refused)
    return [
        Rejected(row["__file"], row["__offset"], rule, ERRORS[rule], row["__raw"])
        for row, rule in zip(rows.to_pylist(), rules.drop_null().to_pylist(), strict=True)
    ]


def _good(rows: pa.Table, shape: Shape, times: Times) -> pa.Table:
    count = rows.num_rows
    now = pa.scalar(times.now, TIMESTAMP_UTC)
    loaded = pa.scalar(times.load_started or times.now, TIMESTAMP_UTC)
    operations = rows.column("__decided")
    time = pc.if_else(pc.equal(operations, "L"), loaded, pc.fill_null(rows.column("__ts"), now))
    partition = Partition.CURRENT if shape.append_only else Partition.CHANGES
    columns: dict[str, Any] = {
        h.PARTITION: pa.repeat(pa.scalar(str(partition)), count),
        h.CHANGE_IDENTIFIER: rows.column("__ci"),
        h.SEQUENCE_TAIL: rows.column("__tail"),
        h.SOURCE_POSITION: rows.column("__position"),
        h.OPERATION: operations,
        h.TIMESTAMP: time,
        h.INSERTED_TIMESTAMP: pa.repeat(now, count),
    }
    if times.follows is not None:
        columns[h.COPY_CHANGE_IDENTIFIER] = pa.repeat(pa.scalar(times.follows), count)
    if shape.append_only:
        columns |= {h.FROM_TIMESTAMP: time, h.MODIFIED_TIMESTAMP: pa.repeat(now, count)}
    if shape.keys:
        columns[h.KEY_HASH] = key_hashes([rows.column(key).combine_chunks() for key in shape.keys])
    sent = set(rows.column_names) - shape.hidden
    columns |= {name: rows.column(name) for name in shape.data if name in sent}
    return pa.table(columns)


def _quarantined(bad: list[Rejected]) -> pa.Table:
    records = [
        {
            "id": hashlib.sha1(
                f"{one.file}:{one.offset}".encode(), usedforsecurity=False
            ).hexdigest()[:12],
            "file": one.file,
            "offset": one.offset,
            "rule": one.rule,
            "error": one.error,
            "raw": one.raw,
        }
        for one in bad
    ]
    partition = pa.repeat(pa.scalar(str(Partition.QUARANTINE)), len(bad))
    return pa.table({h.PARTITION: partition, h.QUARANTINE: pa.array(records, _QUARANTINED)})
