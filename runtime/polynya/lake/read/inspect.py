"""Look into tables without a JVM: state, pending changes, quarantine, one record.

`status` and `quarantine list` use it: they should answer at once, also while another process works
on the tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from polynya.lake.fold.shape import Shape
from polynya.lake.read.committed import CommittedTable, LiveFile
from polynya.lake.spark import api
from polynya.lake.spark.catalog import CATALOG, internal_name
from polynya.lake.table.shaping import shape_of
from polynya.lake.table.state import (
    ApplyState,
    CopyState,
    DecidedChange,
    ExpectationFailures,
)
from polynya.lake.warehouse.tables import Loaded, Tables
from polynya.model import headers as h
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.headers import WITH_DATA, Partition
from polynya.model.names import literal, quote, quote_path
from polynya.model.types import parse_type

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from polynya.lake.spark.api import SparkSession


def see_newest(spark: SparkSession) -> None:
    """Forget the commits of all tables that the session has read.

    Iceberg's catalog keeps tables as they were when they were first read. That gives the parts of
    one statement one commit, and would give later statements the same one.
    """
    jvm: Any = spark._jvm
    for (schema,) in spark.sql(f"SHOW NAMESPACES IN {CATALOG}").collect():
        for row in spark.sql(f"SHOW TABLES IN {quote_path(CATALOG, schema)}").collect():
            place = jvm.org.apache.iceberg.spark.Spark3Util.catalogAndIdentifier(
                spark._jsparkSession, quote_path(CATALOG, schema, row["tableName"])
            )
            place.catalog().invalidateTable(place.identifier())


def has_view(spark: SparkSession, view: str) -> bool:
    """Whether a view can be read."""
    try:
        spark.sql(f"SELECT 1 FROM {view} LIMIT 0")
    except api.PySparkException:
        return False
    return True


def conditions(spark: SparkSession, view: str, key: Mapping[str, str]) -> str:
    """SQL condition for the record with the given key, values as text.

    Raises ConfigError for unknown columns.
    """
    types = {
        field.name: field.dataType.simpleString()
        for field in spark.sql(f"SELECT * FROM {view} LIMIT 0").schema
    }
    for name in key:
        if name not in types:
            raise WRONG_USAGE(f"{view} has no column `{name}`", fix=f"columns: {', '.join(types)}")
    return " AND ".join(
        f"{quote(name)} = CAST({literal(value)} AS {types[name]})" for name, value in key.items()
    )


def versions_and_events(
    spark: SparkSession, view: str, changes: str, where: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the record in the History view (Current, without history) and in the Changes view."""
    columns = spark.sql(f"SELECT * FROM {view} LIMIT 0").columns
    order = (
        f"ORDER BY {h.FROM_TIMESTAMP}, coalesce({h.TO_TIMESTAMP}, TIMESTAMP '9999-12-31')"
        if h.FROM_TIMESTAMP in columns
        else ""
    )
    # Start-up time: sqlglot.
    from polynya.lake.read.query import run_query

    versions = run_query(spark, f"SELECT * FROM {view} WHERE {where} {order}")
    events = run_query(
        spark, f"SELECT * FROM {changes} WHERE {where} ORDER BY {h.CHANGE_IDENTIFIER}"
    )
    return versions, events


#: Number of newest copies that the rate of a dataset is computed from.
RATE_COPIES: Final = 10


@dataclass(frozen=True, slots=True)
class DatasetStatus:
    """What is known of one dataset.

    Sizes in bytes, ages and freshness in seconds, None when there is nothing. `retained_since` is
    the time from which applied events are kept, None when all of them are, or none. `lost_batches`
    are landed batches that were gone before they were copied, `lost_messages` those in them, as far
    as that is known. `rows_unparsed` of the quarantined could not be parsed; `rows_per_second` came
    in by the newest `RATE_COPIES` copies, None before the second. `reload_next` is when a scheduled
    reload is due, `reload_ended` when the last one ended, whose rows the next two count.

    `inserts`, `updates`, `deletes` and `truncates` count what applied events did since
    `counted_since`, None for since the table exists. `shape_changes` are the newest changes of the
    source's shape, the oldest first, `earlier_shape_changes` counts those before. `failures` has
    the expectations of a derived table that committed results have failed, by their names. The last
    step of a derived table began at `derived_at` and read `inputs`: the snapshot of each internal
    table, or the version of a registered one.
    """

    dataset: str
    suspended: str | None
    suspended_where: str | None
    copied_to: str | None
    copied_at: str | None
    applied_to: str | None
    applied_at: str | None
    last_apply_reason: str | None
    last_apply_seconds: float | None
    applies: int
    pending_rows: int
    pending_bytes: int
    pending_files: int
    pending_age_seconds: float | None
    current_rows: int
    retained_rows: int
    retained_bytes: int
    retained_since: str | None
    freshness_seconds: float | None
    rows_in: int
    rows_out: int
    rows_filtered: int
    rows_quarantined: int
    counters: Mapping[str, int]
    conflicts: Mapping[str, int]
    epoch: int
    owner: str
    lost_batches: int = 0
    lost_messages: int = 0
    rows_unparsed: int = 0
    rows_per_second: float | None = None
    reload_next: str | None = None
    reload_ended: str | None = None
    reload_rows: int = 0
    reload_quarantined: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    truncates: int = 0
    counted_since: str | None = None
    shape_changes: Sequence[DecidedChange] = ()
    earlier_shape_changes: int = 0
    failures: Mapping[str, ExpectationFailures] = field(default_factory=dict)
    derived_at: str | None = None
    inputs: Mapping[str, int] = field(default_factory=dict)


def load(catalog: Tables[Loaded], dataset: ResolvedDataset) -> Loaded | None:
    """The internal table of a dataset, None before the first run."""
    # Start-up time: PyIceberg.
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return catalog.load_table(internal_name(catalog, dataset))
    except NoSuchTableError:
        return None


def metadata_file(table: Table | CommittedTable) -> str:
    """The newest metadata file of a table: a path on this machine, or a location elsewhere."""
    return re.sub("^file:(//)?(?=/)", "", table.metadata_location)


def committed(table: Table | CommittedTable) -> CommittedTable:
    """A table that was loaded, as its files have it."""
    return table if isinstance(table, CommittedTable) else CommittedTable.of(table)


def states(table: Table | CommittedTable) -> tuple[CopyState, ApplyState]:
    """Both state rows of the current snapshot."""
    copy, apply = CopyState(), ApplyState()
    for row in committed(table).state_rows:
        if row.get(h.COPY_CHANGE_IDENTIFIER) is not None:
            copy = CopyState.from_json(row[h.STATE])
        else:
            apply = ApplyState.from_json(row[h.STATE])
    return copy, apply


def shape(
    table: Table | CommittedTable, dataset: ResolvedDataset, copy: CopyState | None = None
) -> Shape:
    """Shape of a dataset as its table has it now; `copy` is its state, where it was read before.

    A process that was killed between a change of columns and the commit of its state leaves a state
    that knows columns which the table lacks, or the reverse: what both know is shown.
    """
    found = committed(table)
    copy = states(found)[0] if copy is None else copy
    there = found.columns.keys()
    columns = {
        name: parse_type(text) for name, text in copy.columns.schema.items() if name in there
    }
    return shape_of(dataset, copy, columns, tuple(copy.columns.keys))


def status(table: CommittedTable, dataset: ResolvedDataset, now: datetime) -> DatasetStatus:
    """Figures of one dataset as of `now`."""
    copy, apply = states(table)
    pending = _counted(table.data_files({Partition.CHANGES}))
    retained = _counted(table.data_files({Partition.RETAINED}))
    suspended, totals = copy.decisions.suspended, copy.books.totals
    landed = copy.position.landed
    due = copy.reload_due(dataset)
    reloaded = copy.reloaded
    conflicts = ("insert_of_existing", "update_of_missing", "delete_of_missing", "raised")
    return DatasetStatus(
        dataset=dataset.relations.current,
        suspended=suspended.reason if suspended is not None else None,
        suspended_where=suspended.where if suspended is not None else None,
        copied_to=copy.position.copied_to,
        copied_at=copy.position.copied_at,
        applied_to=apply.applied_to,
        applied_at=apply.applied_at,
        last_apply_reason=apply.reason,
        last_apply_seconds=apply.seconds,
        applies=apply.applies,
        pending_rows=pending[0],
        pending_bytes=pending[1],
        pending_files=pending[2],
        pending_age_seconds=_age(_iso(copy.pending_since(apply)), now) if pending[2] else None,
        current_rows=table.rows(Partition.CURRENT),
        retained_rows=retained[0],
        retained_bytes=retained[1],
        retained_since=apply.retaining.since if apply.retaining is not None else None,
        freshness_seconds=_age(copy.position.newest_event, now),
        rows_in=totals.get("rows_in", 0),
        rows_out=totals.get("rows_out", 0),
        rows_filtered=totals.get("rows_filtered", 0),
        rows_quarantined=totals.get("rows_quarantined", 0),
        counters=copy.books.counters,
        conflicts={name: apply.totals.get(name, 0) for name in conflicts},
        epoch=max(copy.ownership.epoch, apply.ownership.epoch),
        owner=copy.ownership.owner,
        lost_batches=landed.lost_batches if landed is not None else 0,
        lost_messages=landed.lost_messages if landed is not None else 0,
        rows_unparsed=copy.books.unparsed,
        rows_per_second=copied_per_second(table.metadata.get("snapshots") or ()),
        reload_next=None if due is None else due.isoformat(),
        reload_ended=None if reloaded is None else reloaded.ended,
        reload_rows=0 if reloaded is None else reloaded.rows,
        reload_quarantined=0 if reloaded is None else reloaded.quarantined,
        inserts=apply.totals.get("inserts", 0) + (copy.books.inserted or 0),
        updates=apply.totals.get("updates", 0),
        deletes=apply.totals.get("deletes", 0),
        truncates=apply.totals.get("truncates", 0),
        counted_since=_counted_since(copy, apply, now),
        shape_changes=copy.shape_changes,
        earlier_shape_changes=copy.earlier_shape_changes,
        failures=copy.failures,
        derived_at=None if copy.derivation is None else copy.derivation.until,
        inputs={} if copy.derivation is None else copy.derivation.inputs,
    )


def _counted_since(copy: CopyState, apply: ApplyState, now: datetime) -> str | None:
    """Since when all that changes the table is counted, None for since it exists."""
    begun = [copy.books.inserted_since, apply.counted_from(now)]
    if copy.books.inserted is None and copy.books.totals.get("rows_out"):
        begun.append(now.isoformat())
    return max((moment for moment in begun if moment is not None), default=None)


def copied_per_second(snapshots: Sequence[Mapping[str, Any]]) -> float | None:
    """Records of the newest copies in a second, by what their snapshots say."""
    copies = [
        (int(snapshot["timestamp-ms"]), int(rows))
        for snapshot in snapshots
        if (rows := (snapshot.get("summary") or {}).get("polynya.rows-in")) is not None
    ]
    newest = sorted(copies)[-RATE_COPIES - 1 :]
    if len(newest) < 2 or newest[-1][0] <= newest[0][0]:
        return None
    seconds = (newest[-1][0] - newest[0][0]) / 1000
    return round(sum(rows for _, rows in newest[1:]) / seconds, 3)


def stored_rows(table: Table | CommittedTable) -> tuple[int, int, int]:
    """Rows, bytes and files of the partitions whose rows have data columns."""
    return _counted(committed(table).data_files(WITH_DATA))


def _counted(files: Sequence[LiveFile]) -> tuple[int, int, int]:
    """Rows, bytes and number of files."""
    return sum(file.rows for file in files), sum(file.size_bytes for file in files), len(files)


def quarantine(table: Table) -> pa.Table:
    """Quarantined records in order: id, file, offset, rule, error, raw (bytes)."""
    # Start-up time: PyIceberg, which finds the records of all rules by one scan.
    from pyiceberg.expressions import EqualTo

    # PyIceberg's own annotations hide the positional form of its expressions.
    where = EqualTo(term=h.PARTITION, value=str(Partition.QUARANTINE))
    scan = table.scan(row_filter=where, selected_fields=(h.QUARANTINE,))
    records = scan.to_arrow().select([h.QUARANTINE]).flatten()
    names = [name.removeprefix(f"{h.QUARANTINE}.") for name in records.column_names]
    return records.rename_columns(names).sort_by(
        [(name, "ascending") for name in ("file", "offset", "id")]
    )


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _age(moment: str | None, now: datetime) -> float | None:
    if moment is None:
        return None
    return round((now - datetime.fromisoformat(moment).astimezone(UTC)).total_seconds(), 3)
