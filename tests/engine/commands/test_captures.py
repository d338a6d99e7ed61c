"""States of captured tables as people see them: from the queue to the live view."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.capture.landing.position import CapturePosition, ResumePoint, TableProgress
from polynya.capture.source import Chunk
from polynya.engine.commands.captures import captured_table_state
from polynya.model.config.capture import CaptureLanding


def a_task(**settings: Any) -> CaptureLanding:
    return CaptureLanding.model_validate(
        {"apiVersion": "polynya/v1", "kind": "landing", "name": "shop_db", "connection": "shop",
         "tables": {"include": ["*"]}, **settings}
    )  # fmt: skip


#: A table whose load ended with batch 7.
LOADED = TableProgress("loaded", rows=5, ended=7)


@pytest.mark.parametrize(
    ("progress", "copied", "expected"),
    [
        (TableProgress(), 0, "queued"),
        (TableProgress("loading", rows=5), 0, "loading"),
        (TableProgress("loading", rows=5, changes=2), 0, "caching changes"),
        (LOADED, 6, "applying cached changes"),
        (LOADED, 7, "running"),
        (TableProgress("suspended", why="no right"), 9, "error"),
        # Nobody makes tables here, or the batch was landed before its number was kept.
        (LOADED, None, "running"),
        (TableProgress("loaded"), 0, "running"),
    ],
)
def test_a_table_is_in_one_state(
    progress: TableProgress, copied: int | None, expected: str
) -> None:
    assert captured_table_state(progress, a_task(), copied) == expected


def test_a_table_without_changes_is_loaded_and_never_running() -> None:
    task = a_task(update_method="reload", schedule="@daily")

    assert captured_table_state(LOADED, task, 6) == "applying cached changes"
    assert captured_table_state(LOADED, task, 7) == "loaded"


def test_changes_count_until_the_load_has_ended() -> None:
    before = CapturePosition(ResumePoint({}), {"a": TableProgress(), "b": LOADED})

    after = before.with_changes({"a": 3, "b": 4, "gone": 5})
    loaded = after.tables["a"].with_chunk(Chunk(b"", 1, None, is_last=True), 8)

    assert (after.tables["a"].changes, after.tables["b"]) == (3, LOADED)
    assert (loaded.changes, loaded.ended) == (3, 8)
    position = CapturePosition(ResumePoint({}), {"public.a": loaded})
    assert CapturePosition.of(position.as_dict()) == position
