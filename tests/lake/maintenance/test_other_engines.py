"""Another engine maintains our table while ours goes on: by Spark's own procedures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from polynya.engine.runner import units
from polynya.engine.work.turns.unit import Turn
from polynya.lake.read.verify import verify
from tests.lab.lab import Feed, Lab, drop, put

pytestmark = pytest.mark.slow

ALL_FILES = "options => map('rewrite-all', 'true', 'delete-file-threshold', '1')"


def call(users: Feed, procedure: str, *arguments: str) -> None:
    """Call a procedure on the internal table."""
    given = ", ".join([f"table => '{users.internal}'", *arguments])
    users.lab.spark.sql(f"CALL polynya.system.{procedure}({given})").collect()


def ago(**time: float) -> str:
    moment = datetime.now(UTC) - timedelta(**time)
    return f"older_than => TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"


PROCEDURES: dict[str, tuple[str, ...]] = {
    "rewrite_data_files": (ALL_FILES, "where => \"hdr__partition != 'asset_state'\""),
    "rewrite_position_delete_files": ("options => map('rewrite-all', 'true')",),
    "rewrite_manifests": (),
    "expire_snapshots": (ago(seconds=-60), "retain_last => 1"),
    "remove_orphan_files": (ago(days=3),),
}


def test_procedures_between_our_steps_change_nothing(lab: Lab) -> None:
    users = lab.feed(changes_retention="100d")
    (unit,) = units(lab.context("always"), [users.task])

    def work() -> None:
        ended = unit.step(Turn())
        while ended.more:
            ended = unit.step(Turn())
        assert ended.trouble is None

    users.land(*(put(key, 1, name="first") for key in range(8)))
    work()
    wanted: dict[int, str] = dict.fromkeys(range(8), "first")
    for number, (procedure, arguments) in enumerate(PROCEDURES.items(), 2):
        users.land(put(number, number, name=procedure), put(0, number, name=procedure))
        work()
        call(users, procedure, *arguments)
        users.land(put(1, number, name=f"after {procedure}"), drop(7, number))
        work()
        wanted |= {number: procedure, 0: procedure, 1: f"after {procedure}"}
        wanted.pop(7, None)
        assert users.current("id", "name") == sorted(wanted.items(), key=repr), procedure

    assert verify(users.table()).findings == []


def test_states_that_a_compaction_has_joined_are_both_kept(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    users.copy(put(2, 2, name="Ben"))
    before = users.table().state

    call(users, "rewrite_data_files", ALL_FILES)
    state = users.table().state
    assert state.is_joined
    assert (state.copy, state.apply) == (before.copy, before.apply)

    # Nothing is read twice, and nothing is applied twice.
    users.apply(put(3, 3, name="Cid"))
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert users.totals()["in"] == 3
    assert not users.table().state.is_joined
    assert verify(users.table()).findings == []
