"""Copy: commit one landed batch to its internal table.

Most batches only append: their events wait as pending changes, rejected records go to Quarantine,
and the rows of a first full load go straight to Current. Some batches are applied by the commit
that copies them. The live views fold pending changes of the records that they touch, and three
things reach further than that: a truncate touches every record, a change of key takes values from
another record, and an event older than either must redo it. Such a batch never becomes pending, so
that queries are right at every moment (docs/adr/0011-live-views.md).

The rows are made in Arrow where the batch only appends and nothing of it takes SQL, otherwise by a
query of Spark; `rows.py` has both. One commit writes all of them together with the source position
and the row accounting. The figures are those of the files that were written, so that no row is lost
or counted twice (semantics sections 8, 10, 11).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import NO_ORDER, AnyBatch, BatchFacts, DatasetBatch, FileProgress
from polynya.formats.files import FilesProgress, newest_only, still_told
from polynya.formats.landed import before_copy, is_landed_batch
from polynya.lake.apply import retention
from polynya.lake.apply.apply import Applier, ApplyResult
from polynya.lake.apply.retention import Retention
from polynya.lake.apply.run import ApplyLaterError, CopyParts
from polynya.lake.copy.rows import (
    HELPERS,
    Times,
    arrow_rows,
    derive,
    first_rejected_in_arrow,
    first_rejected_in_spark,
    has_truncates,
)
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import ignored_nulls, joined, sequence, timestamp_literal, within
from polynya.lake.iceberg.files import DataFile
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.iceberg.writing import stage, write_rows
from polynya.lake.spark.api import DataFrame, functions
from polynya.lake.spark.arrow import collected_rows
from polynya.lake.table.books import booked, rows_by_partition, with_changes, with_inserted
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import agreed_keys, has_rows
from polynya.lake.table.shape_changes import decided_changes
from polynya.lake.table.state import CopyState, SourceColumns, SourcePosition
from polynya.lake.table.suspension import Replayed, refuse_bad_records
from polynya.model import headers as h
from polynya.model.config.dataset import recorded
from polynya.model.formats import rules_of
from polynya.model.headers import Partition
from polynya.model.names import literal, quote
from polynya.model.positions import Gone, Reached, after_copy, gone
from polynya.transform.named_columns import named_columns

log = logging.getLogger(__name__)

#: Below this many rows one task writes the batch: more tasks would make more, smaller files.
ONE_TASK_ROWS: Final = 200_000
#: Most rows, and most bytes in memory, that are written without Spark.
FEW_ROWS: Final = 20_000
FEW_BYTES: Final = 32 * 1024 * 1024

TRUNCATES: Final = "a truncate reaches every record"
#: Digits of the tail that tells one load of a record from the one before: below those of reloads.
_LOAD_DIGITS: Final = 8
#: A loaded row that was not rejected.
_LOADED: Final = f"(__decided = 'L' AND {within(Partition.CHANGES)})"
_UNORDERED: Final = f"{h.CHANGE_IDENTIFIER} = '{NO_ORDER}'"
#: A row of a batch that was loaded without an order, and was not rejected.
_LOADED_UNORDERED: Final = f"(__decided = 'L' AND {_UNORDERED} AND {within(Partition.CHANGES)})"
#: A stored one, also when later ones made it an older version; reloads have places of their own.
_STORED: Final = (
    f"{within(Partition.CURRENT, Partition.PRIOR, Partition.CHANGES)} AND {_UNORDERED} "
    f"AND coalesce({h.SEQUENCE_TAIL}, '') NOT LIKE '~%'"
)


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What one batch became. rows_in = rows_out + rows_filtered + rows_quarantined.

    `applied` tells of the apply in the same commit, None when the batch was only copied.
    """

    rows_in: int
    rows_out: int
    rows_filtered: int
    rows_quarantined: int
    snapshot: int
    applied: ApplyResult | None = None


def copy_batch(
    target: DatasetTable,
    batch: DatasetBatch,
    applier: Applier,
    *,
    now: datetime,
    live_files: Iterable[str] | None = None,
    replayed: Replayed | None = None,
    in_arrow: bool = True,
    reason_to_apply: Callable[[int, int], str | None] = lambda *_: None,
) -> CopyResult:
    """Commit one landed batch to a table that was entered (`ownership.enter`).

    `live_files` are the landed files that still exist; the position forgets all others. `replayed`
    are quarantined records that this batch read again: they leave the quarantine in the same
    commit. `in_arrow`: rows are made in Arrow where that is possible; without it always by SQL,
    with the same result. `reason_to_apply` says for a number of events, and their bytes in memory,
    why they should be applied as soon as they are copied, None where they should not: one commit
    does both where that takes no query.

    Raises BadRecordError for a bad record of a dataset that does not quarantine them.
    """
    keys = agreed_keys(target, batch)
    target.grow(batch.schema, decided_changes(target.state.copy, batch.changes, now))
    following = state_after(target, batch, keys, now=now, live_files=live_files)
    if replayed is not None:
        following = replayed.discounted(following)
    shape = target.stored_shape(batch.schema, keys, following)
    at_once = _reason_to_apply_at_once(target, batch, shape)
    copying = _Copying(
        target,
        batch,
        shape,
        following,
        Times(
            now,
            following.position.load_started_at,
            target.state.apply.horizon,
            _follows(target, batch, shape),
        ),
        at_once=at_once,
        first_load=at_once is None and _is_first_load(target, batch, shape),
        repeats_load=_may_repeat(target, batch, shape),
        replayed=replayed,
    )
    rows = None
    if in_arrow and copying.appends:
        rows = arrow_rows(batch, target.dataset, shape, copying.times)
    if rows is None:
        return _copy_by_sql(copying, applier)
    _refuse_bad_records(copying, lambda: first_rejected_in_arrow(rows))
    reason = applied = None
    if _may_be_applied(copying, rows):
        reason = reason_to_apply(rows.num_rows, batch.size_bytes)
    if reason is not None and applier.folds_in_memory:
        applied = _apply_with_copy(copying, rows, applier, reason)
    return applied or _append(copying, write_rows(target.table, rows))


@dataclass(frozen=True, slots=True)
class _Copying:
    """A batch on its way into a table, and what was decided of it.

    Attributes:
        target: the table, which was entered.
        batch: what was read.
        shape: of the table with the columns of the batch.
        following: the state after the batch, but for its books.
        times: of the step.
        at_once: the reason to apply the batch with its copy, None when it can wait as pending
            changes; that the settings make a row a truncate is not looked at yet.
        first_load: loaded rows may go to Current unfolded.
        repeats_load: records of the batch may have been loaded before.
        replayed: quarantined records that the batch read again.
    """

    target: DatasetTable
    batch: DatasetBatch
    shape: Shape
    following: CopyState
    times: Times
    at_once: str | None
    first_load: bool
    repeats_load: bool
    replayed: Replayed | None

    @property
    def appends(self) -> bool:
        """Whether every row becomes a pending change, or a row of an append-only table."""
        return self.at_once is None and not self.first_load and not self.repeats_load


def state_after(
    target: DatasetTable,
    batch: AnyBatch,
    keys: tuple[str, ...],
    *,
    now: datetime,
    live_files: Iterable[str] | None,
) -> CopyState:
    """State of a table whose next commit copies the batch; books and owner are set there.

    `live_files` are the landed files that still exist; the position forgets all others.
    """
    before, dataset = target.state.copy, target.dataset
    facts = batch.facts
    columns = _columns(before.columns, batch, facts, keys)
    named = named_after(target, batch)
    unsent = {*columns.unsent, *ignored_nulls(dataset)}
    called = batch.called or before.membership.called
    before = before.with_shape_changes(decided_changes(before, batch.changes, now))
    settings = recorded(dataset, before.settings, has_rows=has_rows(target))
    return replace(
        before.with_settings(settings),
        position=_position(target, batch, facts, live_files, now),
        columns=replace(columns, unsent=sorted(unsent), named=named),
        membership=replace(before.membership, task=dataset.task, called=called),
        decisions=replace(before.decisions, accepted={}),
    )


def _columns(
    before: SourceColumns, batch: AnyBatch, facts: BatchFacts, keys: tuple[str, ...]
) -> SourceColumns:
    of_source = batch.of_source
    return replace(
        before,
        schema={name: str(datatype) for name, datatype in batch.schema.items()},
        keys=list(keys),
        unsent=sorted({*before.unsent, *facts.unsent}),
        has_old_keys=before.has_old_keys or facts.has_old_keys,
        declared=before.declared if batch.declared is None else list(batch.declared),
        source=source_after(batch),
        key_names=before.key_names if of_source is None else [list(n) for n in of_source.key_names],
    )


def named_after(target: DatasetTable, batch: AnyBatch) -> list[str] | None:
    """The columns whose names in the settings are taken as right once a batch is copied."""
    before = target.state.copy.columns.named
    if batch.met is not None and not batch.met:
        # Nothing could be read, so nothing was looked at.
        return before
    # Nobody looked at the names in tables of older versions; what they hold came by them.
    is_old = before is None and has_rows(target)
    of_load = batch.of_load and target.dataset.landing.extracts is None and not is_old
    named = (column.column for column in named_columns(target.dataset, of_load=of_load))
    return sorted({*(before or ()), *named})


def source_after(batch: AnyBatch) -> dict[str, str] | None:
    """The columns of the source, where they are not those of the table."""
    return None if batch.source is None else {n: str(kind) for n, kind in batch.source.items()}


def _position(
    target: DatasetTable,
    batch: AnyBatch,
    facts: BatchFacts,
    live_files: Iterable[str] | None,
    now: datetime,
) -> SourcePosition:
    before = target.state.copy.position
    files = before.files
    if batch.stream is None:
        files = remembered(target, before.files, batch.files, live_files)
    stamp = facts.newest.astimezone(UTC).isoformat() if facts.newest else None
    seen = [t for t in (before.newest_event, stamp) if t]
    copied = [c for c in (before.copied_to, facts.copied_to) if c]
    return replace(
        before,
        files=files,
        newest_event=max(seen, key=datetime.fromisoformat) if seen else None,
        copied_to=max(copied) if copied else None,
        copied_at=now.isoformat(),
        pending_since=_pending_since(target, now),
        load_started=_load_started(target, facts, now),
        stream=batch.stream or before.stream,
        landed=_reached(before, batch),
        eras=before.eras if batch.of_source is None else list(batch.of_source.eras),
    )


def _reached(before: SourcePosition, batch: AnyBatch) -> Reached | None:
    span = batch.landed
    if span is None:
        return before.landed
    reached = before_copy(before.landed, before.files, span.folder)
    return after_copy(reached, before.landed, span)


def missing(before: SourcePosition, batch: AnyBatch) -> tuple[Gone, ...]:
    """Landed batches that were gone before a table with this position copied them."""
    span = batch.landed
    if span is None:
        return ()
    return gone(before_copy(before.landed, before.files, span.folder), span)


def remembered(
    target: DatasetTable,
    before: Mapping[str, FileProgress],
    now: Mapping[str, FileProgress],
    live_files: Iterable[str] | None,
) -> dict[str, FileProgress]:
    """The files whose progress is remembered: those that exist, the newest where that says all.

    `live_files` are the landed files that still exist, None where they were not listed.
    """
    rules = rules_of(target.dataset.landing.format)
    if rules.in_order:
        return newest_only(before, now)
    live = live_files if live_files is None or isinstance(live_files, Set) else set(live_files)
    if rules.shares_files:
        return still_told(before, now, live, is_landed_batch)
    return FilesProgress.of(before).after(now, live)


def _load_started(target: DatasetTable, facts: BatchFacts, now: datetime) -> str | None:
    """Start of the first full load: what the source says of it, else when we began to read it."""
    if target.state.copy.position.load_started is not None:
        return target.state.copy.position.load_started
    if not facts.loads:
        return None
    has_load_time = rules_of(target.dataset.landing.format).tells_load_time
    earliest = facts.loaded_from if has_load_time else None
    started: datetime = earliest.astimezone(UTC) if earliest is not None else now
    return started.isoformat()


def _pending_since(target: DatasetTable, now: datetime) -> str:
    since = target.state.copy.position.pending_since
    return since if target.has_pending and since else now.isoformat()


def _reason_to_apply_at_once(target: DatasetTable, batch: DatasetBatch, shape: Shape) -> str | None:
    """The reason to apply the batch with its copy, None when it can wait as pending changes.

    That the settings make a row a truncate is not looked at here.
    """
    if shape.append_only or batch.rows.num_rows == 0:
        return None
    if pc.any(pc.equal(batch.rows.column("__op"), "T")).as_py():
        return TRUNCATES
    oldest = pc.min(batch.rows.column("__ci")).as_py()
    identifiers = (truncate.change_identifier for truncate in target.state.apply.truncates)
    newest_truncate = max(identifiers, default=None)
    if newest_truncate is not None and oldest <= newest_truncate:
        return "an event is older than a truncate"
    old, unsent = batch.rows.column("__old"), batch.rows.column("__unsent")
    if pc.any(pc.and_(pc.is_valid(old), pc.is_valid(unsent))).as_py():
        return "a change of key carries values over from another record"
    if shape.links and _older_than_a_link(target, oldest):
        return "an event may be older than a change of key that carried values over"
    return None


def _older_than_a_link(target: DatasetTable, oldest: str) -> bool:
    # Almost no file holds a former key, and statistics skip those that hold none.
    assert target.state.snapshot is not None
    links = target.spark.sql(
        f"SELECT 1 FROM {target.table.at(target.state.snapshot)} WHERE {h.OLD_KEY} IS NOT NULL "
        f"AND {h.CHANGE_IDENTIFIER} >= {literal(oldest)} "
        f"AND {within(Partition.CURRENT, Partition.PRIOR)} LIMIT 1"
    )
    return not links.isEmpty()


def _is_first_load(target: DatasetTable, batch: DatasetBatch, shape: Shape) -> bool:
    """Whether loaded rows may go to Current unfolded: nothing was ever applied or is pending."""
    if shape.append_only or target.state.apply.applies > 0:
        return False
    if not pc.any(pc.equal(batch.rows.column("__op"), "L")).as_py():
        return False
    return not target.has_pending


def _follows(target: DatasetTable, batch: DatasetBatch, shape: Shape) -> str | None:
    """The change identifier that all events of a batch come after, and nothing stored does.

    None where an event may be late, so that queries compare it with what is stored. Loaded rows of
    a batch may go to Current, beside pending ones that are older.
    """
    if shape.append_only or batch.rows.num_rows == 0:
        return None
    if pc.any(pc.equal(batch.rows.column("__op"), "L")).as_py():
        return None
    state = target.state
    identifiers = [state.copy.position.copied_to, state.apply.applied_to]
    if state.copy.reloading is not None:
        identifiers.append(state.copy.reloading.place)
    newest = max((identifier for identifier in identifiers if identifier), default=NO_ORDER)
    oldest: str = pc.min(batch.rows.column("__ci")).as_py() or NO_ORDER
    # An identifier that only continues a shorter one may stand before the tail of that one.
    return newest if oldest > newest and not oldest.startswith((newest, NO_ORDER)) else None


def _may_repeat(target: DatasetTable, batch: DatasetBatch, shape: Shape) -> bool:
    """Whether a batch has loaded rows without an order whose records the table may have."""
    if shape.append_only or not shape.keys or not has_rows(target):
        return False
    rows = batch.rows
    unordered = pc.equal(rows.column("__ci"), NO_ORDER)
    return bool(pc.any(pc.and_(unordered, pc.equal(rows.column("__op"), "L"))).as_py())


def _copy_by_sql(copying: _Copying, applier: Applier) -> CopyResult:
    """Make the rows of any batch by SQL and commit them; `applier` applies what cannot wait."""
    target, batch, shape = copying.target, copying.batch, copying.shape
    derived = derive(target.spark, batch, target.dataset, shape, copying.times)
    _refuse_bad_records(copying, lambda: first_rejected_in_spark(derived))
    if copying.repeats_load:
        derived = _placed_again(target, derived, shape)
    reason = copying.at_once
    if reason is None and not shape.append_only and has_truncates(batch, derived, target.dataset):
        reason = TRUNCATES
    if reason is not None:
        return _apply_at_once(copying, derived, applier, reason)
    rows, keeping = derived, None
    if copying.first_load:
        rows, keeping = _with_load_in_current(copying, derived)
    files = staged_rows(
        target.table,
        rows.drop(*HELPERS),
        batch,
        laid_out=copying.first_load or shape.append_only,
    )
    return _append(copying, files, keeping)


def _refuse_bad_records(copying: _Copying, first: Callable[[], Mapping[str, Any] | None]) -> None:
    """See `suspension.refuse_bad_records`; records that are read again were let in before."""
    if copying.replayed is None:
        refuse_bad_records(copying.target, first, copying.times.now)


def _placed_again(target: DatasetTable, derived: DataFrame, shape: Shape) -> DataFrame:
    """Rows of a batch whose records an earlier batch may have loaded, and readers have seen.

    Loaded rows without a sequence have no place in the order of events: all stand before every
    change. Two of one record in one batch are one row, since no query has seen the other. One of a
    later batch with other values becomes the next version, so that what was in Current is found in
    History; one with equal values keeps its very place.
    """
    keys, last_loaded = list(shape.keys), _last_loaded(target, derived, shape)
    values = [name for name in shape.values if name not in shape.hidden]
    same = joined((_is_same(shape, name, f"__was.v{n}") for n, name in enumerate(values)), "AND")
    number = "CAST(conv(coalesce(__was.tail, '0'), 16, 10) AS BIGINT) + 1"
    following = f"lpad(lower(hex({number})), {_LOAD_DIGITS}, '0')"
    tail = f"IF({same or 'true'}, __was.tail, {following})"
    again = f"__was IS NOT NULL AND {_LOADED_UNORDERED}"
    replaced = {
        h.SEQUENCE_TAIL: f"IF({again}, {tail}, {h.SEQUENCE_TAIL})",
        "__seq": f"IF({again}, {sequence(h.CHANGE_IDENTIFIER, tail)}, __seq)",
    }
    columns = [f"{replaced.get(name, quote(name))} AS {quote(name)}" for name in derived.columns]
    return derived.join(last_loaded, on=keys, how="left").selectExpr(*columns)


def _last_loaded(target: DatasetTable, derived: DataFrame, shape: Shape) -> DataFrame:
    """By key, what was loaded last of the records of a batch: its tail and values, as `__was`."""
    assert target.state.snapshot is not None, "there are rows"
    stored = target.spark.sql(
        f"SELECT *, coalesce({h.SEQUENCE_TAIL}, '') AS __tail "
        f"FROM {target.table.at(target.state.snapshot)} WHERE {_STORED}"
    )
    # A column that the batch has brought was NULL.
    has = set(stored.columns)
    values = [name for name in shape.values if name not in shape.hidden]
    fields = [
        f"'v{n}', {quote(name) if name in has else f'CAST(NULL AS {shape.type_of(name)})'}"
        for n, name in enumerate(values)
    ]
    members = ", ".join([f"'tail', {h.SEQUENCE_TAIL}", *fields])
    keys = list(shape.keys)
    wanted = derived.where(_LOADED_UNORDERED).select(*map(quote, keys)).distinct()
    newest = functions.expr(f"max_by(named_struct({members}), __tail)")
    of_batch = stored.join(wanted, on=keys, how="left_semi")
    return of_batch.groupBy(*map(quote, keys)).agg(newest.alias("__was"))


def _is_same(shape: Shape, name: str, was: str) -> str:
    kind = shape.columns[name]
    return f"{comparable(quote(name), kind)} <=> {comparable(was, kind)}"


def _apply_at_once(
    copying: _Copying, derived: DataFrame, applier: Applier, reason: str
) -> CopyResult:
    """Commit a batch together with the apply of all that is pending."""
    batch, target, now = copying.batch, copying.target, copying.times.now
    parts = _parts(copying, derived.persist())
    try:
        done = applier.apply(target, copying.shape, reason=reason, now=now, fresh=parts)
    finally:
        derived.unpersist()
    quarantined = int(parts.summary["polynya.rows-quarantined"])
    out = batch.rows_in - batch.rows_filtered - quarantined
    return CopyResult(batch.rows_in, out, batch.rows_filtered, quarantined, done.snapshot, done)


def _may_be_applied(copying: _Copying, rows: pa.Table) -> bool:
    """Whether rows that were made in Arrow could be applied by the commit that copies them."""
    target = copying.target
    return (
        rows.num_rows > 0
        and copying.replayed is None
        and not copying.shape.append_only
        and not target.is_applied
        and target.dataset.kept.changes_retention is None
        and pc.all(pc.equal(rows.column(h.PARTITION), str(Partition.CHANGES))).as_py()
    )


def _apply_with_copy(
    copying: _Copying, rows: pa.Table, applier: Applier, reason: str
) -> CopyResult | None:
    """Commit rows together with the apply of all that is pending.

    None, and nothing was written, where that apply costs more than one in memory.
    """
    target, batch, out = copying.target, copying.batch, rows.num_rows
    following, summary = booked(
        target, batch, copying.following, step="copy+apply", out=out, quarantined=0
    )
    following = with_changes(target, following, 0)
    following = with_inserted(target, following, 0, copying.times.now)
    parts = CopyParts(rows, None, following, summary, count=out, may_wait=True)
    try:
        done = applier.apply(
            target, copying.shape, reason=reason, now=copying.times.now, fresh=parts
        )
    except ApplyLaterError as why:
        log.debug("%s is copied and not applied yet: %s", target.table.name, why)
        return None
    return CopyResult(batch.rows_in, out, batch.rows_filtered, 0, done.snapshot, done)


def _parts(copying: _Copying, derived: DataFrame) -> CopyParts:
    """The batch as the applier takes it, counted. `derived` is read several times."""
    rejected = within(Partition.QUARANTINE)
    good = derived.where(f"NOT ({rejected})")
    bad = _sized(derived.where(rejected).drop(*HELPERS), copying.batch)
    out, quarantined = good.count(), bad.count()
    following, summary = booked(
        copying.target, copying.batch, copying.following, step="copy+apply",
        out=out, quarantined=quarantined,
    )  # fmt: skip
    return CopyParts(good, bad, following, summary, copying.replayed)


def _with_load_in_current(copying: _Copying, derived: DataFrame) -> tuple[DataFrame, Retention]:
    """Rows of a batch of a first load, and what the load does to the kept events."""
    target, batch, shape = copying.target, copying.batch, copying.shape
    keeping = retention.before(target, shape, copying.times.now)
    if _keys_differ(batch, shape) and not _has_current(target):
        loaded = to_current(derived, _LOADED, keeping.now)
    else:
        loaded = _into_current(target, derived, shape, keeping.now)
    if keeping.state is not None:
        loaded = retention.with_loaded_events(loaded, keeping.now)
    return loaded, keeping


def _keys_differ(batch: DatasetBatch, shape: Shape) -> bool:
    """Whether it is sure that no key stands twice. Sorting them by Spark takes a shuffle."""
    rows = batch.rows
    if not set(shape.keys) <= set(rows.column_names):
        return False
    keys = rows.select(shape.keys)
    # Different bits of a number that is not an integer can be the same key.
    if any(pa.types.is_floating(kind) or pa.types.is_nested(kind) for kind in keys.schema.types):
        return False
    return bool(keys.group_by(list(shape.keys)).aggregate([]).num_rows == rows.num_rows)


def _has_current(target: DatasetTable) -> bool:
    return bool(target.table.files(Partition.CURRENT, target.state.snapshot))


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


def staged_rows(
    table: IcebergTable, rows: DataFrame, batch: DatasetBatch, *, laid_out: bool = False
) -> list[DataFile]:
    """Write rows of a batch: few without Spark, whose plan of a write costs more than they do.

    `laid_out`: there may be rows of Current.
    """
    if batch.rows_held <= FEW_ROWS and batch.size_bytes <= FEW_BYTES:
        return write_rows(table, collected_rows(rows))
    return stage(table, _sized(rows, batch), laid_out=laid_out)


def _sized(rows: DataFrame, batch: DatasetBatch) -> DataFrame:
    """Rows of a batch in as many tasks as are worth their files."""
    return rows.coalesce(1) if batch.rows.num_rows <= ONE_TASK_ROWS else rows


def _append(
    copying: _Copying, staged: Sequence[DataFile], keeping: Retention | None = None
) -> CopyResult:
    """Commit the files of a batch as they are."""
    batch, target, replayed = copying.batch, copying.target, copying.replayed
    counts = rows_by_partition(staged)
    quarantined = counts.pop(Partition.QUARANTINE, 0)
    kept = counts.pop(Partition.RETAINED, 0)
    out = sum(counts.values())
    following, summary = booked(
        target, batch, copying.following, step="copy", out=out, quarantined=quarantined
    )
    following = with_changes(target, following, counts[Partition.CHANGES])
    following = with_inserted(target, following, counts[Partition.CURRENT], copying.times.now)
    apply = None
    if kept and keeping is not None:
        apply = replace(target.state.apply, retaining=keeping.following(kept))
    snapshot = target.commit(
        copy=following,
        apply=apply,
        add=staged,
        removed=replayed.places if replayed is not None else None,
        summary=summary,
    )
    return CopyResult(batch.rows_in, out, batch.rows_filtered, quarantined, snapshot)
