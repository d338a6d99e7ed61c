"""Run the fold: events with stored versions, for appliers, rebuild and verify.

An apply folds pending events with the versions that they touch. `polynya verify` and `polynya
rebuild` run the same fold over base, kept and pending events and compare the result with what is
stored: verify reports the differences, rebuild writes them. They believe nothing stored except the
base, whose events are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import pyarrow as pa

from polynya.lake.apply.run import ApplyRun, Folded
from polynya.lake.fold import fold as fold_text
from polynya.lake.fold import fold as versions
from polynya.lake.fold import key_changes, sql, stored
from polynya.lake.fold.columns import STORED_NAMES, STORED_TYPE
from polynya.lake.fold.fold import TruncateEvent, as_sql, event_columns, fold, with_clause
from polynya.lake.fold.shape import Shape, comparable
from polynya.lake.fold.sql import (
    SEQUENCE,
    STORED_SEQUENCE,
    is_delete,
    key_text,
    timestamp_literal,
    within,
)
from polynya.lake.fold.stored import (
    ApplyFigures,
    RebuildFigures,
    apply_aggregates,
    rebuild_aggregates,
)
from polynya.lake.spark.api import DataFrame
from polynya.lake.table.state import Retaining
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import literal, quote

#: Rounds after which the estimate of a frame's size, to the third power in each, is too large a
#: number to compute with.
_UNESTIMATED_ROUNDS: Final = 4


def pending_events(run: ApplyRun) -> DataFrame:
    """Events of Changes and of the batch that is being copied, as input of the fold."""
    columns = event_columns(run.shape)
    pending = run.sql(f"SELECT {columns} FROM {run.table} WHERE {within(Partition.CHANGES)}")
    if run.fresh is None:
        return pending
    view = run.view(run.fresh.frame(run.target.spark))
    # A truncate has no key: it takes part in the fold through the list of truncates.
    return pending.unionByName(run.sql(f"SELECT {columns} FROM {view} WHERE {h.OPERATION} <> 'T'"))


def new_truncates(run: ApplyRun) -> list[TruncateEvent]:
    """Truncates of the batch that is being copied."""
    if run.fresh is None:
        return []
    if isinstance(run.fresh.events, pa.Table):
        # Few events are in memory where a step has compared rows: none of them is a truncate.
        return []
    truncates = run.fresh.events.where(f"{h.OPERATION} = 'T'").selectExpr(
        h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL, f"unix_micros({h.TIMESTAMP})"
    )
    return [TruncateEvent(*row) for row in truncates.collect()]


def folded_with_all(run: ApplyRun, events: DataFrame, truncates: Sequence[TruncateEvent]) -> Folded:
    """Fold events with every stored version."""
    stored_versions = run.sql(stored.everything(run.shape, run.table))
    return folded(run, stored_versions.unionByName(events), truncates)


def folded(run: ApplyRun, frame: DataFrame, truncates: Sequence[TruncateEvent]) -> Folded:
    """Fold events and stored versions, decide where each version goes."""
    listed = as_sql(truncates)
    if run.shape.links:
        frame = _with_carried_values(run, frame, listed)
    steps = [
        *fold(run.shape, run.view(frame), truncates=listed),
        ("placed", versions.placed(run.shape)),
    ]
    rows, counted = run.settle_counting(
        run.sql(f"{with_clause(steps)} SELECT * FROM placed"),
        [
            *apply_aggregates(run.shape),
            "max(__ci) AS applied_to",
            "count_if(__stored.late) AS late",
        ],
    )
    return Folded(rows, ApplyFigures.of(counted), counted["applied_to"], counted["late"])


def linked_keys(run: ApplyRun, *, touched: str, events: str) -> DataFrame:
    """Extend the touched records by those on the other end of a change of key.

    `touched` holds the key columns and `__oldest`, and so does the result. Added are the former
    keys that events refer to (their state at that moment is needed) and the records that took
    values from a touched one later on.
    """
    shape = run.shape
    linked = f"({key_changes.with_former_keys(shape, touched, events)})"
    links = f"({key_changes.stored_links(shape, run.table)})"
    while True:
        new = run.sql(key_changes.new_heirs(shape, links, linked))
        if new.isEmpty():
            return run.sql(f"SELECT * FROM {linked}")
        linked = run.view(run.settle(run.sql(key_changes.both(shape, linked, run.view(new)))))


def _with_carried_values(run: ApplyRun, frame: DataFrame, listed: str | None) -> DataFrame:
    """Put the carried values into the events of `frame` that changed a key.

    A chain of changes inside one batch (a→b→c) needs as many rounds as it is long; nearly always
    that is one.
    """
    links = frame.where(key_changes.IS_LINK).selectExpr(
        f"{key_text(run.shape)} AS key", "__former", f"{SEQUENCE} AS seq"
    )
    renamed = [(row["key"], row["__former"], row["seq"]) for row in links.collect()]
    rounds = _longest_chain(renamed)
    for _ in range(rounds):
        events = run.view(frame)
        carried = run.view(run.sql(key_changes.values_to_carry(run.shape, events, listed)))
        frame = run.settle(run.sql(key_changes.with_values(run.shape, events, carried)))
        if rounds > _UNESTIMATED_ROUNDS:
            frame = run.of_unknown_size(frame)
    return frame


def _longest_chain(links: list[tuple[str, str, str]]) -> int:
    """Number of links (new key, old key, sequence) in the longest chain of changes of key."""
    reached: dict[str, int] = {}
    for new, old, _ in sorted(links, key=lambda link: link[2]):
        reached[new] = max(reached.get(new, 0), 1 + reached.get(old, 0))
    return max(reached.values(), default=0)


#: Columns of a folded version that `fold.table_rows` and `differences` need.
_MADE = (
    "__ci", "__tail", "__position", "__op", "__ts", "__unsent", "__former", "__from", "__to",
    "__new_op", "__part", "__last",
)  # fmt: skip


def rebuilt(run: ApplyRun, truncates: Sequence[TruncateEvent]) -> Folded:
    """Every version that all events make, and what of it must be written or removed."""
    result = _derived(run, truncates, pending=True)
    rows, counted = run.settle_counting(_compared(run, result), rebuild_aggregates())
    pending = run.target.table.files(Partition.CHANGES, run.snapshot)
    events = sum(file.rows for file in pending)
    figures = RebuildFigures.of({**counted, "events": events})
    return Folded(rows, figures, result.applied_to)


def differences(run: ApplyRun, truncates: Sequence[TruncateEvent]) -> DataFrame:
    """Versions that are not stored as base and kept events make them.

    Without history only the newest of each record counts. Which others are kept for the sake of
    late events, and whether a version counts as insert or update, depends on what was stored when.
    Columns: the keys, `__seq` string, `__write` and `__drop` boolean (see `stored.MISSING`),
    `__wrong` array<string>, the names of the columns that differ.
    """
    result = _derived(run, truncates, pending=False)
    wrong = _compared(run, result).where("__write OR __drop")
    if not run.shape.history:
        wrong = wrong.where(f"coalesce(__last, __stored.part = '{Partition.CURRENT}')")
    if run.shape.expired is not None:
        # A delete has the age of the version before it, where that was there when it came.
        deletes = f"coalesce({is_delete('__new_op')}, {is_delete('__stored.op')}, false)"
        wrong = wrong.where(f"NOT {deletes}")
    return run.settle(wrong)


def base(run: ApplyRun, state: Retaining) -> str:
    """Query of the stored versions whose events are not kept, as input of the fold."""
    if state.since is None:
        return f"SELECT * FROM ({stored.everything(run.shape, run.table)}) WHERE false"
    since = timestamp_literal(datetime.fromisoformat(state.since))
    return (
        f"SELECT * FROM ({stored.everything(run.shape, run.table)}) "
        f"WHERE coalesce(coalesce(__stored.wcf, __stored.mod) <= {since}, true)"
    )


def _derived(run: ApplyRun, truncates: Sequence[TruncateEvent], *, pending: bool) -> Folded:
    state = run.target.state.apply.retaining
    assert state is not None, "the caller has seen that events are kept"
    partitions = [Partition.RETAINED, *([Partition.CHANGES] if pending else [])]
    events = run.sql(
        f"SELECT {event_columns(run.shape)} FROM {run.table} "
        f"WHERE {within(*partitions)} AND {h.OPERATION} <> 'T'"
    )
    return folded(run, run.sql(base(run, state)).unionByName(events), truncates)


def _compared(run: ApplyRun, result: Folded) -> DataFrame:
    """Derived and stored versions side by side, as `fold.placed` would leave them.

    `__stored` tells where a version is stored, and since when readers know it: a version that has
    to be written again is known since its event was applied.
    """
    shape = run.shape
    data = [
        f"coalesce(d.{quote(name)}, t.{quote(name)}) AS {quote(name)}"
        if name in shape.keys
        else f"d.{quote(name)}"
        for name in shape.data
    ]
    place = {name: f"t.__stored.`{name}`" for name in STORED_NAMES}
    place["wcf"] = "least(t.__stored.wcf, d.__applied)"
    fields = ", ".join(f"'{name}', {value}" for name, value in place.items())
    columns = [
        *data,
        *(f"d.{name}" for name in _MADE),
        "coalesce(d.__seq, t.__seq) AS __seq",
        "true AS __own",
        f"CAST(named_struct({fields}) AS {STORED_TYPE}) AS __stored",
        "coalesce(t.__stored.ins, d.__first) AS __ins",
        f"{_needed(run)} AS __kept",
        "t.__seq IS NOT NULL AS __there",
        f"{wrong_columns(shape)} AS __wrong",
    ]
    joined = (
        f"SELECT {', '.join(columns)} FROM ({_with_event_times(run, result)}) d "
        f"FULL OUTER JOIN ({_stored(run)}) t "
        f"ON {shape.key_match('d', 't')} AND d.__seq = t.__seq AND t.__rank = 1"
    )
    judged = f"SELECT *, __kept AND __there AND size(__wrong) = 0 AS __same FROM ({joined})"
    return run.sql(
        "SELECT *, __kept AND NOT __same AS __write, __there AND NOT __same AS __drop "
        f"FROM ({judged})"
    )


def _with_event_times(run: ApplyRun, result: Folded) -> str:
    """Derived versions, when their events were applied, and since when their records are known."""
    shape = run.shape
    applied = (
        f"SELECT {shape.key_list()}, {STORED_SEQUENCE} AS __seq, "
        f"min({h.WAS_CURRENT_FROM}) AS __applied "
        f"FROM {run.table} WHERE {within(Partition.RETAINED)} AND {h.OPERATION} <> 'T' "
        f"GROUP BY {shape.key_list()}, {STORED_SEQUENCE}"
    )
    first = (
        "min(coalesce(v.__ins, IF(v.__new_op = 'L', v.__from, a.__applied))) "
        f"OVER (PARTITION BY {shape.key_list('v')})"
    )
    return (
        f"SELECT v.*, a.__applied, {first} AS __first FROM {run.view(result.rows)} v "
        f"LEFT JOIN ({applied}) a ON {shape.key_match('v', 'a')} AND v.__seq = a.__seq "
        "WHERE v.__kept"
    )


def _stored(run: ApplyRun) -> str:
    """Stored versions; `__rank` numbers those that claim one place."""
    copies = (
        f"row_number() OVER (PARTITION BY {run.shape.key_list()}, __seq "
        "ORDER BY __stored.part, __stored.file, __stored.pos)"
    )
    sequenced = f"SELECT *, {SEQUENCE} AS __seq FROM ({stored.everything(run.shape, run.table)})"
    return f"SELECT *, {copies} AS __rank FROM ({sequenced})"


def _needed(run: ApplyRun) -> str:
    """Whether a version belongs into the table.

    A tombstone that is not stored and lies behind the horizon was removed by its own retention.
    """
    horizon = run.target.state.apply.horizon
    if run.shape.history or horizon is None:
        return "d.__seq IS NOT NULL"
    forgotten = (
        f"t.__seq IS NULL AND d.__part = '{Partition.PRIOR}' AND d.__seq <= {literal(horizon)}"
    )
    return f"d.__seq IS NOT NULL AND NOT ({forgotten})"


def wrong_columns(shape: Shape) -> str:
    """Array of the names of the columns in which the stored version is not the derived one.

    Empty where there is only one of the two.
    """
    pairs = {
        h.PARTITION: ("d.__part", "t.__stored.part"),
        h.OPERATION: (
            _compared_operation("d.__new_op", shape),
            _compared_operation("t.__stored.op", shape),
        ),
        h.FROM_TIMESTAMP: ("d.__from", "t.__stored.`from`"),
        h.TO_TIMESTAMP: (fold_text.end(shape, "d."), "t.__stored.`to`"),
    }
    if shape.looks:
        # What later folds fill in from a version depends on it.
        pairs[h.UNSENT] = (sql.is_look("d."), sql.is_look("t."))
    same = {name: f"{pair} <=> {other}" for name, (pair, other) in pairs.items()}
    nothing = _shows_nothing(shape)
    for name in shape.values:
        one, other = (comparable(f"{side}.{quote(name)}", shape.columns[name]) for side in "dt")
        same[name] = f"({nothing}) OR {one} <=> {other}"
    named = ", ".join(f"IF({equal}, NULL, {literal(name)})" for name, equal in same.items())
    both = "d.__seq IS NOT NULL AND t.__seq IS NOT NULL"
    return f"IF({both}, filter(array({named}), name -> name IS NOT NULL), array())"


def _shows_nothing(shape: Shape) -> str:
    """Whether nothing reads the values of a version: those of a delete that no view shows.

    What it shows of the version before depends on whether that was still stored (see
    `differences`).
    """
    hidden = not (shape.history or shape.soft_delete or shape.links)
    if shape.expired is not None and shape.partial:
        # What a version inherits may have left before its event came.
        return "true"
    return is_delete("d.__new_op") if hidden or shape.expired is not None else "false"


def _compared_operation(operation: str, shape: Shape) -> str:
    """What can be compared of an operation (see `differences`)."""
    whole = shape.history and shape.expired is None
    return operation if whole else f"({is_delete(operation)})"
