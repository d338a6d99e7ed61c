"""A batch says whether it comes after all that was copied before: then queries read less."""

from __future__ import annotations

from polynya.lake.fold.newest import MAY_BE_LATE
from tests.lab.lab import Feed, Lab, drop, put


def may_be_late(users: Feed) -> dict[int, bool]:
    """Pending events by their number."""
    return dict(users.stored("changes", "n", MAY_BE_LATE))


def scans(lab: Lab, statement: str) -> int:
    """How many scans are left of the plan of a statement when all its rows are there."""
    frame = lab.spark.sql(statement)
    frame.toArrow()
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    return plan.partition("== Initial Plan ==")[0].count("BatchScan")


def test_only_a_batch_with_an_event_that_is_not_newer_may_be_late(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 10, n=1))
    users.copy(put(1, 11, n=2), drop(2, 12, n=3))
    users.copy(put(1, 20, n=4), put(2, 12, n=5))
    users.copy(put(1, 20, n=6))
    users.copy(put(1, 21, n=7))

    assert may_be_late(users) == {1: False, 2: False, 3: False, 4: True, 5: True, 6: True, 7: False}
    users.apply()
    users.copy(put(3, 15, n=8))
    users.copy(put(3, 30, n=9))
    assert may_be_late(users) == {8: True, 9: False}


def test_loaded_rows_may_be_newer_than_pending_ones_of_their_batch(lab: Lab) -> None:
    users = lab.feed(initial_load="load*")
    users.land(put(1, 5, n=1), put(1, 3, n=2), file="load1.json")
    users.run("never")

    assert may_be_late(users) == {2: True}
    assert users.current("id", "n") == [(1, 1)]


def test_a_query_reads_what_is_pending_and_each_stored_row_once(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, n=1), put(2, 2, n=2))
    query = f"SELECT id, n FROM {users.view}"
    assert scans(lab, query) == 1

    users.copy(put(1, 5, n=5))
    pending = scans(lab, query)
    users.copy(put(2, 1, n=0))

    assert scans(lab, query) > pending
    assert lab.rows(query) == [(1, 5), (2, 2)]
