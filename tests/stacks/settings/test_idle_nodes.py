"""More nodes than there is to share: said, and not refused."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.settings.cluster import ClusterSettings
from stacks.settings.cluster_checks import idle_nodes

MORNING = {"name": "morning", "cron": "0 7 * * 1-5"}


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"maximum": 9}, None),
        ({"maximum": 4, "datasets": 4}, None),
        ({"maximum": 5, "datasets": 4}, 5),
        ({"maximum": 2, "datasets": 4, "schedules": [{**MORNING, "maximum": 6}]}, 6),
    ],
)
def test_nodes_beyond_the_datasets_are_said(settings: dict[str, Any], most: int | None) -> None:
    said = idle_nodes(ClusterSettings.model_validate({"name": "main", **settings}))

    if most is None:
        assert said is None
    else:
        assert said is not None
        assert said.startswith(f"cluster main may have {most} nodes for 4 datasets")
