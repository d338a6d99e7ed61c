"""Which columns find new rows, and when all rows are read instead."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from polynya.capture.landing.position import TableProgress
from polynya.capture.source import SourceColumn, SourceTable
from polynya.capture.wire import GrowingSettings
from polynya.capture.worker.extraction import growing_column, is_read_whole
from polynya.model.config.dataset import DELETING, KEEPING
from polynya.model.errors import OperationError
from tests.capture.worker.test_capture import SETTINGS

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
LOADED = TableProgress("loaded", loaded_at="2026-01-02T01:00:00+00:00", column="at", mark="7")
BEGUN = replace(LOADED, state="loading", was_loaded=True, load=3)


def a_table(type_name: str) -> SourceTable:
    return SourceTable("s.t", (SourceColumn("at", type_name, True, {}),), ("at",))


@pytest.mark.parametrize(
    ("type_name", "kind"),
    [
        ("smallint", "number"), ("bigint(20) unsigned", "number"), ("int", "number"),
        ("numeric(10,2)", "number"), ("decimal(20,3)", "number"), ("double precision", "number"),
        ("date", "time"), ("datetime(6)", "time"), ("timestamp with time zone", "time"),
        ("timestamp(3) without time zone", "time"), ("timestamp", "time"),
    ],
)  # fmt: skip
def test_numbers_and_times_grow(type_name: str, kind: str) -> None:
    assert growing_column("task", a_table(type_name), {"*": GrowingSettings("at")}).kind == kind


@pytest.mark.parametrize(
    "type_name",
    ["text", "integer[]", "timestamp with time zone[]", "interval", "daterange", "int4range",
     "float", "real", "time without time zone", "uuid", "point", "boolean"],
)  # fmt: skip
def test_other_types_do_not(type_name: str) -> None:
    with pytest.raises(OperationError, match="not of numbers or times"):
        growing_column("task", a_table(type_name), {"*": GrowingSettings("at")})


@pytest.mark.parametrize(
    ("progress", "column", "schedule", "whole"),
    [
        (None, "at", None, True),
        (replace(LOADED, state="loading"), "at", None, True),
        (LOADED, "at", None, False),
        (LOADED, "id", None, True),
        (LOADED, "at", "0 2 * * *", True),
        (LOADED, "at", "0 13 * * *", False),
        (replace(LOADED, state="suspended", was_loaded=True), "at", None, False),
        (replace(BEGUN, mode=DELETING), "at", None, True),
        (replace(BEGUN, mode=KEEPING), "at", None, False),
        (
            replace(LOADED, state="queued", was_loaded=True, load=3, mode=KEEPING, mark=None),
            "at", None, True,
        ),
    ],
)  # fmt: skip
def test_a_table_is_read_whole_when_new_rows_do_not_suffice(
    progress: TableProgress | None, column: str, schedule: str | None, *, whole: bool
) -> None:
    settings = replace(SETTINGS, reload_schedule=schedule)

    assert is_read_whole(settings, "s.t", progress, column, NOW) == whole
