"""Settings of a resolved dataset by their names alone, wherever they stand in it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from polynya.model.config.dataset import ResolvedDataset

PARTS = ("relations", "landing", "events", "kept", "layout", "policies")


def with_settings(dataset: ResolvedDataset, **settings: Any) -> ResolvedDataset:
    """The dataset with these settings, each put in the part that has it."""
    changed = {}
    for name in PARTS:
        part = getattr(dataset, name)
        own = {one.name for one in fields(part)} & settings.keys()
        changed[name] = replace(part, **{setting: settings.pop(setting) for setting in own})
    return replace(dataset, **changed, **settings)
