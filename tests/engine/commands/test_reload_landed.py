"""A reload of a stream that landed: a damaged table is right again, and nothing is lost by it."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.engine.commands.reload import ReloadRequest, ReloadResult, abandon_begun, reload
from polynya.formats.landed import batch_name
from polynya.model.config.dataset import DELETING, KEEPING
from polynya.model.errors import OperationError
from tests.lab.lab import Lab
from tests.lab.landed import LandedTable

pytestmark = pytest.mark.slow

MERGED: dict[str, Any] = {
    "mode": "merge",
    "columns": [{"name": "id", "expression": "id", "type": "bigint", "key": 1}],
    "soft_delete": "gone",
    "partition_by": "none",
}


def event(key: int, name: str, **more: Any) -> dict[str, Any]:
    return {"id": key, "name": name, **more}


def landed_table(lab: Lab) -> LandedTable:
    """Three records, one of them deleted, and two messages that cannot be read."""
    facts = LandedTable(lab, dict(MERGED))
    facts.take(event(1, "a"), b"no json", event(2, "b"), event(1, "c"))
    facts.take(event(3, "d"), {"name": "without a key"}, event(2, "b", gone=True))
    return facts


def reloaded(facts: LandedTable, mode: Any = DELETING, **how: Any) -> ReloadResult:
    done = reload(
        facts.lab.context(), ReloadRequest(facts.task, facts.look.dataset, mode=mode, **how)
    )
    assert done is not None
    return done


def damage(facts: LandedTable) -> None:
    """What no step of the engine does."""
    current = f"{facts.look.relation} WHERE hdr__partition = 'current'"
    facts.lab.spark.sql(f"DELETE FROM {current} AND id = 1")
    facts.lab.spark.sql(
        f"UPDATE {facts.look.relation} SET name = 'x' WHERE hdr__partition = 'current' AND id = 3"
    )


def test_a_damaged_table_is_right_again_and_bad_messages_stay_where_they_are(lab: Lab) -> None:
    facts = landed_table(lab)
    before = facts.look.current("id", "name", "hdr__deleted")
    rejected, totals = facts.look.rejected(), facts.look.totals()
    damage(facts)
    assert facts.look.current("id", "name") != [row[:2] for row in before]

    done = reloaded(facts)

    assert facts.look.current("id", "name", "hdr__deleted") == before
    assert facts.look.rejected() == rejected
    assert facts.look.totals()["quarantined"] == totals["quarantined"] == 2
    assert (done.loaded, done.quarantined) == (5, 0)
    facts.take(event(3, "e"))
    assert facts.look.current("id", "name") == [(1, "c"), (2, "b"), (3, "e")]


def test_a_message_that_was_right_once_is_missed(lab: Lab) -> None:
    """Also after such a reload was given up: its record in quarantine is no reason to delete."""
    facts = landed_table(lab)
    facts.batches, facts.messages = 1, 4
    facts.land(b"no json", {"name": "without a key"}, event(2, "b", gone=True))
    for _ in range(2):
        with pytest.raises(OperationError) as refused:
            reloaded(facts)
        assert refused.value.code == "POLYNYA-LAKE-015"
        abandon_begun(lab.context(), [facts.look.dataset])

    assert facts.look.current("id", "name") == [(1, "c"), (2, "b"), (3, "d")]


def test_what_is_left_of_the_batches_can_be_taken_without_deleting(lab: Lab) -> None:
    facts = landed_table(lab)
    (lab.landing / lab.schema / "clicks" / batch_name(1)).unlink()
    damage(facts)
    with pytest.raises(OperationError) as refused:
        reloaded(facts)
    reloaded(facts, KEEPING)

    assert refused.value.code == "POLYNYA-LAKE-014"
    assert facts.look.current("id", "name") == [(2, "b"), (3, "d")]
