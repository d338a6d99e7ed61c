"""Another engine maintains our table while ours goes on: by Spark's own procedures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.engine.runner import units
from polynya.engine.work.turns.unit import Turn
from polynya.lake.apply.fast import FastApplier
from polynya.lake.iceberg.commit import Committed, Step
from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.read.verify import verify
from polynya.lake.table import dataset
from polynya.model.errors import StaleStepError
from polynya.observe.data import UnitFailed
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.owned import copied, owned

pytestmark = pytest.mark.slow

ALL_FILES = "options => map('rewrite-all', 'true', 'delete-file-threshold', '1')"


NO_STATES = "where => \"hdr__partition != 'asset_state'\""


def call(users: Feed, procedure: str, *arguments: str) -> None:
    """Call a procedure on the internal table."""
    given = ", ".join([f"table => '{users.internal}'", *arguments])
    users.lab.spark.sql(f"CALL polynya.system.{procedure}({given})").collect()


def ago(**time: float) -> str:
    moment = datetime.now(UTC) - timedelta(**time)
    return f"older_than => TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"


PROCEDURES: dict[str, tuple[str, ...]] = {
    "rewrite_data_files": (ALL_FILES, NO_STATES),
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


class Compacted(FastApplier):
    """Another engine writes files again once an apply has written its own."""

    def __init__(self, users: Feed, *where: str) -> None:
        super().__init__()
        self._users = users
        self._where = where
        self.times = 0

    def stage(self, run: Any, outcome: Any) -> Any:
        staged = super().stage(run, outcome)
        self.times += 1
        if self.times == 1:
            call(self._users, "rewrite_data_files", ALL_FILES, *self._where)
        return staged


CURRENT = "where => \"hdr__partition = 'current'\""


@pytest.mark.parametrize("where", [(), (CURRENT,)], ids=["all files", "current"])
def test_a_compaction_during_an_apply_is_told(lab: Lab, where: tuple[str, ...]) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    table = owned(users)
    copied(users, table, put(1, 3, name="Anna"))

    with pytest.raises(StaleStepError) as caught:
        Compacted(users, *where).apply(table, reason="a test", now=STARTED)

    assert caught.value.code == "POLYNYA-LAKE-051"
    assert table.state.apply.applies == 1
    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben")]


def test_a_copy_notices_a_compaction_only_where_that_moves_states(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    table, real = owned(users), dataset.commit_row_delta

    def compacted_first(*where: str) -> None:
        def late(given: IcebergTable, step: Step) -> Committed:
            monkeypatch.setattr(dataset, "commit_row_delta", real)
            call(users, "rewrite_data_files", ALL_FILES, *where)
            return real(given, step)

        monkeypatch.setattr(dataset, "commit_row_delta", late)

    compacted_first(NO_STATES)
    copied(users, table, put(2, 2, name="Ben"))
    compacted_first()
    with pytest.raises(StaleStepError):
        copied(users, table, put(3, 3, name="Cid"))

    assert users.current("id") == [(1,), (2,)]
    table.reload()
    copied(users, table, put(3, 3, name="Cid"))
    assert users.current("id") == [(1,), (2,), (3,)]


def test_a_run_takes_the_step_again_at_once(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    users.applier["applier"] = applier = Compacted(users)

    users.apply(put(1, 3, name="Anna"), drop(2, 4))

    assert applier.times == 2
    assert not any(isinstance(one, UnitFailed) for one in lab.events)
    assert users.stored("current", "id", "name") == [(1, "Anna")]
    assert users.table().state.apply.applies == 2
    assert verify(users.table()).findings == []
