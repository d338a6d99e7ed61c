"""Fold the events of a run with stored versions: one way for both appliers, rebuild and verify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from polynya.lake.apply.run import Folded, Run
from polynya.lake.fold import key_changes, stored, versions
from polynya.lake.fold.figures import ApplyFigures, apply_aggregates
from polynya.lake.fold.fold import event_columns, fold, with_clause
from polynya.lake.fold.keys import key_text
from polynya.lake.fold.sql import SEQUENCE, within
from polynya.lake.fold.truncates import Truncate, as_sql
from polynya.lake.spark.api import DataFrame
from polynya.model.contract import headers as h
from polynya.model.contract.headers import Partition

#: Rounds after which the estimate of a frame's size, to the third power in each, is too large a
#: number to compute with.
_FEW_ROUNDS: Final = 4


def pending_events(run: Run) -> DataFrame:
    """Events of Changes and of the batch that is being copied, as input of the fold."""
    columns = event_columns(run.shape)
    pending = run.sql(f"SELECT {columns} FROM {run.table} WHERE {within(Partition.CHANGES)}")
    if run.fresh is None:
        return pending
    view = run.view(run.fresh.events)
    # A truncate has no key: it takes part in the fold through the list of truncates.
    return pending.unionByName(run.sql(f"SELECT {columns} FROM {view} WHERE {h.OPERATION} <> 'T'"))


def new_truncates(run: Run) -> list[Truncate]:
    """Truncates of the batch that is being copied."""
    if run.fresh is None:
        return []
    found = run.fresh.events.where(f"{h.OPERATION} = 'T'").selectExpr(
        h.CHANGE_IDENTIFIER, h.SEQUENCE_TAIL, f"unix_micros({h.TIMESTAMP})"
    )
    return [Truncate(*row) for row in found.collect()]


def folded_with_all(run: Run, events: DataFrame, truncates: Sequence[Truncate]) -> Folded:
    """Fold events with every stored version."""
    stored_versions = run.sql(stored.everything(run.shape, run.table))
    return folded(run, stored_versions.unionByName(events), truncates)


def folded(run: Run, frame: DataFrame, truncates: Sequence[Truncate]) -> Folded:
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


def linked_keys(run: Run, *, touched: str, events: str) -> DataFrame:
    """Extend the touched records by those on the other end of a change of key.

    `touched` holds the key columns and `__oldest`, and so does the result. Added are the former
    keys that events refer to (their state at that moment is needed) and the records that took
    values from a touched one later on.
    """
    shape = run.shape
    known = f"({key_changes.with_former_keys(shape, touched, events)})"
    links = f"({key_changes.stored_links(shape, run.table)})"
    while True:
        new = run.sql(key_changes.new_heirs(shape, links, known))
        if new.isEmpty():
            return run.sql(f"SELECT * FROM {known}")
        known = run.view(run.settle(run.sql(key_changes.both(shape, known, run.view(new)))))


def _with_carried_values(run: Run, frame: DataFrame, listed: str | None) -> DataFrame:
    """Put the carried values into the events of `frame` that changed a key.

    A chain of changes inside one batch (a→b→c) needs as many rounds as it is long; nearly always
    that is one.
    """
    links = frame.where(key_changes.IS_LINK).selectExpr(
        f"{key_text(run.shape)} AS key", "__former", f"{SEQUENCE} AS seq"
    )
    found = [(row["key"], row["__former"], row["seq"]) for row in links.collect()]
    rounds = _longest_chain(found)
    for _ in range(rounds):
        events = run.view(frame)
        carried = run.view(run.sql(key_changes.values_to_carry(run.shape, events, listed)))
        frame = run.settle(run.sql(key_changes.with_values(run.shape, events, carried)))
        if rounds > _FEW_ROUNDS:
            frame = run.of_unknown_size(frame)
    return frame


def _longest_chain(links: list[tuple[str, str, str]]) -> int:
    """Number of links (new key, old key, sequence) in the longest chain of changes of key."""
    reached: dict[str, int] = {}
    for new, old, _ in sorted(links, key=lambda link: link[2]):
        reached[new] = max(reached.get(new, 0), 1 + reached.get(old, 0))
    return max(reached.values(), default=0)
