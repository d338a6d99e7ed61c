"""Tasks that another cluster is to work on, from what was pushed to what is going to be."""

from __future__ import annotations

from dataclasses import dataclass

from polynya.model.reading.loader import LoadedProject


@dataclass(frozen=True, slots=True)
class MovedTask:
    """A task that goes from one cluster to another."""

    task: str
    before: str
    after: str

    @property
    def means(self) -> str:
        """What that does to its data."""
        return (
            f"with the next push its nodes leave it and those of cluster {self.after} go on where "
            "its tables stand; nothing is read twice"
        )


def moved_tasks(pushed: LoadedProject | None, project: LoadedProject) -> tuple[MovedTask, ...]:
    """The tasks that move; none where nothing was pushed.

    A project that named no cluster had one, which now gets the name of the project's default.
    """
    default = project.project.cluster
    if pushed is None or default is None:
        return ()
    before = {task.name: pushed.cluster_of(task) or default for task in pushed.works}
    return tuple(
        MovedTask(task.name, before[task.name], after)
        for task in project.works
        if task.name in before
        and (after := project.cluster_of(task)) is not None
        and after != before[task.name]
    )
