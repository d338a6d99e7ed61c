"""Read the stored versions that an apply needs, and fold them with its events.

Nearly every batch is in order: then the newest version of each touched record is all that matters,
and one pass reads it, folds it and counts whether that was right. Only when an event turns out to
be late is the work done again with what it needs besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polynya.lake.apply.run import Counted, Folded, Run, folded
from polynya.lake.fold import stored
from polynya.lake.fold.carry import linked_keys
from polynya.lake.spark.api import DataFrame
from polynya.model.contract.headers import Partition
from polynya.model.contract.identifiers import quote
from polynya.model.datatypes import Primitive

#: From this many rows in Current on, files are skipped by the range of the touched keys.
LARGE_ROWS = 500_000
#: Key types whose range is a pair of plain literals.
RANGED = (Primitive("int"), Primitive("bigint"))


def probed(run: Run, events: str, truncates: Sequence[Sequence[Any]], *, pending: bool) -> Folded:
    """Fold events with the stored versions that they can change.

    `pending`: all events lie in Changes, so that the metadata of its files bounds their keys.
    """
    condition = _key_condition(run) if pending else "true"
    fresh = run.sql(f"SELECT * FROM {events}")
    touched = run.view(run.sql(stored.touched_keys(run.shape, events)))
    if not run.shape.links:
        found = _newest(run, touched, condition)
        counted = Counted.over(found, [f"count_if({stored.LATE}) AS late"])
        result = folded(run, counted.frame.drop("__min").unionByName(fresh), truncates)
        seen = counted.read()
        if _needs_only_newest(run) or (seen is not None and not seen["late"]):
            return result
    return folded(run, _with_late(run, events, touched, condition).unionByName(fresh), truncates)


def probed_whole(run: Run, events: str, truncates: Sequence[Sequence[Any]]) -> Folded:
    """Fold events with every stored version: a truncate touches them all."""
    everything = run.sql(stored.everything(run.shape, run.table))
    return folded(run, everything.unionByName(run.sql(f"SELECT * FROM {events}")), truncates)


def _newest(run: Run, touched: str, condition: str) -> DataFrame:
    """Newest versions; keys and headers only where a replaced version leaves nothing behind."""
    values = run.shape.fills_deletes
    return run.sql(stored.newest(run.shape, run.table, touched, values=values, condition=condition))


def _needs_only_newest(run: Run) -> bool:
    """Without history all that is kept of a record counts as its newest version."""
    return run.shape.fills_deletes and not run.shape.history


def _with_late(run: Run, events: str, touched: str, condition: str) -> DataFrame:
    """What `_newest` finds, and for the records that have a late event all that they need.

    With history these are the older versions, without it the values of the stored version, which
    may stay. Changes of key that carry values touch other records too.
    """
    shape = run.shape
    touched = run.view(run.settle(run.sql(f"SELECT * FROM {touched}")))
    if shape.links:
        linked = linked_keys(
            run.sql, run.view, shape, table=run.table, touched=touched, events=events
        )
        touched = run.view(run.settle(linked))
        condition = "true"
    newest = run.settle(_newest(run, touched, condition))
    if _needs_only_newest(run):
        return newest.drop("__min")
    view = run.view(newest)
    late = run.view(run.settle(run.sql(stored.late_keys(shape, view))))
    if shape.history:
        return newest.drop("__min").unionByName(run.sql(stored.older(shape, run.table, late)))
    others = run.sql(
        f"SELECT n.* FROM {view} n LEFT ANTI JOIN {late} k ON {shape.key_match('n', 'k')}"
    )
    wide = run.sql(stored.newest(shape, run.table, late, condition=condition))
    return others.unionByName(wide).drop("__min")


def _key_condition(run: Run) -> str:
    """A range of the first key column, for tables so large that skipping files pays."""
    key = run.shape.keys[0]
    current = run.target.table.files(Partition.CURRENT, run.snapshot)
    if sum(file.rows for file in current) < LARGE_ROWS or run.shape.columns[key] not in RANGED:
        return "true"
    bounds = run.target.table.bounds(Partition.CHANGES, run.snapshot, key)
    return f"{quote(key)} BETWEEN {bounds[0]} AND {bounds[1]}" if bounds is not None else "true"
