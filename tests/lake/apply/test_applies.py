"""Applies whose keys are looked up, with real Spark and Iceberg."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.lake.apply.fast import FastApplier
from tests.lab.lab import Feed, Lab, drop, put
from tests.lake.apply.stored import BUILDS, Watched

pytestmark = pytest.mark.spark


def indexed(lab: Lab, folder: Path, *, history: bool) -> tuple[Feed, Watched]:
    """Twenty users whose two applies have built an index of the first data file."""
    users, indexes = lab.feed(history=history), Watched(folder / "keys")
    users.applier = {"applier": FastApplier(indexes)}
    users.apply(*(put(number, 1, name=f"user {number}") for number in range(20)))
    users.apply(put(3, 2, name="Cid"))
    BUILDS.wait()
    assert indexes.used == 0
    return users, indexes


@pytest.mark.parametrize("history", [False, True], ids=["current", "history"])
def test_applies_that_look_up_then_a_compaction_by_somebody_else(
    lab: Lab, tmp_path: Path, history: bool
) -> None:
    users, indexes = indexed(lab, tmp_path, history=history)

    users.apply(put(3, 3, name="Cyd"), drop(4, 4), put(30, 5, name="new"))
    BUILDS.wait()
    assert indexes.used > 0

    before = indexes.used
    lab.spark.sql(
        f"CALL polynya.system.rewrite_data_files(table => '{users.internal}', "
        "options => map('rewrite-all', 'true', 'delete-file-threshold', '1'))"
    )
    # The files are new ones: the first apply after it reads their keys, the second looks them up.
    users.apply(put(5, 6, name="Eve"), drop(3, 7), put(4, 8, name="Dan again"))
    BUILDS.wait()
    assert indexes.used == before
    users.apply(put(5, 9, name="Eva"), drop(30, 10))

    assert indexes.used > before
    others = {number: f"user {number}" for number in range(20) if number not in {3, 4, 5}}
    assert users.current("id", "name") == sorted(
        [*others.items(), (4, "Dan again"), (5, "Eva")], key=repr
    )
    if history:
        past = [row[:3] for row in users.history("id", "name") if row[0] in {3, 5}]
        assert past == [
            (3, "Cid", "U"), (3, "Cyd", "D"), (3, "Cyd", "U"), (3, "user 3", "I"),
            (5, "Eva", "U"), (5, "Eve", "U"), (5, "user 5", "I"),
        ]  # fmt: skip
