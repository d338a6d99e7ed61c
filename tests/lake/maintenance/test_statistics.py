"""Statistics for planners, as readers of Iceberg find them."""

from __future__ import annotations

import pytest

from polynya.lake.maintenance.base import Limits
from polynya.lake.maintenance.statistics.compute import compute_statistics
from tests.lab.lab import STARTED, Lab, put
from tests.lab.owned import owned


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_readers_of_iceberg_find_them(lab: Lab, version: int) -> None:
    users = lab.feed(history=True, format_version=version)
    users.apply(*(put(key, key, name=f"n{key % 7}", tags=["x"]) for key in range(1, 41)))
    table = owned(users)
    done = compute_statistics(table, Limits(STARTED))

    assert (done.commits, done.why.partition(" of snapshot")[0]) == (
        1, "distinct values of 2 columns",
    )  # fmt: skip
    (file,) = table.table.metadata()["statistics"]
    counts = {blob["fields"][0]: int(blob["properties"]["ndv"]) for blob in file["blob-metadata"]}
    ids = {one["name"]: one["id"] for one in table.table.columns()}
    assert counts == {ids["id"]: 40, ids["name"]: 7}
    assert file["snapshot-id"] == table.state.snapshot
