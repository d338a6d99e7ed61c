"""What a dataset does with a bad record: quarantine it, wait for somebody, or end its task."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.lake.read.inspect import status
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.table.suspension import resume
from polynya.model.errors import SuspendedError, TaskStoppedError
from polynya.model.reading.loader import load_project
from tests.lab.events import land, upsert
from tests.lab.lab import STARTED, Lab, Look, put

CUT_OFF = b'{"id": 4, "name":'


def told(lab: Lab, look: Look) -> Any:
    """What `polynya status` knows of a dataset."""
    catalog = python_catalog(load_project(lab.project).target)
    table = catalog.load_table(look.internal)
    return status(table, look.dataset, STARTED)


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


def test_a_task_ends_where_its_dataset_says_stop(lab: Lab) -> None:
    users = lab.feed(on_bad_record="stop")
    bad = users.land(put(1, 1, name="Ann"), CUT_OFF)

    with pytest.raises(TaskStoppedError, match=r"bad_json.*`on_bad_record` is `stop`") as caught:
        users.run()
    assert caught.value.where == f"{lab.schema}/users/{bad}, record 2"
    assert users.table().state.copy.decisions.suspended is None
    assert users.stored("changes", "id") == users.rejected() == []

    users.configure(on_bad_record="quarantine")
    users.run()
    assert users.current("id") == [(1,)]
    assert len(users.rejected()) == 1


@pytest.mark.slow
def test_the_other_tables_of_a_capture_go_on_without_the_one_that_waits(lab: Lab) -> None:
    capture = lab.capture(on_bad_record="suspend")
    land(capture, upsert(1, 10, name="Ann"))
    land(capture, upsert(1, 11, name="Rome"), table="towns")
    capture.run()
    users, towns = capture["users"], capture["towns"]

    land(capture, upsert(2, 20, name="Ben"), upsert(None, 21, name="Nobody"))
    land(capture, upsert(2, 22, name="Oslo"), table="towns")
    capture.land(b"of no table at all")
    with pytest.raises(SuspendedError, match="null_key"):
        capture.run()
    assert users.current("id") == [(1,)]
    assert towns.current("id", "name") == [(1, "Rome"), (2, "Oslo")]
    assert [row[2] for row in capture.ledger().rejected()] == ["bad_json"]

    resume(users.table("somebody"), {"bad_record": "ignore"})
    capture.run()
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]
    assert [row[2] for row in users.rejected()] == ["null_key"]
