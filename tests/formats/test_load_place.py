"""A full load stands behind the changes of its time and before the later ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from polynya.formats.dms import dms_file
from polynya.formats.registry import format_of
from polynya.formats.values.times import datetime_micros, stamp
from polynya.model.config.settings import Dataset
from polynya.model.config.task import StorageTask, resolved

BEGAN = datetime(2026, 1, 31, 10, 20, 30, 123456, tzinfo=UTC)


def place_of(file_format: str, **settings: Any) -> str | None:
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "users",
            "schema": "shop",
            "landing": {"path": "in", "format": file_format},
        }
    )
    return format_of(task).place_of_load(BEGAN, resolved(task, Dataset(name="users", **settings)))


def dms(moment: datetime) -> str:
    """The least change identifier of a file of changes that begins then."""
    place = dms_file(f"in/s/users/{moment:%Y%m%d-%H%M%S%f}.csv").place
    return f"{place}{0:015d}"


def replicate(moment: datetime) -> str:
    """A change sequence: 16 digits of time, 19 of the change."""
    return stamp(datetime_micros(moment))[:16] + "9" * 19


@pytest.mark.parametrize(("file_format", "change"), [("dms", dms), ("replicate", replicate)])
def test_changes_before_and_after_it(file_format: str, change: Any) -> None:
    place = f"{place_of(file_format)}~000001"

    assert change(BEGAN - timedelta(milliseconds=20)) < place
    assert change(BEGAN) < place
    assert change(BEGAN + timedelta(milliseconds=20)) > place


def test_only_an_order_by_time_has_one() -> None:
    assert place_of("dms", sequence_by=["seq"]) is None
    assert place_of("debezium") is None
    assert place_of("json") is None
