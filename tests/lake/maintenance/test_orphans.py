"""Old files that nothing reaches leave a table's folder, and nothing else does."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.lake.apply.fast import FastApplier
from polynya.lake.maintenance import orphans
from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.orphans import find_orphans, remove_orphan_files
from polynya.model.errors import OperationError
from polynya.store.data_files import LocalFiles
from tests.lab.lab import STARTED, Feed, Lab, put
from tests.lab.owned import owned

DAY = 86_400


def now() -> datetime:
    return datetime.now(UTC)


def folder_of(users: Feed) -> Path:
    return Path(str(users.table().table.java.location()))


def aged(path: Path, days: float) -> Path:
    """The file as if it had been written so many days ago."""
    moment = time.time() - days * DAY
    os.utime(path, (moment, moment), follow_symlinks=False)
    return path


def left(folder: Path, name: str, days: float) -> Path:
    """A file that no commit has."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"seven b")
    return aged(path, days)


def test_only_old_files_go_that_nothing_reaches(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    users.apply(put(1, 3, name="Anna"))
    users.copy(put(3, 4, name="pending"))
    table, folder = owned(users), folder_of(users)
    views = users.current("id", "name"), users.history("id", "name"), users.changes("id")
    for path in folder.rglob("*"):
        aged(path, 9)
    old = [
        left(folder, "data/hdr__partition=current/0%20 lost.parquet", 4),
        left(folder, "metadata/lost-m0.avro", 4),
    ]
    kept = [
        left(folder, "data/hdr__partition=current/staged.parquet", 2),
        left(folder, "metadata/version-hint.text", 9),
        left(folder, "notes/by-hand.txt", 9),
        left(folder.parent, "beside.parquet", 9),
    ]
    (folder / "data" / "link").symlink_to(folder.parent / "beside.parquet")
    aged(folder / "data" / "link", 9)
    before = {path for path in folder.rglob("*") if path.is_file()}

    found = find_orphans(table.table, now=now())
    assert not isinstance(found, str)
    assert sorted(one.location for one in found.files) == sorted(map(str, old))
    assert found.size_bytes == 14
    done = remove_orphan_files(table, limits=ActionLimits(now()))

    assert (done.files_removed, done.freed_bytes, done.whole) == (2, 14, True)
    assert before - {path for path in folder.rglob("*") if path.is_file()} == set(old)
    assert all(path.exists() for path in kept)
    assert (users.current("id", "name"), users.history("id", "name"), users.changes("id")) == views
    with pytest.raises(ValueError, match="older than"):
        remove_orphan_files(table, limits=ActionLimits(now()), older_than=timedelta(hours=23))


@pytest.mark.slow
def test_files_of_a_commit_under_way_stay(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removed between staging and commit, as `LEAST_AGE` forbids: the planted fault is caught."""
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    users.copy(put(2, 2, name="Ben"))
    table = owned(users)
    times = [timedelta(days=3), timedelta(0)]
    monkeypatch.setattr(orphans, "LEAST_AGE", timedelta(0))
    removed: list[int] = []

    class Meanwhile(FastApplier):
        """Orphans are removed when the files of the apply are staged."""

        def stage(self, run: Any, outcome: Any) -> Any:
            staged = super().stage(run, outcome)
            limits = ActionLimits(now() + timedelta(seconds=1))
            done = remove_orphan_files(table, limits=limits, older_than=times.pop(0))
            removed.append(done.files_removed)
            return staged

    Meanwhile().apply(table, reason="a test", now=STARTED)
    assert removed == [0]
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]

    users.copy(put(3, 3, name="Cid"))
    table = owned(users)
    Meanwhile().apply(table, reason="a test", now=STARTED)
    assert removed[1] > 0
    with pytest.raises(Exception, match=r"(?i)not exist|No such file|NotFound"):
        users.current("id", "name")


def test_a_folder_that_is_reached_by_another_name_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    folder = folder_of(users)
    for path in folder.rglob("*"):
        aged(path, 9)
    files = users.files()
    (tmp_path / "alias").symlink_to(folder)
    table = owned(users)
    table.table.java.updateLocation().setLocation(str(tmp_path / "alias")).commit()

    with pytest.raises(OperationError) as caught:
        remove_orphan_files(table, limits=ActionLimits(now()))

    assert caught.value.code == "POLYNYA-MNT-011"
    assert users.files() >= files


def test_files_are_listed_as_their_folder_is_spelled(tmp_path: Path) -> None:
    for name in ("a b.txt", "x%20y.txt", "deep/er/z.txt"):
        left(tmp_path, name, 0)
    (tmp_path / "link").symlink_to(tmp_path / "deep")

    for root in (str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}/"):
        found = {one.location: one.size for one in LocalFiles().list(root)}
        top = root.rstrip("/")
        assert found == {f"{top}/{name}": 7 for name in ("a b.txt", "x%20y.txt", "deep/er/z.txt")}
    assert list(LocalFiles().list(str(tmp_path / "nothing"))) == []
