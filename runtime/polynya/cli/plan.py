"""`polynya validate`, `plan` and `migrate`: what a changed configuration does to the tables."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.tree import Tree

from polynya.cli.checks import say_check
from polynya.cli.connections import connection_checks, missing_references, tell_connections
from polynya.cli.context import CommandContext, Context
from polynya.cli.doctor_tables import settings_for_other_engines
from polynya.cli.exit_codes import ExitCode
from polynya.cli.visible import visible
from polynya.engine.commands.validate import project_errors
from polynya.model.automations import load_automations
from polynya.model.config.derived import DerivedTask
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.derived import QUERY_NOT_INCREMENTAL
from polynya.model.error_catalogue.server_plans import PROJECT_CHANGED_SINCE_PLAN
from polynya.model.errors import ConfigError, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.store.configuration import FolderSource, plan_fingerprint

if TYPE_CHECKING:
    from polynya.engine.commands.plan import DatasetPlan
    from polynya.engine.commands.plan_project import ProjectPlan
    from polynya.engine.commands.planned_queries import PlannedQuery
    from polynya.lake.spark.api import SparkSession


def validate(*, origins: bool = False, reach: bool = False, context: Context) -> int:
    """Check all files of a project: shape, names, contradictions, expressions. Needs no Java.

    The connections are checked as the target has them, with its bindings. Overrides and variables
    without effect, references that this machine cannot resolve, what other engines cannot read, and
    what automations of a cluster cannot do, are warnings.

    For example: `polynya validate --project shop --json`.

    Args:
        origins: also show each setting of each connection, and where it comes from.
        reach: also check whether databases and servers can be reached, as `polynya doctor` does.
    """
    project = context.load(tolerant=True)
    errors, tests = project_errors(project)
    for error in errors:
        context.output.error(error)
    tell_connections(context, project, origins=origins)
    warnings = [
        *project.unused,
        *missing_references(project),
        *settings_for_other_engines(project),
        *_idle_automations(project),
    ]
    for warning in warnings:
        context.output.warning(warning)
    failed = 0
    for check in connection_checks(project, servers_only=False) if reach else ():
        say_check(context, check)
        failed = failed or (check.exit_code if check.status == "fail" else 0)
    if not (project.works or project.registered or errors):
        context.output.warning("the project has no tasks; add files to `tasks/`")
    declared = sum(1 for _ in project.datasets())
    context.output.result(
        "validation",
        {
            "valid": not errors,
            "errors": len(errors),
            "project": project.project.name,
            "target": project.target.name,
            "tasks": [task.name for task in project.works],
            "datasets": declared,
            "tests": tests,
            "warnings": warnings,
        },
        _summary(project, errors, declared),
    )
    return ExitCode.USAGE if errors else failed


def _idle_automations(project: LoadedProject) -> Iterator[str]:
    """What automations have and the cluster that the project names does not carry out."""
    if project.project.cluster is None:
        return
    # Start-up time: only projects with a cluster need it.
    from polynya.automation.commands import idle_in_cluster

    for one in load_automations(project)[0]:
        for text in idle_in_cluster(one.settings):
            yield f"{one.file}: in the cluster {project.project.cluster}, {text}"


def _summary(project: LoadedProject, errors: list[ConfigError], datasets: int) -> str:
    if errors:
        return f"{len(errors)} error{'s' if len(errors) > 1 else ''}; nothing was written"
    tasks = len(project.works)
    return (
        f"valid: project {project.project.name}, target {project.target.name}, "
        f"{tasks} task{'' if tasks == 1 else 's'}, {datasets} declared dataset"
        f"{'' if datasets == 1 else 's'}"
    )


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
    move. Writes nothing. Exit code 3 when something changes, 0 when nothing does.

    A query of a transform that names an unknown or ambiguous column is an error. Where a query is
    new or edited, or a column of its inputs changed, Spark starts once, which takes some seconds
    and needs Java: its analyser tells the columns and types of the result without reading a row,
    and a type that a step would refuse is an error. Without Java, types are not compared.

    Each table of a transform follows with the columns by which a step restricts its query to what
    changed, or the reason why each step computes the whole query. A query that is `strict` and has
    to be computed as a whole is an error. Exit code 1 with any error. The same line says why the
    next step computes all, as the first one does, or how many rows of each input have changed since
    the last step at most, pending changes included: by the snapshots, without reading a row.

    Instances of templates are named, each with its file and that of its template.

    Then follow the transforms that read a column which goes or gets another type, with what it
    reaches in them.

    Each mirror follows with the SQL that makes all its objects in an empty schema. The plan does
    not log in, so what the target has already does not count, nor does the SQL for the exit code:
    `polynya mirror sql` logs in and shows the difference.

    For example: `polynya plan --json`.
    """
    # Before the files are read: what changes them meanwhile makes the plan another one's.
    fingerprint = plan_fingerprint(FolderSource(context.options.project).read().files)
    project, project_plan = make_plan(context)
    queries = _queries(context, project)
    if queries:
        # Start-up time: Spark's interface.
        from polynya.engine.commands.planned_queries import with_queries

        project_plan = with_queries(project_plan, queries)
    show_plan(context, project, project_plan, fingerprint)
    _show_instances(context, project)
    refused = _show_steps(context, queries)
    _show_impacts(context, project)
    _show_mirrors(context, project)
    if refused:
        return ExitCode.FAILED
    return ExitCode.CHANGES if project_plan.has_changes else ExitCode.OK


def make_plan(context: CommandContext) -> tuple[LoadedProject, ProjectPlan]:
    """The project and its plan. Raises ConfigErrors for a project with any error."""
    # Start-up time: PyIceberg.
    from polynya.engine.commands.plan_project import plan_project
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
    from polynya.cluster.submit.configured import load_from

    try:
        return load_from(str(place), project.target.name, None)
    except PolynyaError as error:
        context.output.warning(f"what was pushed is not compared: {error.message}")
        return None


def refuse_changed(context: CommandContext, fingerprint: str | None) -> None:
    """Refuse a project that is not the one that a plan was made of; None: it is not asked.

    Call it after the files were loaded. Raises ConflictError POLYNYA-SRV-085.
    """
    if fingerprint is None:
        return
    files = FolderSource(context.options.project).read().files
    if plan_fingerprint(files) != fingerprint:
        raise PROJECT_CHANGED_SINCE_PLAN(where=str(context.options.project))


def show_plan(
    context: CommandContext,
    project: LoadedProject,
    project_plan: ProjectPlan,
    fingerprint: str | None = None,
) -> None:
    """Say a plan: a tree, or a JSON line for each dataset and one for the whole."""
    tree = Tree(f"target {project.target.name}")
    for planned in project_plan.datasets:
        _tell(context, tree, planned.plan)
    new = dict.fromkeys(project_plan.landings, "the next run discovers its streams and lands them")
    text = "the next run discovers its tables in the landing zone"
    new |= dict.fromkeys(project_plan.undiscovered, text)
    for task, means in new.items():
        context.output.result("plan.task", {"task": task, "kind": "new_task", "means": means})
        tree.add(f"new task {task}").add(means)
    for moved in project_plan.moved:
        task_data = {
            "task": moved.task,
            "kind": "moved_task",
            "from": moved.before,
            "to": moved.after,
            "means": moved.means,
        }
        context.output.result("plan.task", task_data)
        what = f"task {moved.task} moves from cluster {moved.before} to {moved.after}"
        tree.add(what).add(moved.means)
    for dataset_plan in project_plan.unconfigured:
        _tell(context, tree, dataset_plan)
    changes = list(project_plan.changes())
    data = {
        "changes": project_plan.has_changes,
        "datasets": len(project_plan.datasets),
        "to_decide": sum(change.action == "decide" for change in changes),
        "destructive": sum(change.destructive for change in changes),
        **({} if fingerprint is None else {"fingerprint": fingerprint}),
    }
    context.output.result("plan", data, tree if tree.children else "nothing changes")


def _show_instances(context: CommandContext, project: LoadedProject) -> None:
    """Say which tasks are instances of templates."""
    for task, template in project.templates.items():
        file = project.files[task]
        data = {"task": task, "file": file, "template": template}
        text = f"task {task}: an instance ({file}) of the template in {template}"
        context.output.result("plan.instance", data, visible(text))


def _queries(context: CommandContext, project: LoadedProject) -> list[PlannedQuery]:
    """The queries of transforms. Spark starts if one may give other columns or types."""
    if not any(isinstance(task, DerivedTask) for task in project.tasks):
        return []
    # Start-up time: PyIceberg and sqlglot.
    from polynya.engine.commands.planned_queries import planned_queries
    from polynya.engine.session import start_spark, throwaway
    from polynya.lake.spark.catalog import has_tables, python_catalog

    catalog = python_catalog(project.target) if has_tables(project.target) else None
    with tempfile.TemporaryDirectory(prefix="polynya-plan-", ignore_cleanup_errors=True) as folder:

        def start() -> SparkSession:
            # It reads no table, so it gets a catalog of its own, without any.
            with context.starting(project):
                return start_spark(throwaway(project, Path(folder)))

        queries = planned_queries(project, catalog, start)
    untold = [query for query in queries if query.untold is not None]
    if untold and untold[0].untold is not None:
        names = ", ".join(query.called for query in untold)
        why = untold[0].untold.message
        context.output.warning(f"types are not compared, since {why}: {names}")
    return queries


def _show_steps(context: CommandContext, queries: list[PlannedQuery]) -> bool:
    """Say what is wrong with queries, and how steps are restricted; whether one is refused."""
    refused = False
    for query in queries:
        for error in query.errors:
            context.output.error(error)
            refused = True
        if not query.errors:
            refused = _show_step(context, query) or refused
    return refused


def _show_step(context: CommandContext, query: PlannedQuery) -> bool:
    """Say how the steps of a query are restricted to what changed; whether that is refused."""
    # Start-up time: sqlglot.
    from polynya.derived.plans import FullPlan, TotalsPlan

    plan, name, next_step = query.steps, query.called, query.next_step
    columns = [] if plan is None or isinstance(plan, FullPlan) else list(plan.columns)
    why = plan.reason if isinstance(plan, FullPlan) else None
    means = f"a step computes the rows that changes concern, by {', '.join(columns)}"
    if isinstance(plan, TotalsPlan):
        means = f"a step adds what changed to its totals, by {', '.join(columns)}"
    if query.entry is None:
        means = "a view, whose query runs whenever it is read"
    elif plan is None:
        means = "how a step is restricted is known when its inputs have columns"
    elif why is not None:
        means = f"each step computes the whole query: {why}"
    # A step that computes all whatever changed needs no second reason.
    if next_step is not None and (why is None or next_step.whole is None):
        means += f"; {next_step.in_words()}"
    data = {
        "dataset": name,
        "task": query.task.name,
        "restricted_by": columns,
        "whole": why,
        "next_whole": None if next_step is None else next_step.whole,
        "changed_rows_at_most": {} if next_step is None else dict(next_step.changed),
        "means": means,
    }
    context.output.result("plan.step", data, visible(f"{name}: {means}"))
    if why is None or query.task.query_of(query.name).incremental != "strict":
        return False
    context.output.error(QUERY_NOT_INCREMENTAL(where=name, reason=why))
    return True


def _show_impacts(context: CommandContext, project: LoadedProject) -> None:
    """Say which transforms read columns that change, and what that reaches."""
    if not any(isinstance(task, DerivedTask) for task in project.tasks):
        return
    # Start-up time: PyIceberg and sqlglot.
    from polynya.engine.commands.lineage import impacts
    from polynya.lake.spark.catalog import has_tables, python_catalog

    if not has_tables(project.target):
        return
    for one in impacts(project, python_catalog(project.target)):
        change = one.change
        reached = [*one.columns, *(["its rows"] if one.decides_rows else [])]
        fails = "" if one.fails is None else f"; its query then fails: {one.fails}"
        data = {
            "dataset": one.dataset,
            "task": one.task,
            "changed": {"dataset": change.dataset, "column": change.column, "what": change.what},
            "columns": list(one.columns),
            "decides_rows": one.decides_rows,
            "fails": one.fails,
        }
        text = (
            f"impact on {one.dataset} (task {one.task}): {change.dataset}.{change.column}: "
            f"{change.what}; it reaches {', '.join(reached)}{fails}"
        )
        context.output.result("plan.impact", data, visible(text))


def _show_mirrors(context: CommandContext, project: LoadedProject) -> None:
    """Say the SQL with which each mirror begins; it is known for tables that exist."""
    if not project.mirrors:
        return
    # Start-up time: PyIceberg and sqlglot.
    from polynya.cli.mirror import first_plan, plan_text, statement_rows
    from polynya.lake.spark.catalog import has_tables

    is_begun = has_tables(project.target)
    for task in project.mirrors:
        made = first_plan(project, task) if is_begun else None
        data = {
            "mirror": task.name,
            "statements": [] if made is None else statement_rows(made),
            "needs": f"a connection tells what is there: `polynya mirror sql {task.name}`",
        }
        if made is None or not (made.statements or made.refused):
            text = f"mirror {task.name}: its SQL is known when a run has made the tables"
        else:
            text = (
                f"mirror {task.name}: its SQL for an empty schema. What is there needs a "
                f"connection: `polynya mirror sql {task.name}` shows the difference\n"
                + visible(plan_text(made).rstrip("\n"))
            ).rstrip("\n")
        context.output.result("plan.mirror", data, text)
        if made is not None:
            for error in made.refused.values():
                context.output.error(error)
            for note in made.notes:
                context.output.note(note)


def _tell(context: CommandContext, tree: Tree, dataset_plan: DatasetPlan) -> None:
    changes = [asdict(change) for change in dataset_plan.changes]
    context.output.result(
        "plan.dataset",
        {"dataset": dataset_plan.name, "task": dataset_plan.task, "changes": changes},
    )
    branch = tree.add(f"{dataset_plan.name}  (task {dataset_plan.task})")
    for change in dataset_plan.changes:
        mark = "DESTRUCTIVE  " if change.destructive else ""
        leaf = branch.add(f"{mark}{change.what}")
        leaf.add(f"{change.means}  [{_WHO[change.action]}]")


def migrate(*, yes: bool = False, if_unchanged: str | None = None, context: Context) -> int:
    """Execute what `polynya plan` shows, except changes that need landed records.

    Creates the tables of new datasets, columns that are no longer excluded, and views; drops views
    that are no longer configured; rewrites columns that cannot get their declared type in place;
    records the settings, and the new name of a renamed task. Reports what is left for the next
    `polynya run`. Stop `polynya run` first: a running one waits, says so, and then continues with
    its old settings. Exit code 1 when something needs a decision.

    For example: `polynya migrate --yes`.

    Args:
        yes: do not ask.
        if_unchanged: the `fingerprint` of `polynya plan --json`: nothing is done if the files of
            the project are others by now.
    """
    project, project_plan = make_plan(context)
    refuse_changed(context, if_unchanged)
    show_plan(context, project, project_plan)
    if not project_plan.has_changes:
        return ExitCode.OK
    if not yes and not _agreed(context):
        context.output.note("nothing was done")
        return ExitCode.OK
    # Start-up time: pyspark.
    from polynya.engine.collaborators import start_engine
    from polynya.engine.commands.rebuild import configure

    with context.starting(project):
        engine = start_engine(project, sink=context.output.event)
    done = [
        dataset_plan.plan.name
        for dataset_plan in project_plan.datasets
        if configure(engine, dataset_plan)
    ]
    changes = list(project_plan.changes())
    to_decide = sum(change.action == "decide" for change in changes)
    for_run = bool(project_plan.undiscovered) or any(
        change.action == "run" or change.kind == "new_dataset" for change in changes
    )
    text = f"brought in line: {', '.join(done) or 'nothing'}"
    if for_run:
        text += "\nthe next `polynya run` does the rest: see [next run] and new datasets above"
    if to_decide:
        text += f"\n{to_decide} left to decide: see [decide first] above"
    data = {"datasets": done, "to_decide": to_decide, "for_next_run": for_run}
    context.output.result("applied", data, text)
    return ExitCode.FAILED if to_decide else ExitCode.OK


def _agreed(context: CommandContext) -> bool:
    if not sys.stdin.isatty() or context.output.is_json:
        raise WRONG_USAGE("nobody is there to ask", fix="look at `polynya plan`, then use `--yes`")
    context.output.note("Migrate? [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
