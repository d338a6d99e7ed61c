"""The configuration models in one place, for those who build a configuration in code."""

from __future__ import annotations

from polynya.model.config.project import Catalog, Project, Target
from polynya.model.config.settings import (
    ApplyPolicy,
    BatchSettings,
    Dataset,
    DatasetSettings,
    Landing,
    ViewSettings,
)
from polynya.model.config.task import ResolvedDataset, StorageTask, resolved

__all__ = [
    "ApplyPolicy",
    "BatchSettings",
    "Catalog",
    "Dataset",
    "DatasetSettings",
    "Landing",
    "Project",
    "ResolvedDataset",
    "StorageTask",
    "Target",
    "ViewSettings",
    "resolved",
]
