"""The plan of a project with some tasks of the lab, and carrying it out."""

from __future__ import annotations

from dataclasses import replace

from polynya.engine.commands.plan_project import ProjectPlan, plan_project
from polynya.engine.commands.rebuild import configure
from polynya.lake.spark.catalog import has_tables, python_catalog
from polynya.model.config.task import StorageTask
from polynya.model.loader import load_project
from tests.lab.lab import Lab


def plan(lab: Lab, *tasks: StorageTask) -> ProjectPlan:
    """The plan of a project with these tasks; other tests' tables are none of its business."""
    project = replace(load_project(lab.project), tasks=tasks)
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    found = plan_project(project, catalog)
    own = [one for one in found.unconfigured if one.name.startswith(f"{lab.schema}_internal.")]
    return replace(found, unconfigured=tuple(own))


def migrate(lab: Lab, task: StorageTask) -> None:
    """Carry out the plan of a task, as `polynya migrate` does."""
    for planned in plan(lab, task).datasets:
        assert configure(lab.context(), planned)
