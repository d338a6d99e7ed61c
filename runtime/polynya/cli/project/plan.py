"""`polynya plan`: what a changed configuration does to the tables."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.tree import Tree

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.model.errors import PolynyaError
from polynya.model.reading.loader import LoadedProject

if TYPE_CHECKING:
    from polynya.engine.plan.dataset import DatasetPlan
    from polynya.engine.plan.project import Plan

_WHO = {
    "apply": "polynya migrate",
    "run": "next run",
    "decide": "decide first",
    "nobody": "nothing to do",
}


def plan(*, context: Context) -> int:
    """Compare the configuration with the tables and show the consequences for the data.

    Each change is shown with its consequence, and with the command that executes it: `polynya
    migrate` if it needs no landed records, otherwise the next `polynya run`. Reads only the
    catalog, and the pushed configuration if `polynya.yml` names a `cluster`, to show tasks that
    move. Needs no Java, writes nothing. Exit code 3 when something changes, 0 when nothing does.

    For example: `polynya plan --json`.
    """
    project, found = make_plan(context)
    show_plan(context, project, found)
    return ExitCode.CHANGES if found.has_changes else ExitCode.OK


def make_plan(context: CommandContext) -> tuple[LoadedProject, Plan]:
    """The project and its plan. Raises ConfigErrors for a project with any error."""
    # Start-up time: PyIceberg.
    from polynya.engine.plan.project import plan_project
    from polynya.lake.spark.catalog import has_tables, python_catalog

    project = context.load()
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    return project, plan_project(project, catalog, _pushed(context, project))


def _pushed(context: CommandContext, project: LoadedProject) -> LoadedProject | None:
    """What was pushed; None where that says nothing about whose tasks are whose."""
    place = project.target.config
    if place is None or project.project.cluster is None:
        return None
    # Start-up time: the store.
    from polynya.cluster.submitting.configured import load_from

    try:
        return load_from(str(place), project.target.name, None)
    except PolynyaError as error:
        context.output.warning(f"what was pushed is not compared: {error.message}")
        return None


def show_plan(context: CommandContext, project: LoadedProject, found: Plan) -> None:
    """Say a plan: a tree, or a JSON line for each dataset and one for the whole."""
    tree = Tree(f"target {project.target.name}")
    for planned in found.datasets:
        _tell(context, tree, planned.plan)
    new = dict.fromkeys(found.landings, "what it reads is looked up and landed by the next run")
    text = "its tables are found in what has landed, by the next run"
    new |= dict.fromkeys(found.undiscovered, text)
    for task, means in new.items():
        context.output.result("plan.task", {"task": task, "kind": "new_task", "means": means})
        tree.add(f"new task {task}").add(means)
    for moved in found.moved:
        said = {
            "task": moved.task,
            "kind": "moved_task",
            "from": moved.before,
            "to": moved.after,
            "means": moved.means,
        }
        context.output.result("plan.task", said)
        what = f"task {moved.task} moves from cluster {moved.before} to {moved.after}"
        tree.add(what).add(moved.means)
    for one in found.unconfigured:
        _tell(context, tree, one)
    changes = list(found.changes())
    data = {
        "changes": found.has_changes,
        "datasets": len(found.datasets),
        "to_decide": sum(change.action == "decide" for change in changes),
        "destructive": sum(change.destructive for change in changes),
    }
    context.output.result("plan", data, tree if tree.children else "nothing changes")


def _tell(context: CommandContext, tree: Tree, one: DatasetPlan) -> None:
    changes = [asdict(change) for change in one.changes]
    context.output.result(
        "plan.dataset", {"dataset": one.name, "task": one.task, "changes": changes}
    )
    branch = tree.add(f"{one.name}  (task {one.task})")
    for change in one.changes:
        mark = "DESTRUCTIVE  " if change.destructive else ""
        leaf = branch.add(f"{mark}{change.what}")
        leaf.add(f"{change.means}  [{_WHO[change.action]}]")
