"""Changes of metadata by a node whose work was given to another one meanwhile: not made.

They replace no state of the table, as steps do (`test_fenced_steps.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.lake.maintenance import fenced
from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.health import MaintenanceRecord, remember
from polynya.lake.maintenance.manifests import rewrite_manifests
from polynya.lake.maintenance.orphans import Orphans, find_orphans
from polynya.lake.maintenance.statistics import compute_statistics
from polynya.model.errors import FencedError
from tests.engine.steps import Node
from tests.lab.chosen import slow
from tests.lab.lab import STARTED, Lab, put
from tests.lab.owned import owned

#: Changes of metadata that replace no state.
CHANGES: dict[str, Callable[[Node], Any]] = {
    "what was done": lambda node: remember(node.owned(), MaintenanceRecord(STARTED)),
    "manifests": lambda node: rewrite_manifests(node.owned(), limits=ActionLimits(STARTED), many=2),
    "statistics": lambda node: compute_statistics(node.owned(), ActionLimits(STARTED)),
}


#: With `tests/e2e/rest/test_lake_on_rest.py`. The head of the branch is all that such a catalog
#: compares (`fenced.py`).
not_by_rest = pytest.mark.skipif(
    "POLYNYA_TEST_REST" in os.environ, reason="a REST catalog compares neither for such a commit"
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("what was done", marks=not_by_rest),
        slow("manifests"),
        pytest.param("statistics", marks=[not_by_rest, pytest.mark.slow]),
    ],
)
def test_a_change_of_metadata_by_such_a_node_is_not_made(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    users, work = lab.feed(), CHANGES[name]
    users.apply(put(1, 1, name="Ann"))
    epoch = users.table().state.epoch
    old, new = Node(users, "node-1", epoch + 1), Node(users, "node-2", epoch + 2)
    real, left = fenced.swap, []

    def late(transaction: Any) -> None:
        monkeypatch.setattr(fenced, "swap", real)
        work(new)
        left.append(users.table().table.metadata())
        real(transaction)

    monkeypatch.setattr(fenced, "swap", late)
    with pytest.raises(FencedError) as refused:
        work(old)

    assert (refused.value.code, refused.value.epoch) == ("POLYNYA-LAKE-002", new.epoch)
    table = users.table().table
    assert [table.metadata()] == left
    # Nor is there a file that it had staged.
    found = find_orphans(table, now=datetime.now(UTC) + timedelta(days=9))
    assert isinstance(found, Orphans)
    left_over = [one.location for one in found.files]
    metadata = (".metadata.json", ".metadata.json.crc")
    assert [one for one in left_over if not one.endswith(metadata)] == []


def test_a_change_of_metadata_is_made_again_when_a_step_was_faster(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    table, real = owned(users), fenced.swap

    def late(transaction: Any) -> None:
        monkeypatch.setattr(fenced, "swap", real)
        users.lab.spark.sql(f"ALTER TABLE {users.relation} SET TBLPROPERTIES ('other' = '1')")
        real(transaction)

    monkeypatch.setattr(fenced, "swap", late)
    remember(table, MaintenanceRecord(STARTED))

    properties = users.table().table.properties()
    assert (properties["other"], MaintenanceRecord.of(properties)) == (
        "1",
        MaintenanceRecord(STARTED),
    )
