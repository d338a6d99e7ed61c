"""Applied events that are kept: what a step adds to the partition `retained`, and what leaves it.

Kept events and the versions that they made carry the same engine time, later than that of any
earlier step. So a single time, `Retaining.since`, separates the versions whose events are kept from
the base, whose events are not; and whole files expire
(docs/adr/0022-retained-events-and-retention.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from polynya.lake.apply.run import ApplyRun
from polynya.lake.fold.columns import EVENT_HEADERS
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import key_hash, table_row, timestamp_literal, within
from polynya.lake.iceberg.files import DataFile
from polynya.lake.spark.api import DataFrame, functions
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import Retaining
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import quote
from polynya.observe.trace import span

_TICK = timedelta(microseconds=1)
_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Retention:
    """What one step does to the kept events.

    `now` is the engine time of the step and `state` describes the partition before it, None where
    nothing is kept. `add` are the `count` rows that the step keeps, None for none; `remove` are
    files that it takes out.
    """

    now: datetime
    state: Retaining | None = None
    add: DataFrame | None = None
    count: int = 0
    remove: tuple[DataFile, ...] = ()

    def following(self, count: int) -> Retaining | None:
        """State after the step, which keeps `count` more rows."""
        if self.state is None or count == 0:
            return self.state
        time, oldest = self.now.isoformat(), self.state.oldest
        return replace(self.state, latest=time, oldest=oldest or time, rows=self.state.rows + count)


@dataclass(frozen=True, slots=True)
class ExpiredEvents:
    """Files of kept events that are old enough to go, and what is kept without them."""

    state: Retaining
    files: tuple[DataFile, ...]


def before(target: DatasetTable, shape: Shape, now: datetime) -> Retention:
    """What is kept before a step, and the time of the step: later than that of any before it."""
    if target.dataset.kept.changes_retention is None or shape.append_only:
        return Retention(now)
    state = target.state.apply.retaining or Retaining(since=_newest_version(target))
    times = [datetime.fromisoformat(time) + _TICK for time in (state.since, state.latest) if time]
    return Retention(max([now, *times]), state)


@span("plan")
def plan(run: ApplyRun, now: datetime) -> Retention:
    """What an apply does to the kept events."""
    target, fresh = run.target, run.fresh
    retention = before(target, run.shape, now)
    if retention.state is None:
        forgets = target.state.apply.retaining is not None
        return replace(retention, remove=_all_files(run) if forgets else ())
    count = sum(file.rows for file in target.table.files(Partition.CHANGES, run.snapshot))
    if fresh is not None:
        count += fresh.frame(target.spark).count() if fresh.count is None else fresh.count
    if count:
        retention = replace(retention, add=_consumed(run, retention.now), count=count)
    if fresh is not None and fresh.instead:
        return replace(retention, state=Retaining(), remove=_all_files(run))
    expiring = expired(target, run.snapshot, retention)
    return (
        retention
        if expiring is None
        else replace(retention, state=expiring.state, remove=expiring.files)
    )


def events(run: ApplyRun, keeping: Retention) -> DataFrame | None:
    """All kept events, those of this apply too; None for a dataset that keeps none."""
    if keeping.state is None:
        return None
    kept = run.sql(f"SELECT * FROM {run.table} WHERE {within(Partition.RETAINED)}")
    return kept if keeping.add is None else kept.unionByName(keeping.add)


def with_loaded_events(loaded: DataFrame, now: datetime) -> DataFrame:
    """Rows of a first load, and each that goes straight to Current once more as a kept event."""
    twice = f"explode(IF({h.PARTITION} = '{Partition.CURRENT}', array(false, true), array(false)))"
    values = {
        h.PARTITION: f"'{Partition.RETAINED}'",
        h.INSERTED_TIMESTAMP: timestamp_literal(now),
        h.WAS_CURRENT_FROM: timestamp_literal(now),
        h.FROM_TIMESTAMP: "NULL",
        h.MODIFIED_TIMESTAMP: "NULL",
    }
    replaced = {
        name: functions.expr(f"IF(__retained, {value}, {name})") for name, value in values.items()
    }
    copies = loaded.withColumn("__retained", functions.expr(twice))
    return copies.withColumns(replaced).drop("__retained")


def _newest_version(target: DatasetTable) -> str | None:
    """When the newest version entered the table, None for a table that never held one."""
    snapshot = target.state.snapshot
    stored = (Partition.CURRENT, Partition.PRIOR)
    if snapshot is None or not any(target.table.files(partition, snapshot) for partition in stored):
        return target.state.apply.applied_at
    newest = target.spark.sql(
        f"SELECT unix_micros(max(coalesce({h.WAS_CURRENT_FROM}, {h.MODIFIED_TIMESTAMP}))) "
        f"FROM {target.table.at(snapshot)} "
        f"WHERE {within(*stored)}"
    ).first()
    times = [target.state.apply.applied_at]
    if newest is not None and newest[0] is not None:
        times.append(_iso(newest[0]))
    return max((time for time in times if time), key=datetime.fromisoformat, default=None)


def _all_files(run: ApplyRun) -> tuple[DataFile, ...]:
    return run.target.table.files(Partition.RETAINED, run.snapshot)


def expired(target: DatasetTable, snapshot: int, retention: Retention) -> ExpiredEvents | None:
    """Files whose events were all applied too long ago: their versions join the base.

    None where there is none. `retention` is what is kept, by `before`.
    """
    state, keep = retention.state, target.dataset.kept.changes_retention
    if state is None or state.oldest is None or not isinstance(keep, timedelta):
        return None
    limit = retention.now - keep
    if datetime.fromisoformat(state.oldest) >= limit:
        return None
    old: list[tuple[DataFile, int]] = []
    oldest: list[int] = []
    for file, bounds in target.table.ranges(Partition.RETAINED, snapshot, h.WAS_CURRENT_FROM):
        if bounds is not None and bounds[1] < (limit - _EPOCH) // _TICK:
            old.append((file, bounds[1]))
        elif bounds is not None:
            oldest.append(bounds[0])
    if not old:
        return None
    after = replace(
        state,
        since=_iso(max(newest for _, newest in old)),
        oldest=_iso(min(oldest)) if oldest else None,
        rows=state.rows - sum(file.rows for file, _ in old),
    )
    return ExpiredEvents(after, tuple(file for file, _ in old))


def _consumed(run: ApplyRun, now: datetime) -> DataFrame:
    """Events that an apply takes in, as rows of `retained`."""
    pending = run.sql(f"SELECT * FROM {run.table} WHERE {within(Partition.CHANGES)}")
    rows = _retained(run.shape, pending, now)
    if run.fresh is None:
        return rows
    return rows.unionByName(_retained(run.shape, run.fresh.frame(run.target.spark), now))


def _retained(shape: Shape, events: DataFrame, now: datetime) -> DataFrame:
    """Events as rows of the partition, in the order of the columns of the table."""
    there, time = set(events.columns), timestamp_literal(now)
    copied = f"coalesce({h.INSERTED_TIMESTAMP}, {time})" if h.INSERTED_TIMESTAMP in there else time
    row = {name: name for name in EVENT_HEADERS.values()}
    row |= {
        h.PARTITION: f"'{Partition.RETAINED}'",
        h.KEY_HASH: f"IF({h.OPERATION} = 'T', NULL, {key_hash(shape)})",
        h.INSERTED_TIMESTAMP: copied,
        h.WAS_CURRENT_FROM: time,
    }
    columns = table_row(shape, row)
    return events.selectExpr(*(f"{value} AS {quote(name)}" for name, value in columns.items()))


def _iso(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()
