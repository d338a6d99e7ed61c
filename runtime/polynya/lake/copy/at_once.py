"""Which batches are applied in the commit that copies them, and why.

The live views fold pending changes of the records that they touch. Three things reach further than
that: a truncate touches every record, a change of key takes values from another record, and an
event older than either must redo it. Such a batch never becomes pending, so that queries are right
at every moment (docs/adr/0010-live-views.md).
"""

from __future__ import annotations

import pyarrow.compute as pc

from polynya.formats.batch import DatasetBatch
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import literal
from polynya.lake.spark.api import DataFrame
from polynya.lake.table.dataset import DatasetTable
from polynya.model.contract import headers as h


def reason_to_apply_at_once(
    target: DatasetTable, batch: DatasetBatch, derived: DataFrame, shape: Shape
) -> str | None:
    """The reason to apply the batch with its copy, None when it can wait as pending changes."""
    if shape.append_only or batch.rows.num_rows == 0:
        return None
    if _truncates(target, batch, derived):
        return "a truncate reaches every record"
    oldest = pc.min(batch.rows.column("__ci")).as_py()
    newest_truncate = max((str(t[0]) for t in target.state.apply.truncates), default=None)
    if newest_truncate is not None and oldest <= newest_truncate:
        return "an event is older than a truncate"
    old, unsent = batch.rows.column("__old"), batch.rows.column("__unsent")
    if pc.any(pc.and_(pc.is_valid(old), pc.is_valid(unsent))).as_py():
        return "a change of key carries values over from another record"
    if shape.links and _older_than_a_link(target, oldest):
        return "an event may be older than a change of key that carried values over"
    return None


def _truncates(target: DatasetTable, batch: DatasetBatch, derived: DataFrame) -> bool:
    if pc.any(pc.equal(batch.rows.column("__op"), "T")).as_py():
        return True
    if target.dataset.events.apply_as_truncates is None:
        return False
    return not derived.where("__op = 'T'").isEmpty()


def _older_than_a_link(target: DatasetTable, oldest: str) -> bool:
    # Almost no file holds a former key, and statistics skip those that hold none.
    assert target.state.snapshot is not None
    links = target.spark.sql(
        f"SELECT 1 FROM {target.table.at(target.state.snapshot)} WHERE {h.OLD_KEY} IS NOT NULL "
        f"AND {h.CHANGE_IDENTIFIER} >= {literal(oldest)} "
        f"AND {h.PARTITION} IN ('current', 'prior') LIMIT 1"
    )
    return not links.isEmpty()
