"""kill -9 of a rewrite at each of its boundaries: the table is whole at once, and after the next.

Read back with DuckDB and PyIceberg, as the other kills are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.killing import COMMIT, KILLED, run_to_end, running
from tests.e2e.test_kills import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]
#: Each batch leaves a file in the log: enough of them to be joined.
TASK = {"batch": {"max_rows": 20}}
REMEMBER = "polynya.lake.maintenance.health.remember"
LAND = "polynya.lake.maintenance.rewrite_data_files.land"
#: Tasks write groups of any size, on this machine also a single one.
WAY = "polynya.lake.maintenance.rewrite_plan"
BY = {"driver": {}, "tasks": {f"{WAY}.LARGE_BYTES": 0, f"{WAY}.MIN_LOCAL_TASKS": 1}}
ACTION = ("maintain", "log", "--action", "rewrite_data_files", "--json")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path, TASK)
    run_to_end(tmp_path, apply="always")
    return shop


def done(shop: Shop) -> dict[str, Any]:
    """What a rewrite did that nobody kills."""
    with running(shop.directory, *ACTION) as run:
        assert run.wait() == 0, run.text()
        found = [json.loads(line) for line in run.text().splitlines() if line.startswith("{")]
    return next(one for one in found if one.get("action") == "rewrite_data_files")


@pytest.mark.parametrize("by", BY)
# The first commit takes the table over, the second has the new files.
@pytest.mark.parametrize(
    ("hook", "mode", "number", "left"),
    [
        pytest.param(LAND, "before", 1, True, id="written, nothing committed"),
        pytest.param(COMMIT, "before", 2, True, id="at the commit"),
        pytest.param(COMMIT, "after", 2, False, id="committed, nobody was told"),
        pytest.param(REMEMBER, "before", 1, False, id="committed, not written down"),
    ],
)
def test_killed(shop: Shop, hook: str, mode: str, number: int, left: bool, by: str) -> None:
    how: dict[str, Any] = {"mode": mode, "number": number, "hook": hook, "constants": BY[by]}
    with running(shop.directory, *ACTION, **how) as run:
        assert run.wait() == KILLED, run.text()
    assert shop.damage() == []

    again = done(shop)

    assert (again["files_removed"] > again["files_added"]) == left, again
    assert shop.damage() == []
