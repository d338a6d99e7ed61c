"""Applied events leave by their age although no apply comes, and no row of a table changes."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.engine.dataset import WorkingDataset
from polynya.engine.maintenance import MaintenanceUnit, maintain
from polynya.engine.unit import IDLE, TimeSlice
from polynya.lake.maintenance import retention
from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.retention import expire_changes
from polynya.lake.read.verify import verify
from polynya.observe.maintenance import MaintenanceDone
from tests.lab.lab import Feed, Lab, drop, put
from tests.lab.owned import copied, owned

DAY = 86400.0


@pytest.fixture
def users(lab: Lab) -> Feed:
    """Events of two applies, six days apart; the first has been too old for a day."""
    users = lab.feed(history=True, changes_retention="10d")
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"), drop(2, 3))
    lab.clock.sleep(6 * DAY)
    users.apply(put(1, 4, name="Anna"))
    lab.clock.sleep(5 * DAY)
    return users


def tables(users: Feed) -> Any:
    return users.current("*"), users.history("*")


def test_old_events_go_with_their_files_while_nothing_comes(users: Feed) -> None:
    before = tables(users)
    table = WorkingDataset.existing(users.lab.context(), users.dataset)
    beside = MaintenanceUnit(users.dataset)
    while beside.request_if_due(table, IDLE).ready_units:
        beside.unit.step(TimeSlice(at_once=False))

    done = [one for one in users.lab.events if isinstance(one, MaintenanceDone)]
    (expired,) = [one for one in done if one.action == "expire_changes"]
    assert expired.ended.startswith("3 events went with 1 files, applied up to ")
    assert users.stored("retained", "id") == [(1,)]
    assert tables(users) == before
    verdict = verify(users.table())
    assert not verdict.findings
    assert verdict.unchecked[0].startswith("3 versions up to ")

    # The younger ones go in their time, and then there is nothing to look for.
    users.lab.clock.sleep(6 * DAY)
    (taken,) = [
        one
        for one in maintain(users.lab.context(), users.dataset, ())
        if one.verdict.action == "expire_changes"
    ]
    assert taken.verdict.reason.endswith(" UTC") and taken.outcome.files_removed == 1
    assert users.stored("retained", "id") == []
    assert tables(users) == before
    assert not verify(users.table()).findings


@pytest.mark.slow
def test_what_came_meanwhile_stays_and_is_applied(users: Feed) -> None:
    table = owned(users)
    copied(users, table, put(3, 9, name="Cy"))

    done = expire_changes(table, ActionLimits(users.lab.clock.now()))

    assert (done.commits, done.files_removed) == (1, 1)
    assert [row[0] for row in users.stored("changes", "id")] == [3]
    users.apply()
    assert users.current("id", "name") == [(1, "Anna"), (3, "Cy")]
    assert not verify(users.table()).findings
    assert expire_changes(owned(users, "next"), ActionLimits(users.lab.clock.now())).commits == 0


@pytest.mark.slow
def test_an_apply_is_never_waited_for_long(users: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PATIENCE_SECONDS", 0.01)
    table = owned(users)

    with table.applying():
        done = expire_changes(table, ActionLimits(users.lab.clock.now()))

    assert (done.whole, done.commits) == (False, 0)
    assert len(users.stored("retained", "id")) == 4
