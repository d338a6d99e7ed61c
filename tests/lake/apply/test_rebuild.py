"""`rebuild` derives the tables from kept events, and `verify` proves that they equal their fold."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.engine.commands.rebuild import RebuildResult, rebuild
from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.lake.apply.folding import differences
from polynya.lake.apply.run import ApplyRun
from polynya.lake.read.verify import verify
from polynya.lake.spark.api import functions
from polynya.lake.table import dataset
from polynya.model.errors import ConflictError, OperationError
from tests.lab.kept import Kept
from tests.lab.lab import EPOCH, Feed, Lab, clear, drop, put
from tests.lake.apply.plain import PlainApplier

COLUMNS = ("id", "name", "city")
SHOWN = {"views": {"from_timestamp": True}}


def lived_in(lab: Lab, **how: Any) -> Feed:
    """A dataset that keeps its events: a first load, a late event, a truncate, a pending one."""
    users = lab.feed(**{"changes_retention": "keep", "initial_load": "load/*.json", **how})
    users.land(
        *({"id": key, "name": f"n{key}", "city": "Rio"} for key in range(1, 5)), file="load/1.json"
    )
    users.apply()
    users.apply(put(1, 9, name="Anna"), drop(2, 8), put(3, 9, name="Cy"))
    users.apply(put(1, 5, name="late"), clear(6), put(5, 12, name="Eve"), put(2, 20, name="Ben"))
    users.copy(put(1, 30, name="pending"))
    return users


@pytest.fixture(scope="module")
def kept(module_lab: Lab) -> Kept:
    return Kept(lived_in(module_lab))


@pytest.fixture
def users(kept: Kept) -> Feed:
    """`lived_in`, with history."""
    return kept.again()


def again(users: Feed, **parts: Any) -> RebuildResult:
    """Rebuild, as `polynya rebuild` does."""
    return rebuild(users.lab.context(**parts), users.dataset)


def broken(users: Feed) -> list[str]:
    """Rules that do not hold."""
    return [finding.rule for finding in verify(users.table()).findings]


def wrong(users: Feed) -> list[tuple[str, int, tuple[str, ...]]]:
    """Versions that are not as their events make them: what is wrong, key, columns."""
    target = users.table()
    with ApplyRun.of(target, target.shape()) as run:
        rows = differences(run, target.state.apply.truncates).collect()
    kinds = {(True, False): "lost", (False, True): "surplus", (True, True): "changed"}
    return sorted(
        (kinds[row["__write"], row["__drop"]], row["id"], tuple(row["__wrong"])) for row in rows
    )


@pytest.mark.slow
def test_every_planted_fault_is_named_and_mended(users: Feed) -> None:
    lab = users.lab
    assert broken(users) == []
    before = users.current(*COLUMNS), users.history(*COLUMNS)
    current, prior = "hdr__partition = 'current' AND", "hdr__partition = 'prior' AND"

    later = "hdr__to_timestamp = hdr__to_timestamp + INTERVAL 1 SECOND"
    for statement in (
        f"DELETE FROM {users.internal} WHERE {current} id = 5",
        f"DELETE FROM {users.internal} WHERE {prior} name = 'late' AND hdr__operation = 'U'",
        f"UPDATE {users.internal} SET name = 'x' WHERE {current} id = 3",
        f"UPDATE {users.internal} SET {later} WHERE {prior} id = 4 AND hdr__operation = 'L'",
    ):
        lab.spark.sql(statement)
    ben = lab.spark.sql(f"SELECT * FROM {users.internal} WHERE {current} id = 2")
    ben.withColumn("id", functions.lit(99)).writeTo(users.internal).append()

    assert wrong(users) == [
        ("changed", 3, ("name",)), ("changed", 4, ("hdr__to_timestamp",)), ("lost", 1, ()),
        ("lost", 5, ()), ("surplus", 99, ()),
    ]  # fmt: skip
    assert set(broken(users)) >= {"lost_version", "surplus_version", "changed_version"}
    mended = again(users)
    assert (mended.kept, mended.pending, mended.since, mended.surplus) == (11, 1, None, 1)
    assert broken(users) == []
    assert (users.current(*COLUMNS), users.history(*COLUMNS)) == before
    files = users.files()
    assert (again(users).restored, len(users.files() - files)) == (0, 3)  # state rows only


def test_kept_events_are_seen_and_a_lost_one_is_named(users: Feed) -> None:
    lab = users.lab

    seen = users.changes("id", "hdr__operation", "hdr__store")

    assert [row[:2] for row in seen if row[2] == "CHANGES"] == [(1, "U")]
    assert [row[:2] for row in seen if row[2] == "RETAINED"] == [
        (1, "L"), (1, "U"), (1, "U"), (2, "D"), (2, "L"), (2, "U"), (3, "L"), (3, "U"), (4, "L"),
        (5, "U"), (None, "T"),
    ]  # fmt: skip
    assert users.current("id", "name") == [(1, "pending"), (2, "Ben"), (3, "Cy"), (5, "Eve")]
    lab.spark.sql(f"DELETE FROM {users.internal} WHERE hdr__partition = 'retained' AND id = 5")
    assert wrong(users) == [("surplus", 5, ())]
    assert broken(users) == ["accounting", "surplus_version"]


@pytest.mark.slow
def test_history_that_was_not_kept_comes_from_the_events(lab: Lab, kept: Kept) -> None:
    twin = kept.again()
    again(twin)
    users = lived_in(lab, history=False)

    users.configure(history=True)
    again(users)

    assert users.history(*COLUMNS) == twin.history(*COLUMNS)
    assert broken(users) == []


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_what_was_before_is_the_base(lab: Lab, plain: bool) -> None:
    users = lab.feed()
    users.applier = {"applier": PlainApplier()} if plain else {}
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"), drop(3, 3))
    with pytest.raises(OperationError, match="keeps no events"):
        again(users)
    users.configure(changes_retention="10d")
    with pytest.raises(OperationError, match="has kept no event yet"):
        again(users)

    users.apply(put(1, 10, name="Anna"), put(3, 2, name="late"))
    lab.clock.sleep(86400)
    users.apply(put(2, 11, name="Benny"))
    before = users.history("id", "name")
    lab.spark.sql(f"DELETE FROM {users.internal} WHERE hdr__partition = 'current'")
    result = again(users, **users.applier)

    assert (result.kept, result.restored) == (3, 2)
    assert users.history("id", "name") == before
    verdict = verify(users.table())
    assert not verdict.findings
    assert verdict.unchecked == [f"3 versions up to {result.since}, whose events are not kept"]

    lab.clock.sleep(9.5 * 86400)
    users.apply(put(9, 30, name="New"))
    assert sorted(row[0] for row in users.stored("retained", "id")) == [2, 9]
    assert broken(users) == []
    users.configure(changes_retention=None)
    users.apply(put(9, 31, name="Newer"))
    assert users.changes("id") == []
    assert broken(users) == []


@pytest.mark.slow
def test_tombstones_stay_while_an_older_event_is_kept(lab: Lab) -> None:
    users = lab.feed(history=False, changes_retention="10d", tombstone_retention="30d")
    users.apply(drop(1, 5), drop(2, 6))
    lab.clock.sleep(25 * 86400)
    users.apply(put(1, 1, name="late"))
    lab.clock.sleep(6 * 86400)
    users.apply(put(3, 9, name="Cid"))

    assert users.stored("prior", "id") == [(1,)]
    again(users)
    assert users.current("id") == [(3,)]


@pytest.mark.slow
def test_a_truncate_is_never_forgotten(lab: Lab) -> None:
    users = lab.feed(history=False, changes_retention="10d", tombstone_retention="30d")
    users.apply(put(1, 1, name="Ann"), put(4, 9, name="Dee"), clear(5))
    lab.clock.sleep(41 * 86400)
    # The first of the two lets the kept events go, the second what they made.
    users.apply(put(2, 10, name="Ben"))
    users.apply(put(2, 11, name="Benny"))
    assert users.stored("prior", "id") == []

    users.apply(put(3, 3, name="late"))

    assert users.rejected() == []
    assert users.current("id") == [(2,), (4,)]
    assert broken(users) == []


@pytest.mark.slow
def test_what_a_delete_shows_is_compared_only_where_something_reads_it(lab: Lab) -> None:
    """The version that this delete follows was not stored any more when it arrived."""
    users = lab.feed(history=False, changes_retention="keep", ignore_null_updates=True)
    users.apply(put(1, 1, name="Ann", city="Rio"), drop(1, 2))
    users.apply(put(1, 3, name="Anna", city=None), put(1, 5, name="Eve", city="Bonn"))
    users.apply(drop(1, 5))

    assert users.current("id") == []
    assert broken(users) == []
    lab.spark.sql(f"UPDATE {users.internal} SET hdr__operation = 'I' WHERE hdr__operation = 'D'")
    assert "changed_version" in broken(users)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["in order", "truncate last"])
def test_a_clock_that_runs_backwards_over_a_truncate(lab: Lab, order: str) -> None:
    """Without history too a record begins anew no earlier than its last version ended."""
    users = lab.feed(history=False, changes_retention="keep", task=SHOWN)
    steps = [put(1, 1, at=90, name="Ann"), clear(5), put(1, 7, at=3, name="Anna")]
    for step in steps if order == "in order" else [steps[0], steps[2], steps[1]]:
        users.apply(step)

    assert users.current("id", f"unix_seconds(hdr__from_timestamp) - {int(EPOCH.timestamp())}") == [
        (1, 90)
    ]
    assert broken(users) == []


@pytest.mark.slow
def test_a_reload_is_kept_as_events(users: Feed) -> None:
    lab = users.lab
    users.apply()
    users.land({"id": 1, "name": "Ann"}, {"id": 7, "name": "Gus"}, file="load/1.json")

    context = lab.context()
    reload(
        context,
        ReloadRequest(users.task, users.dataset, mode="compare_and_apply_with_deleted_rows"),
    )
    kept = users.stored("retained", "id", "hdr__operation")
    assert {(1, "u"), (2, "d"), (3, "d"), (5, "d"), (7, "i")} < set(kept)
    assert broken(users) == []

    reload(context, ReloadRequest(users.task, users.dataset, mode="drop_and_create"))
    assert users.stored("retained", "id", "hdr__operation") == [(1, "L"), (7, "L")]
    assert broken(users) == []


@pytest.mark.slow
def test_a_rebuild_that_dies_leaves_all_as_it_was(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = users.lab
    lab.spark.sql(f"DELETE FROM {users.internal} WHERE hdr__partition = 'prior'")
    target = users.table("the first owner")
    target.take_over()
    before = users.history(*COLUMNS), users.changes("id")

    with monkeypatch.context() as dying:
        dying.setattr(dataset, "commit_row_delta", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            again(users)
    assert (users.history(*COLUMNS), users.changes("id")) == before

    again(users)
    assert broken(users) == []
    with pytest.raises(ConflictError):
        lab.context().applier.apply(
            target, target.shape(), reason="stale", now=lab.clock.now(), rebuild=True
        )
