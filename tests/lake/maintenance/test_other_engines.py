"""Another engine maintains our table while ours goes on: by Spark's own procedures."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.engine.runner import units
from polynya.engine.unit import TimeSlice
from polynya.lake.apply.fast import FastApplier
from polynya.lake.iceberg.commit import CommitStep, Committed
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.read.verify import verify
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import StaleStepError
from polynya.observe.engine import UnitFailed
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.owned import copied, owned, step
from tests.lab.twins import NEVER_AGAIN

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
        ended = unit.step(TimeSlice())
        while ended.more:
            ended = unit.step(TimeSlice())
        assert ended.error is None

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


class Beside(FastApplier):
    """Another engine is at work once an apply has written its files. Rows go by deletes."""

    def __init__(self, users: Feed, procedure: str, *arguments: str) -> None:
        super().__init__(rewriting=NEVER_AGAIN)
        self._call = lambda: call(users, procedure, *arguments)
        self.times = 0

    def stage(self, run: Any, outcome: Any) -> Any:
        staged = super().stage(run, outcome)
        self.times += 1
        if self.times == 1:
            self._call()
        return staged


def compacted(users: Feed, *where: str) -> Beside:
    return Beside(users, "rewrite_data_files", ALL_FILES, *where)


CURRENT = "where => \"hdr__partition = 'current'\""


@pytest.mark.parametrize("where", [(), (CURRENT,)], ids=["all files", "current"])
def test_a_compaction_during_an_apply_is_told(lab: Lab, where: tuple[str, ...]) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    table = owned(users)
    copied(users, table, put(1, 3, name="Anna"))

    with pytest.raises(StaleStepError) as caught:
        compacted(users, *where).apply(table, reason="a test", now=STARTED)

    assert caught.value.code == "POLYNYA-LAKE-051"
    assert table.state.apply.applies == 1
    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben")]


def before_the_commit(
    monkeypatch: pytest.MonkeyPatch, users: Feed, procedure: str, *arguments: str
) -> None:
    """Let another engine be at work right before the next commit of a step."""
    real = dataset.commit_row_delta

    def late(given: IcebergTable, step: CommitStep) -> Committed:
        monkeypatch.setattr(dataset, "commit_row_delta", real)
        call(users, procedure, *arguments)
        return real(given, step)

    monkeypatch.setattr(dataset, "commit_row_delta", late)


def with_deletes(lab: Lab) -> tuple[Feed, DatasetTable]:
    """A table with several delete files and manifests, and an old file of nobody."""
    users = lab.feed()
    users.apply(*(put(key, 1, name="first") for key in (1, 2, 3)))
    table = owned(users)
    for key in (1, 2):
        step(users, table, put(key, 2, name="second"))
    lost(users).write_bytes(b"nobody")
    os.utime(lost(users), (time.time() - 9 * 86_400,) * 2)
    return users, table


def lost(users: Feed) -> Path:
    return Path(str(users.table().table.java.location())) / "data" / "lost.parquet"


#: What is done during a step. Compactions and expiries have tests of their own.
MEANWHILE = ("rewrite_position_delete_files", "rewrite_manifests", "remove_orphan_files")


@pytest.mark.parametrize("procedure", MEANWHILE)
def test_what_else_another_engine_does_during_an_apply_is_not_noticed(
    lab: Lab, procedure: str
) -> None:
    users, _ = with_deletes(lab)
    users.applier["applier"] = applier = Beside(users, procedure, *PROCEDURES[procedure])

    users.apply(put(1, 3, name="third"), drop(3, 4))

    assert applier.times == 1
    assert not any(isinstance(one, UnitFailed) for one in lab.events)
    assert users.current("id", "name") == [(1, "third"), (2, "second")]
    assert lost(users).exists() == (procedure != "remove_orphan_files")
    replaced = lab.rows(f"SELECT operation FROM {users.relation}.snapshots")
    assert (("replace",) in replaced) == (procedure != "remove_orphan_files")
    assert verify(users.table()).findings == []


@pytest.mark.parametrize("procedure", MEANWHILE)
def test_what_else_another_engine_does_during_a_copy_is_not_noticed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, procedure: str
) -> None:
    users, table = with_deletes(lab)

    before_the_commit(monkeypatch, users, procedure, *PROCEDURES[procedure])
    copied(users, table, put(4, 5, name="Dan"))

    assert users.current("id", "name")[-1] == (4, "Dan")
    users.apply()
    assert users.current("id", "name") == [(1, "second"), (2, "second"), (3, "first"), (4, "Dan")]
    assert verify(users.table()).findings == []


def test_a_copy_notices_a_compaction_only_where_that_moves_states(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    table = owned(users)

    before_the_commit(monkeypatch, users, "rewrite_data_files", ALL_FILES, NO_STATES)
    copied(users, table, put(2, 2, name="Ben"))
    before_the_commit(monkeypatch, users, "rewrite_data_files", ALL_FILES)
    with pytest.raises(StaleStepError):
        copied(users, table, put(3, 3, name="Cid"))

    assert users.current("id") == [(1,), (2,)]
    table.reload()
    copied(users, table, put(3, 3, name="Cid"))
    assert users.current("id") == [(1,), (2,), (3,)]


def test_a_run_takes_the_step_again_at_once(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    users.applier["applier"] = applier = compacted(users)

    users.apply(put(1, 3, name="Anna"), drop(2, 4))

    assert applier.times == 2
    assert not any(isinstance(one, UnitFailed) for one in lab.events)
    assert users.stored("current", "id", "name") == [(1, "Anna")]
    assert users.table().state.apply.applies == 2
    assert verify(users.table()).findings == []
