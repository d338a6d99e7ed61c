"""Clusters of one stage that share a project."""

from __future__ import annotations

from pathlib import Path

from stacks.settings.loader import load_deployment
from tests.stacks.settings.test_settings import HEAD


def test_clusters_may_share_a_project_and_its_databases(tmp_path: Path) -> None:
    """Its tasks name the cluster that works on them, and may move from one to the other."""
    text = (
        f"{HEAD}catalog: {{databases: [s, t]}}\nclusters: [{{name: a, databases: [s, t]}}, "
        "{name: b, databases: [s]}, {name: c, project: other, databases: []}]\n"
    )
    (tmp_path / "dev.yml").write_text(text, "utf-8")

    (stage,) = load_deployment(tmp_path).stages

    assert [stage.shares_project(one) for one in stage.clusters] == [True, True, False]
