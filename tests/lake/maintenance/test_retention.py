"""Rows leave by their age, by files where they can, and do not come back."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.lake.apply.fast import FastApplier
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.retention import expire_rows
from polynya.lake.read.verify import verify
from polynya.model.errors import ConfigError
from polynya.model.headers import Partition
from tests.lab.lab import STARTED, Feed, Lab, drop, put
from tests.lab.owned import owned
from tests.lake.apply.plain import PlainApplier
from tests.oracle.packs.read_back import READERS

#: The clock is at 1 June: what is older than 3 March has expired.
KEEP: dict[str, Any] = {"retention": {"column": "day", "keep": "90d"}, "columns": {"day": "date"}}


def on(day: str | None, **more: Any) -> Any:
    return {"day": None if day is None else f"2026-{day}", **more}


def filled(users: Feed) -> Feed:
    users.apply(
        put(1, 1, **on("01-10")), put(2, 2, **on("03-02")), put(3, 3, **on("03-03")),
        put(4, 4, **on(None)), put(5, 5, **on("01-11")), put(6, 6, **on("05-01")),
    )  # fmt: skip
    users.apply(put(5, 11, **on("05-02")), drop(6, 12))
    return users


def seen(users: Feed) -> Any:
    """What the views show, but for the operation: the first version may be an update by now."""
    versions = [(row[0], row[1], row[3:]) for row in users.history("id", "day")]
    return users.current("id", "day"), versions


def expire(users: Feed) -> ActionOutcome:
    table = owned(users)
    return expire_rows(table, ActionLimits(STARTED))


@pytest.mark.parametrize(
    "kind",
    [
        {},
        pytest.param({"partition_by": ["month(day)"], "format_version": 3}, marks=pytest.mark.slow),
    ],
)
def test_what_is_older_leaves_current_and_history(lab: Lab, kind: dict[str, Any]) -> None:
    users = filled(lab.feed(history=True, changes_retention="keep", **KEEP, **kind))

    done = expire(users)

    assert done.commits and done.whole
    assert [key for (key,) in users.current("id")] == [3, 4, 5]
    assert [key for (key, *_) in users.history("id")] == [3, 4, 5, 6, 6]
    assert not verify(users.table()).findings
    assert expire(users).commits == 0
    if kind:
        # Files of a month leave whole, but for that in which the limit is.
        assert done.files_removed >= 2


@pytest.mark.slow
def test_no_late_event_brings_a_row_back(lab: Lab) -> None:
    users = filled(lab.feed(history=True, changes_retention="keep", **KEEP))
    expire(users)
    before = seen(users)
    late = [put(1, 1, **on("01-10")), put(2, 30, **on("02-01")), put(3, 2, **on("01-01"))]

    users.copy(*late)
    assert seen(users) == before
    users.apply()

    assert seen(users) == before
    assert not verify(users.table()).findings
    # A record that is young again is a new one.
    users.apply(put(1, 40, **on("05-30")))
    assert (1,) in users.current("id")
    table = users.table("rebuilder")
    FastApplier().apply(table, reason="a rebuild", now=STARTED, rebuild=True)
    assert (1,) in users.current("id") and (2,) not in users.current("id")
    assert not verify(users.table()).findings


@pytest.mark.slow
@pytest.mark.parametrize("history", [True, False])
def test_both_appliers_agree_on_what_has_expired(lab: Lab, history: bool) -> None:
    rows = []
    for name, applier in (("fast", FastApplier()), ("plain", PlainApplier())):
        users = lab.feed(name, history=history, **KEEP)
        users.applier = {"applier": applier}
        filled(users)
        expire(users)
        users.apply(put(1, 1, **on("01-10")), put(7, 31, **on("02-01")), put(8, 32, **on("05-05")))
        users.apply(put(3, 33, **on("01-01")), drop(5, 34))
        found = users.stored("current", "id", "day"), users.stored("prior", "id", "day")
        rows.append((*found, users.current("id", "day")))

    assert rows[0] == rows[1]
    assert [key for key, _ in rows[0][2]] == [4, 8]


@pytest.mark.slow
def test_rows_of_events_leave_and_the_books_know(lab: Lab) -> None:
    users = lab.feed(
        mode="append_only", history=None, apply_as_deletes=None, apply_as_truncates=None,
        keys=None, **KEEP,
    )  # fmt: skip
    users.apply(put(1, 1, **on("01-10")), put(2, 2, **on("05-01")))
    users.apply(put(3, 3, **on("01-11")))

    assert expire(users).commits
    users.apply(put(4, 4, **on("05-02")), put(5, 5, **on("01-01")))

    assert [key for (key,) in users.current("id")] == [2, 4]
    assert not verify(users.table()).findings
    expire(users)
    assert not verify(users.table()).findings
    namespace, _, name = users.internal.partition(".")
    for read in READERS.values():
        found = read(lab.project, namespace, name, ("id",), "hdr__partition = 'current'")
        assert sorted(row["id"] for row in found) == [2, 4]


def test_a_column_that_says_no_age_is_refused(lab: Lab) -> None:
    users = lab.feed(retention={"column": "name", "keep": "90d"})

    with pytest.raises(ConfigError) as caught:
        users.apply(put(1, 1, name="Ann"))

    assert caught.value.code == "POLYNYA-CFG-043"


@pytest.mark.slow
def test_timestamps_are_ages_too(lab: Lab) -> None:
    for number, kind in enumerate(("timestamp", "timestamp_ntz")):
        how = {**KEEP, "columns": {"day": kind}}
        users = lab.feed(f"users{number}", history=False, **how)
        users.apply(put(1, 1, day="2026-03-02T23:59:59"), put(2, 2, day="2026-03-03T00:00:00"))
        expire(users)
        assert users.current("id") == [(2,)]
        assert users.table().table.files(Partition.CURRENT, users.table().state.snapshot)
