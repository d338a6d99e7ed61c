"""Which stored versions an apply reads: the newest ones, and more for records with a late event."""

from __future__ import annotations

from polynya.lake.apply.folding import linked_keys
from polynya.lake.apply.run import Run
from polynya.lake.fold import stored
from polynya.lake.spark.api import DataFrame


def newest(run: Run, touched: str, condition: str) -> str:
    """Query of newest versions; keys and headers only where a replaced one leaves nothing behind.

    `touched` is a relation of `stored.touched_keys`.
    """
    values = run.shape.fills_deletes
    return stored.newest(run.shape, run.table, touched, values=values, condition=condition)


def needs_only_newest(run: Run) -> bool:
    """Whether the newest version of a record is all that is kept of it."""
    return run.shape.fills_deletes and not run.shape.history


def with_late(run: Run, events: str, touched: str, condition: str) -> DataFrame:
    """What `newest` finds, and for the records that have a late event all that they need.

    With history these are the older versions, without it the values of the stored version, which
    may stay. Changes of key that carry values touch other records too.
    """
    shape = run.shape
    touched = run.view(run.settle(run.sql(f"SELECT * FROM {touched}")))
    if shape.links:
        touched = run.view(run.settle(linked_keys(run, touched=touched, events=events)))
        condition = "true"
    found = run.settle(run.sql(newest(run, touched, condition)))
    if needs_only_newest(run):
        return found.drop("__oldest")
    view = run.view(found)
    late = run.view(run.settle(run.sql(stored.late_keys(shape, view))))
    if shape.history:
        return found.drop("__oldest").unionByName(run.sql(stored.older(shape, run.table, late)))
    others = run.sql(
        f"SELECT n.* FROM {view} n LEFT ANTI JOIN {late} k ON {shape.key_match('n', 'k')}"
    )
    wide = run.sql(stored.newest(shape, run.table, late, condition=condition))
    return others.unionByName(wide).drop("__oldest")
