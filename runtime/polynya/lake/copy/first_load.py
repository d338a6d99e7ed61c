"""The first full load: rows go to Current and not through Changes (semantics section 8)."""

from __future__ import annotations

from datetime import datetime

import pyarrow.compute as pc

from polynya.formats.batch import DatasetBatch
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import timestamp_literal
from polynya.lake.spark.api import DataFrame, functions
from polynya.lake.table.dataset import DatasetTable
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition


def is_first_load(target: DatasetTable, batch: DatasetBatch, shape: Shape) -> bool:
    """Whether loaded rows may go to Current unfolded: nothing was ever applied or is pending."""
    if shape.append_only or target.state.apply.applies > 0:
        return False
    if not pc.any(pc.equal(batch.rows.column("__op"), "L")).as_py():
        return False
    return not target.table.files(Partition.CHANGES, target.state.snapshot)


def into_current(
    target: DatasetTable, derived: DataFrame, shape: Shape, now: datetime
) -> DataFrame:
    """Send each key's newest loaded row to Current, unless it has one; the rest stays a change."""
    rank = (
        f"row_number() OVER (PARTITION BY {shape.key_list()}, {h.PARTITION}, __op = 'L' "
        "ORDER BY __seq DESC, hdr__key_hash) AS __rank"
    )
    ranked = derived.selectExpr("*", rank)
    if target.table.files(Partition.CURRENT, target.state.snapshot):
        assert target.state.snapshot is not None
        loaded = target.spark.sql(
            f"SELECT {shape.key_list()}, true AS __loaded "
            f"FROM {target.table.at(target.state.snapshot)} "
            f"WHERE {h.PARTITION} = '{Partition.CURRENT}'"
        )
        ranked = ranked.join(
            functions.broadcast(loaded), on=list(map(_column, shape.keys)), how="left"
        )
    else:
        ranked = ranked.withColumn("__loaded", functions.lit(None).cast("boolean"))
    direct = (
        "(__op = 'L' AND __rank = 1 AND __loaded IS NULL "
        f"AND {h.PARTITION} = '{Partition.CHANGES}')"
    )
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
    return ranked.withColumns(replaced).drop("__rank", "__loaded")


def _column(name: str) -> str:
    return name
