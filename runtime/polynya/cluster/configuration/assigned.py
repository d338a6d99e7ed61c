"""Which tasks of a project an agent works on, where several clusters share the project."""

from __future__ import annotations

from dataclasses import dataclass

from polynya.model.reading.kinds import Task
from polynya.model.reading.loader import LoadedProject


@dataclass(frozen=True, slots=True)
class Mine:
    """The tasks of one cluster.

    Attributes:
        name: by which tasks name it; None: as the project calls the cluster of its other tasks.
        only_named: there are other clusters, so that a task of which nobody says whose it is cannot
            be taken.
    """

    name: str | None = None
    only_named: bool = False

    def why_not(self, project: LoadedProject, task: Task) -> str | None:
        """Why the agents of this cluster do not work on a task, None when they do."""
        cluster = project.cluster_of(task)
        if cluster is None:
            return UNNAMED if self.only_named else None
        own = self.name or project.cluster_name
        return None if cluster == own else f"cluster {cluster} has it"


UNNAMED = "nobody has it: several clusters share the project, and its polynya.yml names no cluster"
