"""`polynya mirror`: how far the targets of mirrors are, and the SQL that makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from polynya.cli.context import Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.cli.visible import visible
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.loader import LoadedProject
from polynya.observe.events import discard
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from rich.table import Table

    from polynya.engine.tasks.mirror import MirrorWork
    from polynya.mirror.plan import MirrorPlan
    from polynya.mirror.rounds import MirrorRow

app = command_group("mirror", "Mirrors of tables in other warehouses: status, SQL, set-up.")


@app.command
def status(*tasks: str, context: Context) -> int:
    """Show which snapshot each target shows, and which one is here.

    Asks the catalog and the state that mirrors keep in the warehouse, never the target. Exit code
    3 when a table is behind for longer than `stale_after`, or its last try failed.

    For example: `polynya mirror status`.

    Args:
        tasks: names of mirrors. Default: all.
    """
    # Start-up time: PyIceberg and sqlglot.
    from polynya.mirror.rounds import described
    from polynya.mirror.state import load_state
    from polynya.mirror.targets import statements_of
    from polynya.store.places import store_at

    project = context.load(tolerant=True)
    now, store = SystemClock().now(), store_at(project.target.warehouse, project.target.aws)
    rows = []
    for task in _chosen(project, tasks):
        here = {one.name: one.commit for one in _work(project, task).sources()}
        alone = statements_of(task).finds_commits
        limit = task.refresh.stale_after.total_seconds()
        for row in described(load_state(store, task.name), here, now, finds_commits=alone):
            stale = row.behind_seconds > limit or row.failures > 0
            rows.append((task.name, row, stale))
    context.output.result(
        "mirror.status",
        {"tables": [{"mirror": name, **asdict(row), "stale": stale} for name, row, stale in rows]},
        _table(rows),
    )
    return ExitCode.CHANGES if any(stale for _, _, stale in rows) else ExitCode.OK


@app.command
def sql(
    task: str,
    *,
    dry_run: Annotated[Path | None, Parameter(name="--dry-run")] = None,
    context: Context,
) -> int:
    """Print the statements that the next round would carry out. Logs in, changes nothing.

    For example: `polynya mirror sql sales_snowflake --dry-run mirror.sql`.

    Args:
        task: name of the mirror.
        dry_run: write them to this file instead.
    """
    project = context.load(tolerant=True)
    (mirror,) = _chosen(project, [task])
    plan = _work(project, mirror).planned()
    for error in plan.refused.values():
        context.output.error(error)
    for note in plan.notes:
        context.output.note(note)
    script = plan_text(plan)
    if dry_run is not None:
        dry_run.write_text(script, encoding="utf-8")
    statements = statement_rows(plan)
    said = visible(script.rstrip("\n")) or "nothing to do"
    if dry_run is not None:
        said = f"{len(statements)} statements in {dry_run}"
    context.output.result("mirror.sql", {"mirror": task, "statements": statements}, said)
    if plan.refused:
        return ExitCode.FAILED
    return ExitCode.CHANGES if statements else ExitCode.OK


@app.command
def setup(
    task: str,
    *,
    terraform: bool = False,
    role_arn: str | None = None,
    account: str | None = None,
    user: str | None = None,
    credential: str | None = None,
    context: Context,
) -> int:
    """Print what an administrator of the target makes once: access to the tables, roles, rights.

    For example: `polynya mirror setup sales_snowflake --terraform`.

    Args:
        task: name of the mirror.
        terraform: as resources for Terraform instead of SQL; not for Databricks.
        role_arn: ARN of the AWS role that Snowflake or Redshift takes on.
        account: number of the AWS account of the Glue catalog, for Snowflake and Databricks.
        user: user of the mirror: in Redshift such as `IAMR:ROLE`, in Databricks the application id.
        credential: service credential of Databricks for the Glue catalog.
    """
    from polynya.mirror.setup import SetupNames, as_sql, as_terraform, options_of, setup_steps

    project = context.load(tolerant=True)
    (mirror,) = _chosen(project, [task])
    given = {"role_arn": role_arn, "account": account, "user": user, "credential": credential}
    told = {name: value for name, value in given.items() if value is not None}
    known = options_of(mirror.target.family)
    for option in (*told, *(["terraform"] if terraform else [])):
        if option not in known:
            said = option.replace("_", "-")
            fix = f"leave it out; {mirror.target.family} takes " + ", ".join(
                f"--{one.replace('_', '-')}" for one in known
            )
            raise WRONG_USAGE(f"--{said} means nothing to {mirror.target.family}", fix=fix)
    steps = setup_steps(mirror, project.target, SetupNames(**told))
    script = as_terraform(mirror, steps) if terraform else as_sql(steps)
    context.output.result(
        "mirror.setup", {"mirror": task, "text": script}, visible(script.rstrip("\n"))
    )
    return ExitCode.OK


def first_plan(project: LoadedProject, task: ConnectedMirror) -> MirrorPlan:
    """What makes all objects of a mirror in an empty schema. Logs in nowhere."""
    return _work(project, task).first_planned()


def statement_rows(plan: MirrorPlan) -> list[dict[str, str]]:
    """The statements as JSON has them."""
    return [
        {"action": one.action, "name": one.name, "dataset": one.dataset, "reason": one.reason,
         "sql": one.sql}
        for one in plan.statements
    ]  # fmt: skip


def plan_text(plan: MirrorPlan) -> str:
    """The statements as a script, each with its reason."""
    return "".join(
        f"-- {one.dataset}: {one.action} {one.name}: {one.reason}\n{one.sql};\n"
        for one in plan.statements
    )


def _chosen(project: LoadedProject, names: Sequence[str]) -> list[ConnectedMirror]:
    mirrors = {task.name: task for task in project.mirrors}
    for name in names:
        if name not in mirrors:
            raise WRONG_USAGE(f"no mirror is called `{name}`", fix=suggest(name, list(mirrors)))
    return [task for name, task in mirrors.items() if not names or name in names]


def _work(project: LoadedProject, task: ConnectedMirror) -> MirrorWork:
    # Start-up time: PyIceberg and sqlglot.
    from polynya.engine.tasks.mirror import MirrorWork

    return MirrorWork(task, project.target, clock=SystemClock(), sink=discard)


def _table(rows: Sequence[tuple[str, MirrorRow, bool]]) -> Table:
    from rich.table import Table

    table = Table("mirror", "dataset", "snapshot here", "there", "behind", "last error")
    for name, row, stale in rows:
        table.add_row(
            name, row.dataset, _shown(row.snapshot_here), _shown(row.snapshot_there),
            f"{row.behind_seconds:,.0f} s" if row.behind_seconds else "",
            visible(f"{row.code}: {row.error}") if row.error is not None else "",
            style="yellow" if stale else None,
        )  # fmt: skip
    return table


def _shown(snapshot: int | None) -> str:
    return "-" if snapshot is None else str(snapshot)
