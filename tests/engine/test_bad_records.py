"""What a dataset does with a bad record: quarantine it, wait for somebody, or end its task."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.lake.read.inspect import committed, status
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.table.suspension import resume
from polynya.model.errors import InternalError, SuspendedError, TaskStoppedError
from polynya.model.loader import load_project
from polynya.observe.streams import StreamLost
from tests.lab.events import land, upsert
from tests.lab.lab import STARTED, Lab, Look, put
from tests.lab.landed import LandedTable
from tests.scenarios.kills import killed_at

CUT_OFF = b'{"id": 4, "name":'


def told(lab: Lab, look: Look) -> Any:
    """What `polynya status` knows of a dataset."""
    catalog = python_catalog(load_project(lab.project).target)
    table = catalog.load_table(look.internal)
    return status(committed(table), look.dataset, STARTED)


def test_a_dataset_waits_at_its_first_bad_batch_and_goes_on_when_the_file_is_mended(
    lab: Lab,
) -> None:
    users = lab.feed(on_bad_record="suspend")
    users.apply(put(1, 1, name="Ann"))
    bad = users.land(put(2, 2, name="Ben"), put(None, 3, name="Nobody"), CUT_OFF)
    users.land(put(3, 4, name="Cid"))

    with pytest.raises(SuspendedError, match="null_key: a key column is NULL"):
        users.run()
    assert users.current("id") == [(1,)]
    assert users.totals() == {"in": 1, "out": 1, "filtered": 0, "quarantined": 0}
    known = told(lab, users)
    assert known.suspended.startswith("null_key")
    assert known.suspended_where == f"{lab.schema}/users/{bad}, record 2"
    with pytest.raises(SuspendedError):
        users.run()

    users.land(put(2, 2, name="Ben"), put(4, 3, name="Dan"), file=bad)
    resume(users.table("somebody"), {})
    users.apply()

    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben"), (3, "Cid"), (4, "Dan")]
    assert users.totals() == {"in": 4, "out": 4, "filtered": 0, "quarantined": 0}

    users.land(put(5, 5, name="Eve"), b"PK\x03\x04 an archive")
    with pytest.raises(SuspendedError, match="bad_json"):
        users.run()
    resume(users.table("somebody"), {"bad_record": "ignore"})
    users.run()
    assert len(users.rejected()) == 1
    assert len(users.current("id")) == 5
    users.land(CUT_OFF)
    with pytest.raises(SuspendedError):
        users.run()


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param([CUT_OFF], id="cut off"),
        pytest.param([put(None, 3, name="Nobody")], id="without a key"),
        pytest.param([put(5, 3, name="Eve"), CUT_OFF], id="behind a good record"),
    ],
)
def test_files_before_a_bad_one_are_copied_before_the_dataset_waits(
    lab: Lab, bad: list[Any]
) -> None:
    users = lab.feed(on_bad_record="suspend")
    users.land(put(1, 1, name="Ann"))
    users.land(put(2, 2, name="Ben"))
    name = users.land(*bad)
    users.land(put(6, 4, name="Fay", age=3))

    with pytest.raises(SuspendedError, match=r"null_key|bad_json") as caught:
        users.run()
    assert str(caught.value.where).startswith(f"{lab.schema}/users/{name}, record")
    assert users.current("id") == [(1,), (2,)]
    assert users.totals() == {"in": 2, "out": 2, "filtered": 0, "quarantined": 0}

    resume(users.table("somebody"), {"bad_record": "quarantine"})
    users.apply()

    good = [(5, "Eve")] if len(bad) == 2 else []
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben"), *good, (6, "Fay")]
    assert len(users.history("id")) == len(users.current("id"))
    assert users.totals()["quarantined"] == len(users.rejected()) == 1


def test_the_first_of_several_bad_files_is_the_one_to_wait_at(lab: Lab) -> None:
    users = lab.feed(on_bad_record="suspend", columns={"n": "int"})
    users.land(put(1, 1, n=1))
    first = users.land(put(None, 2, n=2))
    users.land(CUT_OFF)

    with pytest.raises(SuspendedError, match="null_key") as caught:
        users.run()

    assert caught.value.where == f"{lab.schema}/users/{first}, record 1"
    assert users.current("id") == [(1,)]


@pytest.mark.slow
def test_a_kill_between_good_files_and_the_suspension_changes_nothing(lab: Lab) -> None:
    users = lab.feed(on_bad_record="suspend")
    users.land(put(1, 1, name="Ann"))
    users.land(CUT_OFF)

    # The commit of the good file is the one after that of the new owner.
    with pytest.raises(InternalError), killed_at(2, after=True):
        users.run()
    with pytest.raises(SuspendedError, match="bad_json"):
        users.run()
    assert users.current("id") == [(1,)]
    assert users.totals()["in"] == 1


def test_landed_batches_before_one_with_a_bad_message_are_copied(lab: Lab) -> None:
    columns = [{"name": "id", "expression": "id", "type": "bigint", "key": 1}]
    settings = {"mode": "merge", "columns": columns, "partition_by": "none"}
    clicks = LandedTable(lab, {**settings, "on_bad_record": "suspend"})
    clicks.land({"id": 1, "name": "Ann"}, {"id": 2, "name": "Ben"})
    clicks.land({"id": 3, "name": "Cid"}, CUT_OFF)
    clicks.land({"id": 5, "name": "Eve"})

    with pytest.raises(SuspendedError, match="bad_json"):
        clicks.run()
    assert clicks.look.current("id") == [(1,), (2,)]

    resume(clicks.look.table("somebody"), {"bad_record": "quarantine"})
    clicks.run()
    assert clicks.look.current("id") == [(1,), (2,), (3,), (5,)]
    assert clicks.look.totals() == {"in": 5, "out": 4, "filtered": 0, "quarantined": 1}
    assert not any(isinstance(event, StreamLost) for event in lab.events)


def test_a_task_ends_where_its_dataset_says_stop(lab: Lab) -> None:
    users = lab.feed(on_bad_record="stop")
    users.land(put(0, 0, name="Zoe"))
    bad = users.land(put(1, 1, name="Ann"), CUT_OFF)

    with pytest.raises(TaskStoppedError, match=r"bad_json.*`on_bad_record` is `stop`") as caught:
        users.run()
    assert caught.value.where == f"{lab.schema}/users/{bad}, record 2"
    assert users.table().state.copy.decisions.suspended is None
    assert users.stored("changes", "id") == [(0,)]
    assert users.rejected() == []

    users.configure(on_bad_record="quarantine")
    users.run()
    assert users.current("id") == [(0,), (1,)]
    assert len(users.rejected()) == 1


def test_the_other_tables_of_a_capture_go_on_without_the_one_that_waits(lab: Lab) -> None:
    capture = lab.capture(on_bad_record="suspend")
    land(capture, upsert(1, 10, name="Ann"))
    land(capture, upsert(1, 11, name="Rome"), table="towns")
    capture.run()
    users, towns = capture["users"], capture["towns"]

    land(capture, upsert(3, 19, name="Cid"))
    land(capture, upsert(2, 20, name="Ben"), upsert(None, 21, name="Nobody"))
    land(capture, upsert(2, 22, name="Oslo"), table="towns")
    capture.land(b"of no table at all")
    with pytest.raises(SuspendedError, match="null_key"):
        capture.run()
    assert users.current("id") == [(1,), (3,)]
    assert towns.current("id", "name") == [(1, "Rome"), (2, "Oslo")]
    assert [row[2] for row in capture.ledger().rejected()] == ["bad_json"]

    resume(users.table("somebody"), {"bad_record": "ignore"})
    capture.run()
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben"), (3, "Cid")]
    assert len(users.history("id")) == 3
    assert [row[2] for row in users.rejected()] == ["null_key"]
