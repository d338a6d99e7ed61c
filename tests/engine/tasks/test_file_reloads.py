"""Full loads that a dataset reads again from landed files on a schedule."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from polynya.engine.due import due_of_dataset
from polynya.engine.tasks.file_reloads import load_glob
from polynya.lake.table import dataset
from polynya.model.config.dataset import Landed, Relations, ResolvedDataset
from polynya.model.config.settings import FileReload
from polynya.model.errors import OperationError
from polynya.store.object_store import ObjectInfo
from tests.engine.test_struck_commits import Blow, KilledError, Mode
from tests.lab.lab import STARTED, Feed, Lab

HOURLY = {"schedule": "0 * * * *"}


def source(lab: Lab, **how: Any) -> Feed:
    """A dataset of changes, whose producer also puts a full extract now and then."""
    bare = dict.fromkeys(("timestamp", "apply_as_deletes", "apply_as_truncates", "except_columns"))
    named = {"path": "changes/*.json", "initial_load": "full/*.json", "reload": HOURLY}
    return lab.feed(**bare, **{**named, **how})


def row(key: int, name: str, seq: int = 0) -> dict[str, Any]:
    return {"id": key, "name": name, "seq": seq}


def reloads(lab: Lab) -> int:
    return sum(event.type == "load.compared" for event in lab.events)


def test_each_due_moment_is_done_once_and_missed_ones_together(lab: Lab) -> None:
    users = source(lab)
    users.land(row(1, "Ann"), row(2, "Ben"), row(3, "Cid"), file="full/1.json")
    users.run("always")
    users.land(row(1, "Ann"), row(2, "Benny"), row(4, "Dot"), file="full/1.json")
    users.run("always")
    before = users.current("id", "name"), reloads(lab)

    lab.clock.sleep(5 * 3600 + 60)
    users.run("always")
    done = reloads(lab)
    users.run("always")
    lab.clock.sleep(50 * 60)
    users.run("always")

    assert before == ([(1, "Ann"), (2, "Ben"), (3, "Cid")], 0)
    assert users.current("id", "name") == [(1, "Ann"), (2, "Benny"), (4, "Dot")]
    assert Counter(version[2] for version in users.history("id", "name")) == {
        "L": 3, "u": 1, "d": 1, "i": 1,
    }  # fmt: skip
    assert (done, reloads(lab)) == (1, 1)
    state = users.table().state.copy
    assert state.reloaded is not None
    assert state.reloaded.rows == 3
    assert due_of_dataset(users.dataset, state) == STARTED + timedelta(hours=6)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [Mode.KILLED_BEFORE, Mode.KILLED_AFTER])
def test_a_reload_that_is_killed_at_a_commit_is_done_once(
    lab: Lab, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = source(lab)
    users.land(row(1, "Ann"), row(2, "Ben"), file="full/1.json")
    users.run("always")
    for number in range(10):
        users.land(row(1, f"Ann {number}"), row(number + 3, "new"), file="full/1.json")
        lab.clock.sleep(3600)
        blow = Blow(number, mode, [])
        with monkeypatch.context() as struck:
            struck.setattr(dataset, "commit_row_delta", blow.commit)
            with suppress(KilledError):
                users.run("always")
        users.run("always")
        users.run("always")
        assert users.current("id", "name") == [(1, f"Ann {number}"), (number + 3, "new")]
        if len(blow.steps) <= number:
            break

    assert number > 2
    versions = Counter(version[2] for version in users.history("id", "name"))
    assert versions == {"L": 2, "u": number + 1, "d": number + 1, "i": number + 1}


@pytest.mark.slow
def test_a_reload_without_files_is_an_error_and_changes_are_copied_on(lab: Lab) -> None:
    users = source(lab, initial_load=None, reload={**HOURLY, "files": "full/*.json"})
    users.land(row(1, "Ann", 1), file="changes/1.json")

    with pytest.raises(OperationError) as caught:
        users.run("always")

    assert caught.value.code == "POLYNYA-LAKE-014"
    assert users.current("id", "name") == [(1, "Ann")]


def landed(*names: str) -> list[ObjectInfo]:
    return [ObjectInfo(f"in/{name}", 1) for name in names]


@pytest.mark.parametrize(
    ("newest", "names", "glob"),
    [
        (None, ("f/1.csv", "f/2.csv"), "f/*.csv"),
        ("file", ("f/1.csv", "f/2.csv"), "f/2.csv"),
        ("folder", ("f/2026-01-01/a.csv", "f/2026-01-02/b.csv"), "f/2026-01-02/*"),
        ("folder", ("a.csv",), "*"),
        ("file", (), "f/*.csv"),
    ],
)
def test_the_newest_file_or_folder_by_name_is_the_load(
    newest: Any, names: tuple[str, ...], glob: str
) -> None:
    relations = Relations("s", "v", "h", "c", "i", "t")
    where = ResolvedDataset("task", "v", relations, Landed("csv", "in", "*"))
    settings = FileReload(schedule="@daily", files="f/*.csv", newest=newest)

    assert load_glob(landed(*names), where, settings) == glob
