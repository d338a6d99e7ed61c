"""A setting names a column that nobody has met: nothing is copied before somebody looks."""

from __future__ import annotations

import pytest

from polynya.model.errors import ConfigError, SuspendedError
from polynya.observe.engine import ColumnUnknown
from tests.lab.events import land, load
from tests.lab.lab import Lab, put


def test_a_typing_error_stops_the_dataset_until_it_is_corrected(lab: Lab) -> None:
    users = lab.feed(apply_as_deletes="opp = 'D'", timestamp="att")
    # A file in which nothing can be read says nothing of the columns.
    users.copy(b"no JSON at all")
    file = users.land(put(1, 1, name="Ann"))

    with pytest.raises(ConfigError) as caught:
        users.run()
    assert caught.value.code == "POLYNYA-CFG-030"
    assert "`timestamp` names `att` and `apply_as_deletes` names `opp`" in caught.value.message
    assert "did you mean `at` and `op`?" in str(caught.value.fix)
    assert caught.value.where == f"{lab.schema}/users/{file}"
    assert users.totals()["in"] == 1

    users.configure(apply_as_deletes="op = 'D'", timestamp="at")
    users.run()
    assert users.current("id", "name") == [(1, "Ann")]

    # What is named later is held to the table; what the table has need not be in every batch.
    users.configure(track_history_except=["nmae"])
    users.land(put(2, 2))
    with pytest.raises(ConfigError, match="did you mean `name`"):
        users.run()
    users.configure(track_history_except=["name"])
    users.run()
    assert users.current("id") == [(1,), (2,)]


def test_a_column_that_comes_later_is_a_warning(lab: Lab) -> None:
    users = lab.feed(apply_as_deletes="removed", optional_columns=["removed"])

    users.copy(put(1, 1))
    told = [event for event in lab.events if isinstance(event, ColumnUnknown)]
    users.copy(put(2, 2), {**put(1, 3), "removed": True})

    assert [(one.setting, one.column) for one in told] == [("apply_as_deletes", "removed")]
    assert users.current("id") == [(2,)]


def test_a_first_load_may_lack_what_events_bring_and_these_are_looked_at(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json", apply_as_deletes="opp = 'D'")
    users.land({"id": 1, "name": "Ann"}, file="load/1.json")
    users.run()
    assert users.current("id") == [(1,)]

    users.land(put(2, 2))
    with pytest.raises(ConfigError, match="did you mean `op`"):
        users.run()


def test_one_table_of_a_capture_waits_and_the_others_go_on(lab: Lab) -> None:
    bank = lab.capture()
    bank.more = {"datasets": [{"name": "users", "except_columns": ["nmae"]}]}
    land(bank, load(1, name="Ann"))
    land(bank, load(1, name="Leon"), table="towns")

    with pytest.raises(SuspendedError, match=r"names `nmae`.*did you mean `name`"):
        bank.run()

    assert bank["towns"].current("id") == [(1,)]
