"""Turn a landed batch into rows of the internal table.

That is operation, key hash and partition, or the rule that rejects the record. The only step where
users' SQL expressions run; they were validated by `transform.expressions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import DatasetBatch
from polynya.lake.copy.place import place_of
from polynya.lake.copy.times import Times
from polynya.lake.fold.keys import key_hash, key_text
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import SEQUENCE, selected, table_row, timestamp_literal, within
from polynya.lake.fold.unsent import left_out
from polynya.lake.spark.api import DataFrame, SparkSession
from polynya.lake.spark.arrow import spark_schema
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.contract import headers as h
from polynya.model.contract.identifiers import literal, quote
from polynya.model.datatypes import DataType
from polynya.observe.trace import span
from polynya.transform.expressions import expression_over

#: Columns of the result that only the copy step uses, after those of the table.
HELPERS = ("__decided", "__seq")
#: Rule that rejects a row here → what the quarantine says of it.
ERRORS = {
    "null_key": "a key column is NULL: the record cannot be matched",
    "older_than_horizon": "the event is older than the tombstones that are kept "
    "(tombstone_retention), so that its place in history is unknown",
}


@span("derive")
def derive(
    spark: SparkSession,
    batch: DatasetBatch,
    dataset: ResolvedDataset,
    shape: Shape,
    times: Times,
) -> DataFrame:
    """Rows of a batch in the shape of the internal table; see `derived`."""
    landed = _landed_frame(spark, batch, _suspects(batch, shape, times.horizon))
    return derived(landed, batch.schema, dataset, shape, times)


def derived(
    landed: DataFrame,
    schema: Mapping[str, DataType],
    dataset: ResolvedDataset,
    shape: Shape,
    times: Times,
) -> DataFrame:
    """Rows in the shape of the internal table, plus HELPERS.

    `landed` has the service columns of a batch, `__rule`, `__error` and the columns of `schema`.
    Which of them a first load sends to Current is chosen later.
    """
    spark = landed.sparkSession
    present = set(landed.columns)
    view = f"landed_{uuid4().hex}"
    landed.createOrReplaceTempView(view)
    with_op = f"SELECT *, {_operation(dataset, schema, landed)} AS __decided FROM {view}"
    sequenced = f"SELECT *, {SEQUENCE} AS __seq FROM ({with_op})"
    judged = f"SELECT *, {_rule(shape, times.horizon, present)} AS __verdict FROM ({sequenced})"
    explained = f"SELECT *, {_error()} AS __why FROM ({judged})"
    columns = _table_columns(shape, present, times)
    if dataset.landing.extracts is not None and dataset.events.timestamp is not None:
        # The rows of an extract tell themselves when they changed.
        columns[h.TIMESTAMP] = (
            f"IF(__verdict IS NULL, coalesce(__ts, {columns[h.TIMESTAMP]}), NULL)"
        )
    if times.follows is not None:
        columns[h.COPY_CHANGE_IDENTIFIER] = f"IF(__verdict IS NULL, {literal(times.follows)}, NULL)"
    columns[h.UNSENT] = f"IF(__verdict IS NULL, {left_out(dataset, shape, present)}, NULL)"
    helpers = ", ".join(HELPERS)
    result = spark.sql(f"SELECT {selected(columns)}, {helpers} FROM ({explained})")
    spark.catalog.dropTempView(view)
    return result


def decided(spark: SparkSession, batch: DatasetBatch, dataset: ResolvedDataset) -> list[str]:
    """The operation of each row of a batch, by SQL; nothing is written."""
    landed = batch.rows.append_column("__rule", pa.nulls(batch.rows.num_rows, pa.string()))
    numbered = landed.append_column("__row", pa.array(range(landed.num_rows), pa.int64()))
    frame = spark.createDataFrame(numbered, schema=spark_schema(numbered.schema))
    operation = _operation(dataset, batch.schema, frame)
    said = frame.selectExpr("__row", f"{operation} AS __decided")
    return [str(row["__decided"]) for row in said.orderBy("__row").collect()]


def first_rejected(derived: DataFrame) -> Mapping[str, Any] | None:
    """The quarantined record that stands first, by file and offset; None when there is none."""
    rejected = derived.where(within(h.Partition.QUARANTINE))
    row = rejected.selectExpr(f"{h.QUARANTINE}.*").orderBy("file", "offset").first()
    return None if row is None else row.asDict()


def has_truncates(batch: DatasetBatch, derived: DataFrame, dataset: ResolvedDataset) -> bool:
    """Whether the condition of the settings makes a row of a batch a truncate."""
    if dataset.truncates is None or batch.rows.num_rows == 0:
        return False
    return not derived.where("__decided = 'T'").isEmpty()


def _suspects(batch: DatasetBatch, shape: Shape, horizon: str | None) -> Any:
    """Which rows may be rejected: those need their raw bytes."""
    suspects: Any = pa.array([False] * batch.rows.num_rows, pa.bool_())
    if shape.append_only:
        return suspects
    if horizon is not None:
        suspects = pc.less_equal(batch.rows.column("__ci"), horizon)
    for key in shape.keys:
        if key not in batch.rows.column_names:
            return pa.array([True] * batch.rows.num_rows, pa.bool_())
        suspects = pc.or_(suspects, pc.is_null(batch.rows.column(key)))
    return suspects


def _landed_frame(spark: SparkSession, batch: DatasetBatch, suspects: Any) -> DataFrame:
    """The rows of a batch, and one row for each record that was rejected while it was read."""
    rows = batch.with_raw(suspects)
    count = rows.num_rows
    for name in ("__rule", "__error"):
        rows = rows.append_column(name, pa.nulls(count, pa.string()))
    if batch.rejected:
        rows = pa.concat_tables([rows, _rejected(batch, rows.schema)])
    schema = spark_schema(rows.schema)
    return spark.createDataFrame(rows, schema=schema)


def _rejected(batch: DatasetBatch, schema: pa.Schema) -> pa.Table:
    given = {
        "__file": [r.file for r in batch.rejected],
        "__offset": [r.offset for r in batch.rejected],
        "__raw": [r.raw for r in batch.rejected],
        "__rule": [r.rule for r in batch.rejected],
        "__error": [r.error for r in batch.rejected],
    }
    count = len(batch.rejected)
    arrays = [
        pa.array(given[f.name], f.type) if f.name in given else pa.nulls(count, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _operation(dataset: ResolvedDataset, schema: Mapping[str, DataType], landed: DataFrame) -> str:
    place = place_of(landed)
    cases = ["WHEN __rule IS NOT NULL THEN NULL"]
    for expression, operation in (
        (dataset.truncates, "T"),
        (dataset.deletes, "D"),
    ):
        if expression is not None:
            text = expression_over(expression, schema, where=dataset.name, place=place)
            cases.append(f"WHEN coalesce(CAST(({text}) AS BOOLEAN), false) THEN '{operation}'")
    return f"CASE {' '.join(cases)} ELSE coalesce(__op, 'U') END"


def _rule(shape: Shape, horizon: str | None, present: set[str]) -> str:
    cases = ["WHEN __rule IS NOT NULL THEN __rule"]
    if not shape.append_only:
        missing = " OR ".join(
            f"{quote(key)} IS NULL" if key in present else "true" for key in shape.keys
        )
        cases.append(f"WHEN __decided <> 'T' AND ({missing}) THEN 'null_key'")
        if horizon is not None:
            cases.append(
                f"WHEN __decided <> 'T' AND __seq <= {literal(horizon)} THEN 'older_than_horizon'"
            )
    return f"CASE {' '.join(cases)} END"


def _error() -> str:
    cases = " ".join(f"WHEN '{rule}' THEN {literal(text)}" for rule, text in ERRORS.items())
    return f"coalesce(__error, CASE __verdict {cases} END)"


def _table_columns(
    shape: Shape,
    present: set[str],
    times: Times,
) -> dict[str, str]:
    """Column of the internal table → SQL expression over the judged batch."""
    good = "__verdict IS NULL"
    engine = timestamp_literal(times.now)
    loaded = timestamp_literal(times.load_started or times.now)
    time = f"IF(__decided = 'L', {loaded}, coalesce(__ts, {engine}))"
    target = h.Partition.CURRENT if shape.append_only else h.Partition.CHANGES
    row = {
        h.PARTITION: f"IF({good}, '{target}', '{h.Partition.QUARANTINE}')",
        h.CHANGE_IDENTIFIER: f"IF({good}, __ci, NULL)",
        h.SEQUENCE_TAIL: f"IF({good}, __tail, NULL)",
        h.SOURCE_POSITION: f"IF({good}, __position, NULL)",
        h.OPERATION: f"IF({good}, __decided, NULL)",
        h.TIMESTAMP: f"IF({good}, {time}, NULL)",
        h.INSERTED_TIMESTAMP: f"IF({good}, {engine}, NULL)",
        h.QUARANTINE: _quarantine(),
    }
    if shape.append_only:
        row[h.FROM_TIMESTAMP] = f"IF({good}, {time}, NULL)"
        row[h.MODIFIED_TIMESTAMP] = row[h.INSERTED_TIMESTAMP]
    if shape.keys and all(key in present for key in shape.keys):
        row[h.KEY_HASH] = f"IF({good} AND __decided <> 'T', {key_hash(shape)}, NULL)"
        row[h.OLD_KEY] = (
            f"IF({good} AND __old IS NOT NULL AND size(__unsent) > 0, "
            f"{key_text(shape, '__old.')}, NULL)"
        )
    data = {}
    for name in shape.columns:
        sent = name in present and name not in shape.hidden
        value = f"CAST({quote(name)} AS {shape.type_of(name)})" if sent else "NULL"
        data[name] = f"IF({good} AND __decided <> 'T', {value}, NULL)"
    return table_row(shape, row, data)


def _quarantine() -> str:
    identifier = "substr(sha1(concat_ws(':', __file, CAST(__offset AS STRING))), 1, 12)"
    fields = (
        f"'id', {identifier}, 'file', __file, 'offset', __offset, "
        "'rule', __verdict, 'error', __why, 'raw', __raw"
    )
    # The cast lets every field be NULL: Arrow refuses a NULL whose fields may not be.
    return f"CAST(IF(__verdict IS NULL, NULL, named_struct({fields})) AS {h.QUARANTINE_TYPE})"
