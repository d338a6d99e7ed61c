"""Rows of the internal table from a landed batch: in SQL, and the same in Arrow.

Each row gets its operation, key hash, times and partition, or the rule that rejects the record.
`derive` does it by a query for any batch: only there run the SQL expressions of users, which
`transform.expressions` has validated. `arrow_rows` makes equal rows without a query where nothing
of them takes SQL: keys are integers or text, and conditions only compare a column with texts. The
two forms of each column stand next to each other; a test holds them equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import TIMESTAMP_UTC, DatasetBatch, Rejected
from polynya.lake.copy.mapped_values import place_of
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import (
    SEQUENCE,
    ignored_nulls,
    key_hash,
    key_text,
    left_out,
    selected,
    table_row,
    timestamp_literal,
    within,
)
from polynya.lake.spark.api import DataFrame, SparkSession
from polynya.lake.spark.arrow import spark_schema
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.headers import Partition
from polynya.model.names import literal, quote
from polynya.model.types import BIGINT, INT, STRING, DataType, Void
from polynya.observe.trace import span
from polynya.transform.expressions import TextCondition, choice_of, expression_over

#: Columns of the result that only the copy step uses, after those of the table.
HELPERS = ("__decided", "__seq")
#: Rule that rejects a row here → what the quarantine says of it.
ERRORS = {
    "null_key": "a key column is NULL: the record cannot be matched",
    "older_than_horizon": "the event is older than the tombstones that are kept "
    "(tombstone_retention), so that its place in history is unknown",
}
#: Keys whose canonical text is that of Arrow. Semantics section 3, "Key hash".
_HASHED = frozenset({INT, BIGINT, STRING})
_SEPARATOR = "\b"
_NOTHING = TextCondition("", frozenset())
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


@dataclass(frozen=True, slots=True)
class Times:
    """Times of a copy.

    Attributes:
        now: engine time of the step.
        load_started: when the first load began; None: it begins now.
        horizon: the highest sequence whose tombstone was removed: older events cannot be placed any
            more. None where none was.
        follows: change identifier that all events come after (`copy._follows`), None where one may
            be late.
    """

    now: datetime
    load_started: datetime | None = None
    horizon: str | None = None
    follows: str | None = None


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
    with_op = f"SELECT *, {_operation_in_sql(dataset, schema, landed)} AS __decided FROM {view}"
    sequenced = f"SELECT *, {SEQUENCE} AS __seq FROM ({with_op})"
    judged = (
        f"SELECT *, {_rule_in_sql(shape, times.horizon, present)} AS __verdict FROM ({sequenced})"
    )
    explained = f"SELECT *, {_error_in_sql()} AS __why FROM ({judged})"
    columns = _columns_in_sql(shape, present, times)
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


@span("derive in memory")
def arrow_rows(
    batch: DatasetBatch,
    dataset: ResolvedDataset,
    shape: Shape,
    times: Times,
    *,
    hashed: bool = True,
) -> pa.Table | None:
    """Rows of a batch in columns of the internal table; those that are missing are NULL.

    `hashed`: they have the hash of their key. None when they take a query.
    """
    operations = _operations_in_arrow(batch, dataset)
    if operations is None or not _is_plain(batch, dataset, shape):
        return None
    if hashed and not can_hash(shape):
        return None
    rows = batch.rows.append_column("__decided", operations)
    rules = _rules_in_arrow(rows, shape, times.horizon)
    bad = list(batch.rejected)
    if rules.null_count < len(rules):
        bad += _refused_in_arrow(batch, rules)
        rows = rows.filter(pc.is_null(rules))
    good = _columns_in_arrow(rows, shape, times, hashed=hashed)
    if not bad:
        return good
    return pa.concat_tables([good, _quarantine_in_arrow(bad)], promote_options="default")


def _is_plain(batch: DatasetBatch, dataset: ResolvedDataset, shape: Shape) -> bool:
    """Whether the values are stored as they landed, and no header column takes SQL."""
    present = batch.rows.column_names
    unsent = batch.rows.column("__unsent")
    if ignored_nulls(dataset) or unsent.null_count < len(unsent):
        return False
    # The rows of an extract may tell themselves when they changed.
    own_times = dataset.landing.extracts is not None and dataset.events.timestamp is not None
    if own_times or not all(key in present for key in shape.keys):
        return False
    if shape.append_only and any(batch.rows.column(key).null_count for key in shape.keys):
        return False
    return all(batch.schema.get(name, kind) == kind for name, kind in shape.columns.items())


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


def _operation_in_sql(
    dataset: ResolvedDataset, schema: Mapping[str, DataType], landed: DataFrame
) -> str:
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


def _operations_in_arrow(batch: DatasetBatch, dataset: ResolvedDataset) -> pa.ChunkedArray | None:
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


def decided(spark: SparkSession, batch: DatasetBatch, dataset: ResolvedDataset) -> list[str]:
    """The operation of each row of a batch, by SQL; nothing is written."""
    landed = batch.rows.append_column("__rule", pa.nulls(batch.rows.num_rows, pa.string()))
    numbered = landed.append_column("__row", pa.arange(0, landed.num_rows))
    frame = spark.createDataFrame(numbered, schema=spark_schema(numbered.schema))
    operation = _operation_in_sql(dataset, batch.schema, frame)
    decided = frame.selectExpr("__row", f"{operation} AS __decided")
    return [str(row["__decided"]) for row in decided.orderBy("__row").collect()]


def has_truncates(batch: DatasetBatch, derived: DataFrame, dataset: ResolvedDataset) -> bool:
    """Whether the condition of the settings makes a row of a batch a truncate."""
    if dataset.truncates is None or batch.rows.num_rows == 0:
        return False
    return not derived.where("__decided = 'T'").isEmpty()


def choice_in(condition: str | None, schema: Mapping[str, DataType]) -> TextCondition | None:
    """A condition of the settings as a choice, of no row without one; None when it takes SQL.

    `schema` has all source columns.
    """
    if condition is None:
        return _NOTHING
    choice = choice_of(condition)
    if choice is None or schema.get(choice.column, STRING) not in {STRING, Void()}:
        return None
    return choice


def chosen(choice: TextCondition, rows: pa.RecordBatch | pa.Table) -> Any | None:
    """Which rows a choice names, never NULL; None for no row."""
    if choice.column not in rows.schema.names:
        return None
    texts = pa.array(sorted(choice.texts), pa.string())
    named = pc.is_in(rows.column(choice.column), texts)
    return named if pc.any(named, min_count=0).as_py() else None


def _rule_in_sql(shape: Shape, horizon: str | None, present: set[str]) -> str:
    cases = ["WHEN __rule IS NOT NULL THEN __rule"]
    if not shape.append_only:
        missing = " OR ".join(
            f"{quote(key)} IS NULL" if key in present else "true" for key in shape.touching
        )
        cases.append(f"WHEN __decided <> 'T' AND ({missing}) THEN 'null_key'")
        if horizon is not None:
            cases.append(
                f"WHEN __decided <> 'T' AND __seq <= {literal(horizon)} THEN 'older_than_horizon'"
            )
    return f"CASE {' '.join(cases)} END"


def _rules_in_arrow(rows: pa.Table, shape: Shape, horizon: str | None) -> Any:
    """The rule that rejects each row, NULL for the good ones."""
    rules: Any = pa.nulls(rows.num_rows, pa.string())
    if shape.append_only:
        return rules
    if horizon is not None:
        tails = pc.fill_null(rows.column("__tail"), "")
        places = pc.binary_join_element_wise(rows.column("__ci"), tails, "")
        rules = pc.if_else(pc.less_equal(places, horizon), "older_than_horizon", rules)
    # Records that replace their elements have none of the keys of one. Other rows have all: a
    # record with an element that lacks one was rejected when it was mapped.
    for key in shape.touching:
        if rows.column(key).null_count:
            rules = pc.if_else(pc.is_null(rows.column(key)), "null_key", rules)
    return rules


def _error_in_sql() -> str:
    cases = " ".join(f"WHEN '{rule}' THEN {literal(text)}" for rule, text in ERRORS.items())
    return f"coalesce(__error, CASE __verdict {cases} END)"


def _refused_in_arrow(batch: DatasetBatch, rules: Any) -> list[Rejected]:
    refused = pc.is_valid(rules)
    rows = batch.with_raw(refused).select(["__file", "__offset", "__raw"]).filter(refused)
    return [
        Rejected(row["__file"], row["__offset"], rule, ERRORS[rule], row["__raw"])
        for row, rule in zip(rows.to_pylist(), rules.drop_null().to_pylist(), strict=True)
    ]


def _columns_in_sql(
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
        h.QUARANTINE: _quarantine_in_sql(),
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


def _columns_in_arrow(rows: pa.Table, shape: Shape, times: Times, *, hashed: bool) -> pa.Table:
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
    if shape.keys and hashed:
        columns[h.KEY_HASH] = key_hashes([rows.column(key).combine_chunks() for key in shape.keys])
    sent = set(rows.column_names) - shape.hidden
    columns |= {name: rows.column(name) for name in shape.data if name in sent}
    return pa.table(columns)


def can_hash(shape: Shape) -> bool:
    """Whether `key_hashes` takes the keys of a table."""
    return all(shape.columns.get(key) in _HASHED for key in shape.keys)


def key_hashes(keys: Sequence[pa.Array]) -> pa.Array:
    """SHA-1 over the canonical texts of keys, of types that `can_hash` allows.

    NULLs are skipped, as `sql.key_hash` does.
    """
    texts = [key.cast(pa.string()) for key in keys]
    joined = (
        texts[0].fill_null("")
        if len(texts) == 1
        else pc.binary_join_element_wise(*texts, _SEPARATOR, null_handling="skip")
    )
    sha1 = hashlib.sha1
    digests = b"".join(
        [sha1(text, usedforsecurity=False).digest()
         for text in joined.cast(pa.binary()).to_pylist()]
    )  # fmt: skip
    fixed = pa.Array.from_buffers(pa.binary(20), len(joined), [None, pa.py_buffer(digests)])
    return fixed.cast(pa.binary())


def _quarantine_in_sql() -> str:
    identifier = "substr(sha1(concat_ws(':', __file, CAST(__offset AS STRING))), 1, 12)"
    fields = (
        f"'id', {identifier}, 'file', __file, 'offset', __offset, "
        "'rule', __verdict, 'error', __why, 'raw', __raw"
    )
    # The cast lets every field be NULL: Arrow refuses a NULL whose fields may not be.
    return f"CAST(IF(__verdict IS NULL, NULL, named_struct({fields})) AS {h.QUARANTINE_TYPE})"


def _quarantine_in_arrow(bad: list[Rejected]) -> pa.Table:
    records = [
        {
            "id": hashlib.sha1(
                f"{record.file}:{record.offset}".encode(), usedforsecurity=False
            ).hexdigest()[:12],
            "file": record.file,
            "offset": record.offset,
            "rule": record.rule,
            "error": record.error,
            "raw": record.raw,
        }
        for record in bad
    ]
    partition = pa.repeat(pa.scalar(str(Partition.QUARANTINE)), len(bad))
    return pa.table({h.PARTITION: partition, h.QUARANTINE: pa.array(records, _QUARANTINED)})


def first_rejected_in_spark(derived: DataFrame) -> Mapping[str, Any] | None:
    """The quarantined record that stands first, by file and offset; None when there is none."""
    rejected = derived.where(within(h.Partition.QUARANTINE))
    row = rejected.selectExpr(f"{h.QUARANTINE}.*").orderBy("file", "offset").first()
    return None if row is None else row.asDict()


def first_rejected_in_arrow(rows: pa.Table) -> Mapping[str, Any] | None:
    """The quarantined record that stands first, by file and offset; None when there is none."""
    if h.QUARANTINE not in rows.column_names:
        return None
    rejects = rows.column(h.QUARANTINE).drop_null().to_pylist()
    return min(rejects, key=lambda record: (record["file"], record["offset"]), default=None)
