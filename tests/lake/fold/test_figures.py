"""What is counted has the names of the figures."""

from __future__ import annotations

from dataclasses import fields

from polynya.lake.fold.stored import (
    ApplyFigures,
    RebuildFigures,
    apply_aggregates,
    rebuild_aggregates,
)
from tests.lake.fold.test_golden import HISTORY


def names(aggregates: list[str]) -> set[str]:
    return {text.rpartition(" AS ")[2] for text in aggregates}


def test_an_aggregate_counts_each_figure() -> None:
    assert names(apply_aggregates(HISTORY)) == {one.name for one in fields(ApplyFigures)}
    assert names(rebuild_aggregates()) == {one.name for one in fields(RebuildFigures)} - {"events"}


def test_figures_are_told_by_name() -> None:
    found = dict.fromkeys(("events", "current", "prior", "removed"), 1)
    found |= dict.fromkeys(("inserts", "updates", "deletes"), 1)
    conflicts = dict.fromkeys(("raised", "insert_of_existing", "update_of_missing"), 0)

    figures = ApplyFigures.of({**found, **conflicts, "delete_of_missing": 2, "applied_to": "07"})

    assert figures.written == 2
    assert figures.counts() == {**found, **conflicts, "delete_of_missing": 2}
