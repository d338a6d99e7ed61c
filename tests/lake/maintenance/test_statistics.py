"""Statistics for planners: when they are worth a scan, and that Iceberg's readers find them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from polynya.lake.maintenance.base import Limits
from polynya.lake.maintenance.statistics.choice import Facts, choose
from polynya.lake.maintenance.statistics.compute import compute_statistics, facts_of
from tests.lab.lab import STARTED, Lab, put


@pytest.mark.parametrize(
    ("rows", "hours", "has", "computes", "says"),
    [
        (5_000_000, 3, False, True, "5,000,000 rows"),
        (5_000_000, 3, True, False, "has statistics"),
        (5_000_000, 0.5, False, False, "changed 1,800 s ago"),
        (500_000, 3, False, False, "need none"),
    ],
)
def test_a_large_table_that_rests_gets_them(
    rows: int, hours: float, has: bool, computes: bool, says: str
) -> None:
    choice = choose(Facts(rows, timedelta(hours=hours), has))

    assert (choice.compute, says in choice.why) == (computes, True)


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_readers_of_iceberg_find_them(lab: Lab, version: int) -> None:
    users = lab.feed(history=True, format_version=version)
    users.apply(*(put(key, key, name=f"n{key % 7}", tags=["x"]) for key in range(1, 41)))
    table = users.table("owner")
    table.take_over()
    assert not facts_of(table, STARTED).has_statistics

    done = compute_statistics(table, Limits(STARTED))

    assert (done.commits, done.why.partition(" of snapshot")[0]) == (
        1, "distinct values of 2 columns",
    )  # fmt: skip
    assert facts_of(table, STARTED).has_statistics
    (file,) = table.table.metadata()["statistics"]
    counts = {blob["fields"][0]: int(blob["properties"]["ndv"]) for blob in file["blob-metadata"]}
    ids = {one["name"]: one["id"] for one in table.table.columns()}
    assert counts == {ids["id"]: 40, ids["name"]: 7}
    users.apply(put(1, 50, name="Ann"))
    assert not facts_of(users.table(), STARTED).has_statistics
