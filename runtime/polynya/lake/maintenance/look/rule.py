"""What a dataset's settings mean for its actions; also for those who only explain them."""

from __future__ import annotations

from typing import Final

from polynya.lake.maintenance.base import ActionName
from polynya.lake.maintenance.rewrite.plan import Rule
from polynya.model.config.dataset import ResolvedDataset

#: The actions that there are. Others are never chosen.
BUILT_NAMES: Final[frozenset[ActionName]] = frozenset(
    {"rewrite_data_files", "expire_snapshots", "remove_orphan_files"}
)
_RULE: Final = Rule()


def rule_of(dataset: ResolvedDataset) -> Rule:
    """When data files of a dataset are written again."""
    del dataset
    return _RULE
