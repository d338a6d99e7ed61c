"""A suspended dataset waits and loses nothing; the others of its task go on."""

from __future__ import annotations

from decimal import Decimal

import pytest

from polynya.engine.runner import run_once, units
from polynya.lake.table.state import Suspension
from polynya.lake.table.suspension import resume, suspend
from polynya.model.errors import OperationError, SuspendedError
from tests.lab.events import land, upsert
from tests.lab.lab import STARTED, Lab, put

WAIT = Suspension("asked", "the new column is not there yet", "here", STARTED.isoformat())


def test_a_suspended_dataset_is_applied_but_not_copied(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    suspend(users.table("somebody"), WAIT)

    with pytest.raises(SuspendedError, match="the new column is not there yet"):
        users.apply(put(2, 2, name="Ben"))
    meanwhile = users.stored("current", "id")
    resume(users.table("somebody"), {})
    users.apply()

    assert meanwhile == [(1,)]
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]
    with pytest.raises(OperationError, match="is not suspended"):
        resume(users.table("somebody"), {})


@pytest.mark.slow
def test_the_other_tables_of_a_capture_go_on_and_the_suspended_one_catches_up(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, upsert(1, 10, name="Ann"))
    land(capture, upsert(1, 11, name="Rome"), table="towns")
    capture.run("always")
    users, towns = capture["users"], capture["towns"]
    suspend(users.table("somebody"), WAIT)

    for second in (20, 30):
        land(capture, upsert(2, second, name=f"Ben {second}"))
        land(capture, upsert(2, second, name=f"Oslo {second}"), table="towns")
        with pytest.raises(SuspendedError):
            capture.run("always")
    assert towns.current("id", "name") == [(1, "Rome"), (2, "Oslo 30")]
    assert users.current("id", "name") == [(1, "Ann")]

    resume(users.table("somebody"), {})
    land(capture, upsert(3, 40, name="Cid"))
    capture.run("always")
    capture.run("always")

    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben 30"), (3, "Cid")]
    assert [len(look.history("id")) for look in (users, towns)] == [4, 3]
    for look in (users, towns):
        totals = look.table().state.copy.books.totals
        assert totals["rows_in"] == totals["rows_out"] == len(look.history("id"))


def test_views_follow_a_column_that_was_widened_before_the_suspension(lab: Lab) -> None:
    users = lab.feed(columns={"n": "decimal(4,2)"}, on_bad_record="suspend")
    users.copy(put(1, 1, n="1.50"))
    users.land(put(2, 2, n="123456.50"), b"{broken")
    with pytest.raises(SuspendedError):
        users.run()

    users.configure(columns={"n": "decimal(12,2)"})
    resume(users.table("somebody"), {})
    with pytest.raises(SuspendedError, match="bad_json"):
        users.run()

    assert users.types()["n"] == "decimal(12,2)"
    assert users.current("id", "n") == [(1, Decimal("1.50"))]

    # A process is killed after it widened the table, before its state knows.
    lab.spark.sql(f"ALTER TABLE {users.relation} ALTER COLUMN n TYPE DECIMAL(14,2)")
    with pytest.raises(SuspendedError):
        users.run()
    assert users.types()["n"] == "decimal(14,2)"


def test_a_run_that_goes_on_sees_that_its_dataset_was_resumed(lab: Lab) -> None:
    users = lab.feed()
    users.settings |= {"on_bad_record": "suspend"}
    context = lab.context("always")
    work = units(context, [users.task])
    users.land(put(1, 1, name="Ann"))
    assert not run_once(context, work).failures
    users.land(b"{broken", put(2, 2, name="Ben"))

    suspended = [run_once(context, work).failures.values() for _ in range(2)]
    resume(users.table("somebody"), {"bad_record": "quarantine"})
    after = run_once(context, work).failures

    assert all(isinstance(one, SuspendedError) for (one,) in suspended)
    assert not after
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]
    assert [event.type for event in lab.events].count("unit.failed") == 1
