"""Fold pending events of which some are late: what they need beside the newest versions."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.lake.apply.folding import folded, linked_keys
from polynya.lake.apply.newest import needs_only_newest, newest
from polynya.lake.apply.run import Folded, Run
from polynya.lake.apply.way import Touched
from polynya.lake.fold import stored
from polynya.lake.fold.truncates import Truncate
from polynya.lake.spark.api import DataFrame


def fold_late(run: Run, truncates: Sequence[Truncate]) -> Folded:
    """Fold pending events, of which some are late or carry values, with all that they need."""
    touched = Touched.by(run)
    return folded(run, _with_late(run, touched).unionByName(touched.events), truncates)


def _with_late(run: Run, touched: Touched) -> DataFrame:
    """The newest versions, and for the records that have a late event all that they need.

    With history these are the older versions, without it the values of the stored version, which
    may stay. Changes of key that carry values touch other records too.
    """
    shape = run.shape
    keys, condition = run.view(run.settle(run.sql(f"SELECT * FROM {touched.keys}"))), "true"
    if shape.links:
        keys = run.view(run.settle(linked_keys(run, touched=keys, events=touched.view)))
    else:
        condition = touched.condition
    found = run.settle(run.sql(newest(run, keys, condition, oldest=True)))
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
    return others.drop("__oldest").unionByName(wide)
