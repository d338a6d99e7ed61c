"""Two owners really held at once: whatever the older one still commits is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from polynya.lake.apply.apply import Applier
from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.lake.iceberg import commit
from polynya.lake.iceberg.commit import CommitStep, Committed
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.table import dataset
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from polynya.model.errors import ConflictError, DependencyError, InternalError
from tests.lab.kept import Kept
from tests.lab.lab import STARTED, Feed, Lab, put
from tests.lab.lying import Lying
from tests.lake.apply.plain import PlainApplier

Commit = Callable[[IcebergTable, CommitStep], Committed]


@pytest.fixture(scope="module")
def kept(module_lab: Lab) -> Kept:
    users = module_lab.feed()
    users.apply(put(1, 1, name="Ann"))
    users.copy(put(2, 2, name="Ben"))
    return Kept(users)


@pytest.fixture
def users(kept: Kept) -> Feed:
    """A table with one applied and one pending row, that nobody works on."""
    return kept.again()


def copied(table: DatasetTable, users: Feed, *records: object) -> int:
    """Copy records in the name of an owner."""
    enter(table)
    return copy_batch(table, users.batch(*records), FastApplier(), now=STARTED).snapshot


def just_before_the_commit(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]
) -> list[CommitStep]:
    """Let something happen between the staging of the next copy and its commit; the steps taken."""
    real: Commit = commit.commit_row_delta
    steps: list[CommitStep] = []

    def late(table: IcebergTable, step: CommitStep) -> Committed:
        steps.append(step)
        if len(steps) == 1:
            act()
        return real(table, step)

    monkeypatch.setattr(dataset, "commit_row_delta", late)
    return steps


def test_every_owner_has_a_higher_epoch_than_the_one_before(users: Feed) -> None:
    before = users.table().state.epoch
    for name in ("one", "two"):
        users.table(name).take_over()

    state = users.table().state
    assert state.epoch == before + 2
    assert state.copy.ownership == state.apply.ownership
    assert state.copy.ownership.owner == "two"


def test_a_commit_that_was_prepared_before_the_takeover_is_refused(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = users.table("old"), users.table("new")
    old.take_over()
    new.reload()
    just_before_the_commit(monkeypatch, new.take_over)
    rows = users.changes("id")

    with pytest.raises(ConflictError) as caught:
        copied(old, users, put(3, 3, name="Cid"))

    assert caught.value.code == "POLYNYA-LAKE-003"
    assert users.changes("id") == rows == [(2,)]
    assert users.table().state.snapshot == new.state.snapshot


def test_a_refused_commit_leaves_no_files(users: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = users.table("old"), users.table("new")
    old.take_over()
    new.reload()
    left: set[object] = set()
    just_before_the_commit(monkeypatch, lambda: (new.take_over(), left.update(users.files())))

    with pytest.raises(ConflictError):
        copied(old, users, put(3, 3, name="Cid"))

    assert len(left - users.files()) == 2  # one of rows, one of state
    assert users.files() < left


def test_of_two_owners_of_a_new_table_one_is_refused(lab: Lab) -> None:
    """A new table has no state file that the second one could fail to remove."""
    users = lab.feed()
    first = DatasetTable.open(lab.spark, users.dataset, "first")
    second = DatasetTable.open(lab.spark, users.dataset, "second")
    first.take_over()

    with pytest.raises(ConflictError):
        second.take_over()

    assert users.table().state.copy.ownership.owner == "first"


def test_an_owner_that_is_overtaken_at_once_is_told(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its takeover stands, but before it looks again there is a newer one."""
    old, new = users.table("old"), users.table("new")
    real: Commit = commit.commit_row_delta

    def overtaken(table: IcebergTable, step: CommitStep) -> Committed:
        monkeypatch.setattr(dataset, "commit_row_delta", real)
        real(table, step)
        new.reload()
        new.take_over()
        table.refresh()
        return commit._outcome(table, step)

    monkeypatch.setattr(dataset, "commit_row_delta", overtaken)

    with pytest.raises(ConflictError, match="new took"):
        old.take_over()


def test_a_stale_owner_that_looks_is_told_who_took_over(users: Feed) -> None:
    old, new = users.table("old"), users.table("new")
    old.take_over()
    new.reload()
    new.take_over()

    with pytest.raises(ConflictError, match="new took") as caught:
        old.reload()

    assert caught.value.code == "POLYNYA-LAKE-002"


@pytest.mark.parametrize("applier", [FastApplier(), PlainApplier()], ids=["fast", "plain"])
def test_the_apply_of_a_stale_owner_is_refused(users: Feed, applier: Applier) -> None:
    old, new = users.table("old"), users.table("new")
    old.take_over()
    new.reload()
    new.take_over()
    before = users.stored("current", "*")

    with pytest.raises(ConflictError):
        applier.apply(old, old.shape(), reason="a test", now=STARTED)

    assert users.changes("id") == [(2,)]
    assert users.stored("current", "*") == before
    assert users.table().state.snapshot == new.state.snapshot


@pytest.mark.parametrize("applier", [FastApplier(), PlainApplier()], ids=["fast", "plain"])
def test_an_apply_that_began_before_a_copy_of_the_new_owner_is_refused(
    users: Feed, applier: Applier
) -> None:
    """It would consume Changes that it has not seen, or lose them."""
    old, new = users.table("old"), users.table("new")
    old.take_over()
    new.reload()
    copied(new, users, put(3, 3, name="Cid"))

    with pytest.raises(ConflictError):
        applier.apply(old, old.shape(), reason="a test", now=STARTED)

    assert users.changes("id") == [(2,), (3,)]
    assert users.current("id") == [(1,), (2,), (3,)]


def test_the_same_step_cannot_be_committed_twice(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = users.table("owner")
    table.take_over()
    steps = just_before_the_commit(monkeypatch, lambda: None)
    copied(table, users, put(3, 3, name="Cid"))
    before = users.files()

    with pytest.raises(ConflictError):
        commit.commit_row_delta(table.table, steps[0])

    # The files of the step are live: the refusal must not remove them.
    assert users.files() == before
    assert users.changes("id") == [(2,), (3,)]


def test_without_validation_the_second_owner_would_be_seen(
    users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault of the tests above."""
    old, new = users.table("old"), users.table("new")
    old.take_over()
    new.reload()
    monkeypatch.setattr(commit, "_validate", lambda *_: None)
    just_before_the_commit(monkeypatch, new.take_over)

    with pytest.raises(InternalError) as caught:
        copied(old, users, put(3, 3, name="Cid"))

    assert caught.value.code == "POLYNYA-LAKE-006"
    assert users.changes("id") == [(2,), (3,)]


@pytest.mark.parametrize("made", [True, False], ids=["made", "not made"])
def test_after_an_error_of_the_catalog_the_table_decides(
    users: Feed, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    table = users.table("owner")
    table.take_over()
    lying = Lying(table.table.java, users.lab.spark._jvm, made=made)
    monkeypatch.setattr(table.table, "_java", lying)

    if made:
        copied(table, users, put(3, 3, name="Cid"))
    else:
        with pytest.raises(DependencyError):
            copied(table, users, put(3, 3, name="Cid"))

    assert users.changes("id") == ([(2,), (3,)] if made else [(2,)])
