"""Snapshots expire when nobody needs them, and no result changes by it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.lake.apply.fast import FastApplier
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.maintenance import snapshots as choice
from polynya.lake.maintenance import snapshots as expire
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.orphans import remove_orphan_files
from polynya.lake.maintenance.snapshots import ExpiryChoice, Keep, expire_snapshots
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from polynya.lake.warehouse.readers import RunningReader
from polynya.model.errors import ConflictError, InternalError, StaleStepError
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.owned import copied, owned

ONE = Keep(at_least=1)


def nobody() -> list[RunningReader]:
    return []


def later(hours: int = 3) -> ActionLimits:
    return ActionLimits(datetime.now(UTC) + timedelta(hours=hours))


def busy(lab: Lab, applies: int = 2) -> Feed:
    """A table with versions, deletes, and a pending change."""
    users = lab.feed()
    for number in range(applies):
        users.apply(put(1, 10 * number, name=f"v{number}"), put(100 + number, 1, name="x"))
    users.apply(drop(100, 99))
    users.copy(put(2, 1, name="pending"))
    return users


def seen(users: Feed) -> list[Any]:
    """What readers see of the table."""
    return [users.current("id", "name"), users.history("id", "name"), users.changes("id")]


def snapshots(users: Feed) -> int:
    return int(lab_rows(users, f"SELECT count(*) FROM {users.relation}.snapshots")[0][0])


def lab_rows(users: Feed, statement: str) -> list[Any]:
    return users.lab.rows(statement)


def expired(table: DatasetTable, **how: Any) -> ActionOutcome:
    settings: dict[str, Any] = {"limits": later(), "keep": ONE, "readers": nobody}
    return expire_snapshots(table, **settings | how)


def test_what_only_expired_snapshots_reach_is_gone(lab: Lab) -> None:
    users = busy(lab)
    views, before = seen(users), users.files()
    table = owned(users)
    assert expired(table, limits=later(1)).commits == 0

    done = expired(table, keep=Keep(at_least=3))

    assert (done.commits, snapshots(users)) == (1, 3)
    assert done.files_removed > len(before - users.files()) > 3
    assert done.freed_bytes > 0
    assert seen(users) == views
    # The table goes on in the hands that it was in, and in others.
    copied(users, table, put(3, 1, name="after"))
    users.apply(put(4, 1, name="last"))
    assert [row for row in users.current("id", "name") if row[0] in (3, 4)] == [
        (3, "after"),
        (4, "last"),
    ]


def test_a_clean_up_that_would_delete_what_is_in_use_deletes_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a live file among those that were found."""
    users = busy(lab, 1)
    views, table = seen(users), owned(users)
    live = str(lab_rows(users, f"SELECT file_path FROM {users.relation}.files")[0][0])
    real = expire._expired
    monkeypatch.setattr(expire, "_expired", lambda *parts: [*real(*parts), live])
    before = users.files()

    with pytest.raises(InternalError) as caught:
        expired(table)

    assert caught.value.code == "POLYNYA-MNT-010"
    assert caught.value.where == live
    assert users.files() == before
    assert seen(users) == views


@pytest.mark.slow
def test_a_running_reader_of_ours_goes_on(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "CLOCK_SKEW", timedelta())
    users = busy(lab)
    began = datetime.now(UTC)
    at = users.table().state.snapshot
    query = f"SELECT id, name FROM {users.relation} VERSION AS OF {at} WHERE id IS NOT NULL"
    running, wanted = lab.spark.sql(query), lab.rows(query)
    users.apply(put(1, 50, name="new"), drop(101, 60))
    table = owned(users)

    expired(table, readers=lambda: [RunningReader(began, began + timedelta(hours=9))])

    assert sorted(map(tuple, running.collect()), key=repr) == wanted
    # The planted fault: an expiry that does not ask for readers.
    expired(table)
    with pytest.raises(Exception, match=r"(?i)not exist|No such file|NotFound|cannot find"):
        lab.spark.sql(query).collect()


@pytest.mark.slow
def test_a_snapshot_that_an_apply_works_on_stays(lab: Lab) -> None:
    users = busy(lab)
    table = owned(users)
    held = table.state.snapshot
    assert held is not None

    with table.table.keeping(held):
        for number in range(3):
            copied(users, table, put(7, number, name="beside"))
        expired(table)
        assert table.table.snapshot(held) is not None
        assert len(users.table().table.metadata()["snapshots"]) == 4

    expired(table)
    assert users.table().table.snapshot(held) is None


@pytest.mark.slow
def test_a_tag_and_a_branch_hold_their_snapshots(lab: Lab) -> None:
    users = busy(lab)
    count = f"SELECT count(*) FROM {users.relation} VERSION AS OF '{{}}'"
    lab.spark.sql(f"ALTER TABLE {users.relation} CREATE TAG monthly RETAIN 365 DAYS")
    lab.spark.sql(f"ALTER TABLE {users.relation} CREATE BRANCH audit")
    held = [lab.rows(count.format(name)) for name in ("monthly", "audit")]
    users.apply(put(1, 70, name="new"), drop(101, 80))

    assert expired(owned(users)).commits == 1

    assert [lab.rows(count.format(name)) for name in ("monthly", "audit")] == held
    assert (1, "new") in users.current("id", "name")


@pytest.mark.slow
def test_an_expiry_whose_owner_was_overtaken_harms_nobody(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was decided before the takeover, and committed in the middle of the new owner's apply."""
    users = busy(lab)
    old, new = owned(users, "old"), users.table("new")
    real: Callable[[IcebergTable, ExpiryChoice], list[str]] = expire._expired
    late: list[ActionOutcome] = []

    class Slow(FastApplier):
        """Copies beside its apply, and then the old owner's expiry comes true."""

        def stage(self, run: Any, outcome: Any) -> Any:
            staged = super().stage(run, outcome)
            copied(users, new, put(8, 1, name="beside"))
            found.extend(real(*waiting[0]))
            return staged

    found: list[str] = []
    waiting: list[Any] = []

    def overtaken(table: IcebergTable, chosen: ExpiryChoice) -> list[str]:
        waiting.append((table, chosen))
        new.reload()
        enter(new)
        Slow().apply(new, reason="a test", now=STARTED)
        return found

    monkeypatch.setattr(expire, "_expired", overtaken)

    late.append(expired(old))

    assert late[0].files_removed > 0
    assert (2, "pending") in users.current("id", "name")
    assert (8, "beside") in users.current("id", "name")
    with pytest.raises(ConflictError):
        expired(old)


@pytest.mark.slow
def test_killed_before_the_files_are_deleted_they_are_orphans(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = busy(lab)
    views, table = seen(users), owned(users)
    before = users.files()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(expire, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            expired(table)
    assert (users.files(), snapshots(users), seen(users)) == (before, 1, views)

    gone = remove_orphan_files(table, limits=later(24 * 4))

    assert gone.files_removed > len(before - users.files()) > 3
    assert seen(users) == views


@pytest.mark.slow
def test_an_apply_whose_snapshot_somebody_expired_says_so_and_is_done_again(lab: Lab) -> None:
    """As an engine does that knows nothing of applies, such as the service of a bucket."""
    users = busy(lab)
    table = owned(users)

    class Unlucky(FastApplier):
        def stage(self, run: Any, outcome: Any) -> Any:
            staged = super().stage(run, outcome)
            copied(users, table, put(8, 1, name="beside"))
            now = f"TIMESTAMP '{datetime.now(UTC) + timedelta(seconds=1):%Y-%m-%d %H:%M:%S.%f}'"
            lab.spark.sql(
                "CALL polynya.system.expire_snapshots(table => "
                f"'{users.internal}', older_than => {now}, retain_last => 1)"
            )
            return staged

    with pytest.raises(StaleStepError) as caught:
        Unlucky().apply(table, reason="a test", now=STARTED)

    assert caught.value.code == "POLYNYA-LAKE-050"
    users.apply()
    assert {row[0] for row in users.current("id")} >= {1, 2, 8}
