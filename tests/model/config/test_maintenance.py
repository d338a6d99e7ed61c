"""The settings `maintenance:` of project, task and dataset."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from polynya.model.config.maintenance import ACTIONS, Actions, Maintenance
from polynya.model.config.settings import Dataset, DatasetSettings
from polynya.model.config.task import StorageTask, merged, resolved


def final(project: dict[str, Any], task: dict[str, Any], dataset: dict[str, Any]) -> Maintenance:
    """The settings of a dataset, from those of its project, its task and itself."""
    one = Dataset.model_validate({"name": "orders", "maintenance": dataset})
    defaults = merged(
        DatasetSettings.model_validate({"maintenance": project}),
        DatasetSettings.model_validate({"maintenance": task}),
    )
    storage = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "shop",
            "schema": "shop",
            "landing": {"path": "shop", "format": "json"},
        }
    )
    return resolved(storage.model_copy(update={"defaults": defaults}), one).maintenance


def test_without_settings_every_action_is_taken() -> None:
    settings = final({}, {}, {})

    assert all(settings.allows(action) for action in ACTIONS)
    assert settings.snapshot_expiry.age == timedelta(hours=2)
    assert settings.snapshot_expiry.keep == 10
    assert settings.orphan_files.older_than == timedelta(days=3)


def test_every_action_has_its_switch() -> None:
    assert set(Actions.model_fields) == set(ACTIONS)


def test_each_key_is_that_of_whoever_is_nearest_also_inside_of_a_part() -> None:
    settings = final(
        {"snapshot_expiry": {"age": "1d", "keep": 3}, "budget": {"share": 0.5}},
        {"snapshot_expiry": {"age": "6h"}, "actions": {"expire_rows": False}},
        {"actions": {"rewrite_manifests": False}},
    )

    assert (settings.snapshot_expiry.age, settings.snapshot_expiry.keep) == (timedelta(hours=6), 3)
    assert settings.budget.share == 0.5
    off = {action for action in ACTIONS if not settings.allows(action)}
    assert off == {"expire_rows", "rewrite_manifests"}


def test_a_dataset_is_maintained_again_in_a_task_that_is_not() -> None:
    assert not final({}, {"enabled": False}, {}).allows("expire_snapshots")
    assert final({}, {"enabled": False}, {"enabled": True}).allows("expire_snapshots")


@pytest.mark.parametrize(
    "wrong",
    [
        {"compaction": True},
        {"actions": {"optimize": False}},
        {"snapshot_expiry": {"keep": 0}},
        {"snapshot_expiry": {"age": 7200}},
        {"orphan_files": {"older_than": "1h"}},
        {"budget": {"share": 0}},
        {"budget": {"share": 1.5}},
    ],
)
def test_what_cannot_be_meant_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Maintenance.model_validate(wrong)
