"""A full load stands behind the changes of its time and before the later ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.formats.dms.names import dms_file
from polynya.formats.load_place import has_place, place_of
from polynya.formats.values.instants import datetime_micros, stamp
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import Dataset, StorageTask, resolved

BEGAN = datetime(2026, 1, 31, 10, 20, 30, 123456, tzinfo=UTC)


def dataset(file_format: str, **settings: Any) -> ResolvedDataset:
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "users",
            "schema": "shop",
            "landing": {"path": "in", "format": file_format},
        }
    )
    return resolved(task, Dataset(name="users", **settings))


def dms(moment: datetime) -> str:
    """The least change identifier of a file of changes that begins then."""
    place = dms_file(f"in/s/users/{moment:%Y%m%d-%H%M%S%f}.csv").place
    return f"{place}{0:015d}"


def replicate(moment: datetime) -> str:
    """A change sequence: 16 digits of time, 19 of the change."""
    return stamp(datetime_micros(moment))[:16] + "9" * 19


@pytest.mark.parametrize(("file_format", "change"), [("dms", dms), ("replicate", replicate)])
def test_changes_before_and_after_it(file_format: str, change: Any) -> None:
    place = place_of(dataset(file_format), BEGAN) + "~000001"

    assert change(BEGAN - timedelta(milliseconds=20)) < place
    assert change(BEGAN) < place
    assert change(BEGAN + timedelta(milliseconds=20)) > place


def test_only_an_order_by_time_has_one() -> None:
    assert has_place(dataset("dms")) and has_place(dataset("replicate"))
    assert not has_place(dataset("dms", sequence_by=["seq"]))
    assert not has_place(dataset("debezium"))
    assert not has_place(dataset("json"))
