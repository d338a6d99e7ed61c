"""When a load began, on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from polynya.cli.reload import began_at
from polynya.formats.registry import format_of
from polynya.model.config.settings import Dataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import ConfigError

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def began(file_format: str, as_of: str | None, **settings: Sequence[str]) -> datetime | None:
    """What is made of `--as-of` for a task with two datasets; `sequence_by` is of one of them."""
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "users",
            "schema": "shop",
            "landing": {"path": "in", "format": file_format},
        }
    )
    datasets = [
        resolved(task, Dataset(name="users")),
        resolved(task, Dataset.model_validate({"name": "orders", **settings})),
    ]
    return began_at(format_of(task), datasets, as_of, NOW)


def test_a_time_without_an_offset_is_utc() -> None:
    expected = datetime(2026, 5, 1, 10, tzinfo=UTC)

    assert began("dms", "2026-05-01T10:00:00") == expected
    assert began("replicate", "2026-05-01T12:00:00+02:00") == expected
    assert began("json", None) is None


@pytest.mark.parametrize(
    ("file_format", "settings", "as_of", "message"),
    [
        ("dms", {}, None, "needs `--as-of`"),
        ("json", {}, "2026-05-01", "ordered by time"),
        ("debezium", {}, "2026-05-01", "ordered by time"),
        ("dms", {"sequence_by": ["seq"]}, "2026-05-01", "ordered by time"),
        ("dms", {}, "yesterday", "not a time"),
        ("dms", {}, "2026-07-01", "not come yet"),
    ],
)
def test_what_is_refused(
    file_format: str, settings: dict[str, list[str]], as_of: str | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        began(file_format, as_of, **settings)
