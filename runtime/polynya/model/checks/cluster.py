"""Which cluster a task belongs to has to be known of each task of a project, or of none."""

from __future__ import annotations

from collections.abc import Iterator

from polynya.model.documents.problems import Problem


def cluster_problems(cluster: str | None, default: str | None) -> Iterator[Problem]:
    """Yield why a task cannot name its cluster; `default` is the one of the project."""
    if cluster is not None and default is None:
        yield Problem(
            ("cluster",),
            "POLYNYA-CFG-016",
            "the project names no cluster: whose the tasks are that name none is not known",
            "write `cluster: NAME` in polynya.yml, too: it has the tasks that name none",
        )
