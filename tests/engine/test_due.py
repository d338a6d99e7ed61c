"""When scheduled loads are due next, by settings and stored state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from polynya.capture.landing.position import CapturePosition, ResumePoint, TableProgress
from polynya.engine.due import due_of_capture, due_of_dataset
from polynya.formats.debezium.captured import CaptureHeader
from polynya.lake.table.state import CopyState, ReloadRecord, SourcePosition
from polynya.model.config.capture import CaptureLanding
from polynya.model.config.dataset import Landed, Relations, ResolvedDataset
from polynya.model.config.schedule import AT_ONCE
from polynya.model.config.settings import FileReload


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NOW = utc("2026-01-10 12:00")
LOADED = TableProgress("loaded", loaded_at="2026-01-10T01:00:00+00:00")
INCREMENTAL = {
    "update_method": "incremental", "schedule": "0 */6 * * *", "incremental": {"column": "at"},
}  # fmt: skip


def capture(**settings: Any) -> CaptureLanding:
    given = {
        "apiVersion": "polynya/v1", "kind": "landing", "name": "shop", "connection": "shop",
        "tables": {"include": ["public.*"]},
    }  # fmt: skip
    return CaptureLanding.model_validate({**given, **settings})


def newest(written: str = "2026-01-10 11:00", **tables: TableProgress) -> CaptureHeader:
    position = CapturePosition(ResumePoint({"lsn": 1}), tables or {"public.a": LOADED})
    return CaptureHeader("shop", 1, utc(written), 0, position.as_dict())


def due_of(
    task: CaptureLanding, header: CaptureHeader | None, now: datetime = NOW
) -> datetime | None:
    if header is None:
        return due_of_capture(task, None, None, now=now)
    return due_of_capture(task, CapturePosition.of(header.position), header.written_at, now=now)


@pytest.mark.parametrize(
    ("settings", "header", "due"),
    [
        ({}, newest(), None),
        (INCREMENTAL, None, AT_ONCE),
        (INCREMENTAL, newest(), utc("2026-01-10 12:00")),
        (INCREMENTAL, newest("2026-01-10 03:00"), utc("2026-01-10 06:00")),
        (INCREMENTAL, newest(a=replace(LOADED, state="loading")), AT_ONCE),
        (
            {**INCREMENTAL, "reload": {"schedule": "30 11 * * *"}},
            newest(),
            utc("2026-01-10 11:30"),
        ),
        ({"reload": {"schedule": "0 2 * * *"}}, newest(), utc("2026-01-10 02:00")),
        ({"reload": {"schedule": "0 2 * * *"}}, None, None),
        ({"reload": {"schedule": "0 2 * * *"}}, newest(a=TableProgress("loaded")), AT_ONCE),
        ({"reload": {"schedule": "0 2 * * *"}}, newest(a=replace(LOADED, load=3)), None),
        ({"reload": {"schedule": "0 2 * * *"}}, newest(a=replace(LOADED, state="suspended")), None),
        ({"reload": {"schedule": "0 2 * * *", "tables": ["b"]}}, newest(a=LOADED), None),
    ],
)
def test_a_capture_is_due_by_its_schedules_and_what_has_landed(
    settings: dict[str, Any], header: CaptureHeader | None, due: datetime | None
) -> None:
    assert due_of(capture(**settings), header) == due


def test_a_load_that_is_due_outside_its_window_waits_for_it() -> None:
    night = {"rrule": "FREQ=DAILY;BYHOUR=22;BYMINUTE=0", "duration": "2h"}
    task = capture(**INCREMENTAL, active=night)

    assert due_of(task, newest("2026-01-10 03:00")) == utc("2026-01-10 22:00")
    inside = utc("2026-01-10 22:30")
    assert due_of(task, newest("2026-01-10 03:00"), inside) == utc("2026-01-10 06:00")


@pytest.mark.parametrize(
    ("initial_load", "state", "due"),
    [
        ("full/*", None, None),
        (None, None, AT_ONCE),
        (
            "full/*",
            CopyState(position=SourcePosition(load_started="2026-01-10T01:00:00+00:00")),
            utc("2026-01-10 02:00"),
        ),
        (
            "full/*",
            CopyState(
                reloaded=ReloadRecord("2026-01-10T09:00:00+00:00", "2026-01-10T10:00:00+00:00")
            ),
            utc("2026-01-11 02:00"),
        ),
    ],
)
def test_a_dataset_is_due_by_its_schedule_and_the_reload_before(
    initial_load: str | None, state: CopyState | None, due: datetime | None
) -> None:
    reload = FileReload(schedule="0 2 * * *", files="full/*")
    landed = Landed("json", "in", "*", initial_load=initial_load, reload=reload)
    dataset = ResolvedDataset("task", "v", Relations("s", "v", "h", "c", "i", "t"), landed)

    assert due_of_dataset(dataset, state) == due
    assert due_of_dataset(replace(dataset, landing=replace(landed, reload=None)), state) is None
