"""When a load began, on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polynya.cli.operate.reload import began_at
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import Dataset, StorageTask, resolved
from polynya.model.errors import ConfigError

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def dataset(file_format: str) -> ResolvedDataset:
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "users",
            "schema": "shop",
            "landing": {"path": "in", "format": file_format},
        }
    )
    return resolved(task, Dataset(name="users"))


def test_a_time_without_an_offset_is_utc() -> None:
    expected = datetime(2026, 5, 1, 10, tzinfo=UTC)

    assert began_at([dataset("dms")], "2026-05-01T10:00:00", NOW) == expected
    assert began_at([dataset("replicate")], "2026-05-01T12:00:00+02:00", NOW) == expected
    assert began_at([dataset("json")], None, NOW) is None


@pytest.mark.parametrize(
    ("formats", "as_of", "message"),
    [
        (["dms"], None, "needs `--as-of`"),
        (["json"], "2026-05-01", "ordered by time"),
        (["dms", "debezium"], "2026-05-01", "ordered by time"),
        (["dms"], "yesterday", "no time"),
        (["dms"], "2026-07-01", "not come yet"),
    ],
)
def test_what_is_refused(formats: list[str], as_of: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        began_at([dataset(one) for one in formats], as_of, NOW)
