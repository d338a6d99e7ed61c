"""Which way a batch takes into the table, and why.

Most batches wait as pending changes. The rows of a first full load go straight to Current. And some
batches are applied in the commit that copies them: the live views fold pending changes of the
records that they touch, and three things reach further than that. A truncate touches every record,
a change of key takes values from another record, and an event older than either must redo it. Such
a batch never becomes pending, so that queries are right at every moment
(docs/adr/0011-live-views.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import NO_ORDER, DatasetBatch
from polynya.lake.apply import retention
from polynya.lake.apply.retention import Retention
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import timestamp_literal, within
from polynya.lake.spark.api import DataFrame, functions
from polynya.lake.table.dataset import DatasetTable
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import literal

#: A loaded row that was not rejected.
_LOADED = f"(__decided = 'L' AND {within(Partition.CHANGES)})"
TRUNCATES = "a truncate reaches every record"


@dataclass(frozen=True, slots=True)
class Route:
    """What is written of a batch that only appends.

    `keeping` says what a first load does to the kept events, None for any other batch.
    """

    rows: DataFrame
    keeping: Retention | None = None


def reason_to_apply_at_once(target: DatasetTable, batch: DatasetBatch, shape: Shape) -> str | None:
    """The reason to apply the batch with its copy, None when it can wait as pending changes.

    That the settings make a row a truncate is not looked at here.
    """
    if shape.append_only or batch.rows.num_rows == 0:
        return None
    if pc.any(pc.equal(batch.rows.column("__op"), "T")).as_py():
        return TRUNCATES
    oldest = pc.min(batch.rows.column("__ci")).as_py()
    known = (one.change_identifier for one in target.state.apply.truncates)
    newest_truncate = max(known, default=None)
    if newest_truncate is not None and oldest <= newest_truncate:
        return "an event is older than a truncate"
    old, unsent = batch.rows.column("__old"), batch.rows.column("__unsent")
    if pc.any(pc.and_(pc.is_valid(old), pc.is_valid(unsent))).as_py():
        return "a change of key carries values over from another record"
    if shape.links and _older_than_a_link(target, oldest):
        return "an event may be older than a change of key that carried values over"
    return None


def follows(target: DatasetTable, batch: DatasetBatch, shape: Shape) -> str | None:
    """The change identifier that all events of a batch come after, and nothing stored does.

    None where an event may be late, so that queries compare it with what is stored. Loaded rows of
    a batch may go to Current, beside pending ones that are older.
    """
    if shape.append_only or batch.rows.num_rows == 0:
        return None
    if pc.any(pc.equal(batch.rows.column("__op"), "L")).as_py():
        return None
    state = target.state
    known = [state.copy.position.copied_to, state.apply.applied_to]
    if state.copy.reloading is not None:
        known.append(state.copy.reloading.place)
    newest = max((one for one in known if one), default=NO_ORDER)
    oldest: str = pc.min(batch.rows.column("__ci")).as_py() or NO_ORDER
    # An identifier that only continues a shorter one may stand before the tail of that one.
    return newest if oldest > newest and not oldest.startswith((newest, NO_ORDER)) else None


def is_first_load(target: DatasetTable, batch: DatasetBatch, shape: Shape) -> bool:
    """Whether loaded rows may go to Current unfolded: nothing was ever applied or is pending."""
    if shape.append_only or target.state.apply.applies > 0:
        return False
    if not pc.any(pc.equal(batch.rows.column("__op"), "L")).as_py():
        return False
    return not target.table.files(Partition.CHANGES, target.state.snapshot)


def route_of_load(
    target: DatasetTable, batch: DatasetBatch, derived: DataFrame, shape: Shape, now: datetime
) -> Route:
    """The way of a batch of a first load, whose rows are `derived`."""
    keeping = retention.before(target, shape, now)
    if _keys_differ(batch, shape) and not _has_current(target):
        loaded = to_current(derived, _LOADED, keeping.now)
    else:
        loaded = _into_current(target, derived, shape, keeping.now)
    if keeping.state is not None:
        loaded = retention.with_loaded_events(loaded, keeping.now)
    return Route(loaded, keeping)


def _older_than_a_link(target: DatasetTable, oldest: str) -> bool:
    # Almost no file holds a former key, and statistics skip those that hold none.
    assert target.state.snapshot is not None
    links = target.spark.sql(
        f"SELECT 1 FROM {target.table.at(target.state.snapshot)} WHERE {h.OLD_KEY} IS NOT NULL "
        f"AND {h.CHANGE_IDENTIFIER} >= {literal(oldest)} "
        f"AND {within(Partition.CURRENT, Partition.PRIOR)} LIMIT 1"
    )
    return not links.isEmpty()


def _has_current(target: DatasetTable) -> bool:
    return bool(target.table.files(Partition.CURRENT, target.state.snapshot))


def _keys_differ(batch: DatasetBatch, shape: Shape) -> bool:
    """Whether it is sure that no key stands twice. Sorting them by Spark takes a shuffle."""
    rows = batch.rows
    if not set(shape.keys) <= set(rows.column_names):
        return False
    keys = rows.select(shape.keys)
    # Different bits of a number that is no integer can be the same key.
    if any(pa.types.is_floating(kind) or pa.types.is_nested(kind) for kind in keys.schema.types):
        return False
    return bool(keys.group_by(list(shape.keys)).aggregate([]).num_rows == rows.num_rows)


def _into_current(
    target: DatasetTable, derived: DataFrame, shape: Shape, now: datetime
) -> DataFrame:
    """Send each key's newest loaded row to Current, unless it has one; the rest stays a change."""
    rank = (
        f"row_number() OVER (PARTITION BY {shape.key_list()}, {h.PARTITION}, __decided = 'L' "
        "ORDER BY __seq DESC, hdr__key_hash) AS __rank"
    )
    ranked = derived.selectExpr("*", rank)
    if _has_current(target):
        assert target.state.snapshot is not None
        loaded = target.spark.sql(
            f"SELECT {shape.key_list()}, true AS __loaded "
            f"FROM {target.table.at(target.state.snapshot)} WHERE {within(Partition.CURRENT)}"
        )
        ranked = ranked.join(functions.broadcast(loaded), on=list(shape.keys), how="left")
    else:
        ranked = ranked.withColumn("__loaded", functions.lit(None).cast("boolean"))
    direct = f"({_LOADED} AND __rank = 1 AND __loaded IS NULL)"
    return to_current(ranked, direct, now).drop("__rank", "__loaded")


def to_current(rows: DataFrame, direct: str, now: datetime) -> DataFrame:
    """Send the loaded rows for which the condition `direct` holds to Current."""
    engine = timestamp_literal(now)
    values = {
        h.PARTITION: f"'{Partition.CURRENT}'",
        h.FROM_TIMESTAMP: h.TIMESTAMP,
        h.INSERTED_TIMESTAMP: h.TIMESTAMP,
        h.MODIFIED_TIMESTAMP: engine,
        h.WAS_CURRENT_FROM: engine,
    }
    replaced = {
        name: functions.expr(f"IF({direct}, {value}, {name})") for name, value in values.items()
    }
    return rows.withColumns(replaced)
