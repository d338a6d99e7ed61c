"""Derived tables of a lab, for tests of transforms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polynya.engine.runner import run_once, units
from polynya.model.config.derived import DerivedTask, TransformTask
from polynya.model.config.registered import RegisteredTask
from polynya.model.config.settings import DatasetSettings
from polynya.model.config.task import StorageTask, resolved
from polynya.model.project_derived import as_derived
from polynya.observe.engine import RowsDerived
from tests.lab.lab import Lab, Look


class Derived(Look):
    """One derived table of a lab, and its inputs."""

    def __init__(self, lab: Lab, inputs: list[Any], sql: str | None, **settings: Any) -> None:
        super().__init__(lab)
        self.inputs, self.sql, self.settings = inputs, sql, {"keys": ["id"], **settings}
        self.name = f"d{len(lab.events)}_{id(self) % 10_000}"

    @property
    def task(self) -> DerivedTask:
        """The task as its file says."""
        tasks = {one.task.name: one.task for one in self.inputs}
        others = {name: one for name, one in tasks.items() if isinstance(one, RegisteredTask)}
        sources = {name: one for name, one in tasks.items() if name not in others}
        task = TransformTask.model_validate(
            {
                "apiVersion": "polynya/v1",
                "kind": "transform",
                "name": f"{self.lab.schema}_{self.name}",
                "from": list(tasks),
                "schema": self.lab.schema,
                "datasets": [{"name": self.name, "sql": self.sql, **self.settings}],
            }
        )
        made = as_derived(task, sources, DatasetSettings(), Path(), others)
        assert isinstance(made, DerivedTask)
        return made

    @property
    def dataset(self) -> Any:
        """See `Look`."""
        return resolved(self.task, self.task.datasets[0])

    def follow(self) -> None:
        """Take the steps of a run of this task alone; whatever fails is raised."""
        context = self.lab.context("never")
        for failure in run_once(context, units(context, [self.task])).failures.values():
            raise failure

    def steps(self) -> int:
        """How many times it was derived."""
        name = self.dataset.relations.current
        return sum(isinstance(e, RowsDerived) and e.subject == name for e in self.lab.events)


def run_all(lab: Lab, *tasks: StorageTask) -> None:
    """One run of several tasks, as `polynya run --once` has it."""
    context = lab.context("never")
    for failure in run_once(context, units(context, tasks)).failures.values():
        raise failure
