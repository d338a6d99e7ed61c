"""`polynya dataset`, `rebuild`, `adopt` and `maintain`: commands about whole tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, TypeAlias

from polynya.cli.cluster_location import (
    ANYWHERE,
    ClusterLocation,
    Reason,
    Wait,
    Where,
    locate,
    operator,
)
from polynya.cli.context import CommandContext, Context, command_group, select_storage
from polynya.cli.exit_codes import ExitCode
from polynya.cli.status import chosen_entries
from polynya.cli.unit_requests import send_requests
from polynya.model.config.evolution import policy_in_words
from polynya.model.config.maintenance import ActionName
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.operation import UNKNOWN_MAINTENANCE_ACTION
from polynya.model.errors import PolynyaError
from polynya.model.formats import rules_of
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.coordination.documents import UnitRequest
    from polynya.engine.commands.rebuild import RebuildResult
    from polynya.engine.inventory import ProjectTable
    from polynya.engine.maintenance_choice import ActionReview, ActionVerdict
    from polynya.lake.read.committed import CommittedTable
    from polynya.lake.warehouse.adopt import Adopted


#: Answers to the decision for which a dataset is suspended.
Accepted: TypeAlias = Literal["propagate", "ignore", "apply"]

app = command_group("dataset", "Suspend or resume one dataset.")


@app.command
def resume(task: str, dataset: str, /, *, accept: Accepted | None = None, context: Context) -> int:
    """Resume a suspended dataset: the next run reads from the first record it has not copied.

    Without `--accept` it is suspended again, unless the settings or the files have changed.

    For example: `polynya dataset resume shop orders --accept propagate`.

    Args:
        task: name of the task.
        dataset: name of the dataset.
        accept: let the next batch `propagate` or `ignore` the cause of the suspension, once; bad
            records then go to quarantine. The policy of the dataset stays. `apply` is the former
            name of `propagate`.
    """
    # Start-up time: pyspark.
    from polynya.engine.collaborators import start_engine
    from polynya.lake.table.dataset import DatasetTable
    from polynya.lake.table.suspension import resume as resume_table

    entry = _entry(context, task, dataset)
    project = context.load(tolerant=True)
    with context.starting(project):
        engine = start_engine(project)
    target = DatasetTable.existing(engine.spark, entry.dataset, engine.owner)
    suspension = target.state.copy.decisions.suspended
    policy = "apply" if accept == "propagate" else accept
    if policy == "apply" and suspension is not None and suspension.cause == "change_key":
        raise WRONG_USAGE(
            "no table can follow a change of its keys: `--accept ignore` keeps them",
            fix="another `name` with the new `keys` builds a new table",
        )
    accepted = {suspension.cause: policy} if suspension is not None and policy else {}
    ended = resume_table(target, accepted)
    how = f"; the next batch may {policy_in_words(accept)} it" if accept else ""
    data = {"dataset": entry.name, "cause": ended.cause, "reason": ended.reason, "accept": accept}
    context.output.result(
        "dataset.resumed", data, f"{entry.name} continues; it waited for: {ended.reason}{how}"
    )
    return ExitCode.OK


@app.command
def suspend(
    task: str, dataset: str, /, *, reason: str = "somebody asked for it", context: Context
) -> int:
    """Keep a dataset from being copied until `resume`; what was copied before is still applied.

    For example: `polynya dataset suspend shop orders --reason "wait for the new column"`.

    Args:
        task: name of the task.
        dataset: name of the dataset.
        reason: reason that `status` and every run show.
    """
    # Start-up time: pyspark.
    from polynya.engine.collaborators import start_engine
    from polynya.lake.table.dataset import DatasetTable
    from polynya.lake.table.state import Suspension
    from polynya.lake.table.suspension import suspend as suspend_table

    entry = _entry(context, task, dataset)
    project = context.load(tolerant=True)
    with context.starting(project):
        engine = start_engine(project)
    target = DatasetTable.existing(engine.spark, entry.dataset, engine.owner)
    since = SystemClock().now().isoformat()
    suspend_table(target, Suspension("asked", reason, entry.name, since))
    context.output.result(
        "dataset.suspended", {"dataset": entry.name, "reason": reason}, f"{entry.name} is suspended"
    )
    return ExitCode.OK


def _entry(context: CommandContext, task: str, dataset: str) -> ProjectTable:
    """The table of a dataset; a usage error when there is none."""
    # Start-up time: PyIceberg.
    from polynya.engine.inventory import inventory
    from polynya.lake.spark.catalog import python_catalog

    project = context.load(tolerant=True)
    chosen = {storage_task.name for storage_task in select_storage(project, [task])}
    entries = [
        entry
        for entry in inventory(project, python_catalog(project.target))
        if entry.task.name in chosen and not entry.is_ledger and entry.table is not None
    ]
    for entry in entries:
        if entry.dataset.name == dataset:
            return entry
    names = ", ".join(entry.dataset.name for entry in entries)
    raise WRONG_USAGE(f"the task {task} has no table of a dataset `{dataset}`", fix=names or None)


def rebuild(task: str, /, *, dataset: str | None = None, context: Context) -> int:
    """Derive Current and Prior again from the kept and pending events of a task's datasets.

    For datasets with `changes_retention`. Versions from before it was set, or whose events have
    expired, stay as they are. One commit per dataset writes the versions that differ from what the
    events make; readers see the old rows until then. After you set `history: true`, history becomes
    complete as far as events are kept. Calling it again changes nothing. A concurrent `polynya run`
    of these datasets waits, and says so.

    For example: `polynya rebuild users --dataset users`.

    Args:
        task: name of the task.
        dataset: only this dataset.
    """
    # Start-up time: pyspark.
    from polynya.cli.context import select_storage
    from polynya.engine.collaborators import start_engine
    from polynya.engine.commands.rebuild import rebuild as rebuild_dataset
    from polynya.engine.inventory import inventory
    from polynya.lake.spark.catalog import python_catalog

    project = context.load(tolerant=True)
    (chosen,) = select_storage(project, [task])
    entries = [
        entry
        for entry in inventory(project, python_catalog(project.target))
        if entry.task.name == chosen.name
        and entry.table is not None
        and not entry.is_ledger
        and dataset in (None, entry.dataset.name)
    ]
    if not entries:
        raise WRONG_USAGE(
            f"the task {task} has no table {f'of `{dataset}`' if dataset else 'yet'}",
            fix="`polynya status` lists them",
        )
    # Without any that keeps events the first one says why nothing can be done.
    keeping = [entry for entry in entries if entry.dataset.kept.changes_retention] or entries[:1]
    for entry in entries:
        if entry not in keeping:
            context.output.note(f"{entry.name}: has no `changes_retention`, left as it is")
    with context.starting(project):
        engine = start_engine(project, sink=context.output.event)
    code = int(ExitCode.OK)
    for entry in keeping:
        try:
            result = rebuild_dataset(engine, entry.dataset)
        except PolynyaError as error:
            context.output.error(error)
            code = max(code, error.exit_code)
            continue
        data = {"dataset": entry.name, **asdict(result)}
        context.output.result("rebuilt", data, _text(entry.name, result))
    return code


def _text(name: str, result: RebuildResult) -> str:
    base = f", versions up to {result.since} taken as they are" if result.since else ""
    return (
        f"rebuilt  {name} from {result.kept:,} kept and {result.pending:,} pending events{base}: "
        f"{result.restored:,} versions restored, {result.corrected:,} corrected, "
        f"{result.surplus:,} removed, in {result.seconds:.1f} s"
    )


def adopt(*, context: Context) -> int:
    """Adopt the tables in the target's warehouse after the folder was copied or moved.

    Tables refer to their files by absolute paths, so a copied warehouse still uses the tables of
    the original. This rewrites the paths, for the present snapshot of each table. The former folder
    is neither needed nor touched; earlier snapshots stay there. No process may work in the
    warehouse meanwhile. Needs no Java.

    For example: `polynya adopt --project shop-copy`.
    """
    # Start-up time: fastavro and pyarrow.
    from polynya.lake.spark.catalog import CATALOG
    from polynya.lake.warehouse.adopt import adopt as adopt_tables
    from polynya.lake.warehouse.check import refuse_unusable

    target = context.load(tolerant=True).target
    done = adopt_tables(target, CATALOG)
    refuse_unusable(target, CATALOG)
    tell_adopted(context, done, "adopted")
    return ExitCode.OK


def tell_adopted(context: CommandContext, done: Adopted, action: str) -> None:
    """Say what became of a catalog."""
    lines = [f"{action}: {', '.join(done.tables)}"] if done.tables else []
    if done.views:
        lines.append(f"with {len(done.views)} views")
    if done.aside is not None:
        lines.append(f"the damaged catalog is kept as {done.aside}")
    if done.dropped:
        lines.append(f"the next run makes again: {', '.join(done.dropped)}")
    context.output.result(
        "adopted",
        {
            "tables": done.tables,
            "views": done.views,
            "dropped_views": done.dropped,
            "aside": None if done.aside is None else str(done.aside),
        },
        "\n".join(lines) or "the tables are in this warehouse already",
    )


def maintain(
    *datasets: str,
    dry_run: bool = False,
    action: tuple[ActionName, ...] = (),
    reason: Reason = "",
    wait: Wait = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Take the maintenance actions that pay now, best first, with the reason.

    Runs do this by themselves, within their budget. This command has no budget, and also maintains
    datasets with `enabled: false`. Query results are the same before and after. A concurrent
    `polynya run` waits while this command works on its table.

    With a coordination place the nodes of the cluster do it: the owner of each dataset maintains it
    between two steps.

    For example: `polynya maintain orders --dry-run`.

    Args:
        datasets: names or globs of datasets, with or without their schema. Default: all.
        dry_run: only show what would be done, what not and why; needs no Java.
        action: take this action even if it does not pay; may be given several times.
        reason: in a cluster, reason to show to other operators.
        wait: in a cluster, wait until it is done; exit code 1 when it fails.
        where: the cluster.
    """
    # Start-up time: PyIceberg.
    from polynya.lake.maintenance.health import BUILT_NAMES

    for name in action:
        if name not in BUILT_NAMES:
            raise UNKNOWN_MAINTENANCE_ACTION(action=name, actions=", ".join(sorted(BUILT_NAMES)))
    entries = [
        entry
        for entry in chosen_entries(context.load(tolerant=True), datasets)
        if entry.table is not None and not entry.is_ledger
    ]
    if dry_run:
        for entry in entries:
            _explain(context, entry)
        return ExitCode.OK
    if where.coordination or os.environ.get("POLYNYA_COORDINATION"):
        return _ask_owners(context, locate(context, where), entries, action, reason, wait=wait)
    return _run(context, entries, action) if entries else ExitCode.OK


def _ask_owners(
    context: CommandContext,
    location: ClusterLocation,
    entries: Sequence[ProjectTable[CommittedTable]],
    actions: tuple[ActionName, ...],
    reason: str,
    *,
    wait: bool,
) -> int:
    # Start-up time: pydantic models of all documents.
    from polynya.cluster.coordination.documents import UnitRequest

    now = SystemClock().now()
    request = UnitRequest(kind="maintain", actions=actions, by=operator(), reason=reason, since=now)
    asked: dict[tuple[str, str], tuple[str, UnitRequest]] = {}
    for entry in entries:
        # A task that finds its tables has one unit, which maintains all of them.
        finds = rules_of(entry.task.landing.format).finds_tables
        name = "" if finds else entry.dataset.name
        one = request if finds else request.model_copy(update={"dataset": name})
        asked[entry.task.name, name] = entry.task.name, one
    return send_requests(context, location, list(asked.values()), wait=wait)


def _explain(context: CommandContext, entry: ProjectTable[CommittedTable]) -> None:
    from polynya.engine.maintenance_choice import review_actions
    from polynya.engine.maintenance_status import maintenance_status

    assert entry.table is not None
    now = SystemClock().now()
    status = maintenance_status(entry.table, entry.dataset, now)
    lines = [verdict_line(verdict) for verdict in status.choice.verdicts]
    lines += [review_line(review) for review in review_actions(status.record)]
    data = {
        "dataset": entry.name,
        **status.as_json(),
        "actions": [
            {
                "action": verdict.action,
                "taken": verdict.taken,
                "reason": verdict.reason,
                "score": round(verdict.score, 3),
                "gain_bytes_per_hour": None if verdict.worth is None else round(verdict.worth.gain),
                "cost_bytes": None if verdict.worth is None else round(verdict.worth.cost),
                "at": None if verdict.at is None else verdict.at.isoformat(),
            }
            for verdict in status.choice.verdicts
        ],
    }
    head = f"{entry.name}: health {status.health.score} of 100"
    context.output.result("maintenance.plan", data, "\n".join([head, *lines]))


def verdict_line(verdict: ActionVerdict) -> str:
    """Whether an action is due, and why."""
    mark = "now" if verdict.taken else "not now"
    return f"  {verdict.action:<30}{mark:<9}{verdict.reason}"


def review_line(review: ActionReview) -> str:
    """What an action cost and gained when it was last taken, next to what was expected."""
    sides = [
        f"{what} {ratio:.2f} of what was expected"
        for what, ratio in (("cost", review.cost_ratio), ("gain", review.gain_ratio))
        if ratio is not None
    ]
    part = "" if review.whole else " (a part of it)"
    return f"  {review.action:<30}{'last':<9}{', '.join(sides) or 'nothing was expected'}{part}"


def _run(
    context: CommandContext,
    entries: list[ProjectTable[CommittedTable]],
    actions: tuple[ActionName, ...],
) -> int:
    # Start-up time: pyspark.
    from polynya.engine.collaborators import start_engine
    from polynya.engine.maintenance import maintain as maintain_dataset

    project = context.load(tolerant=True)
    with context.starting(project):
        engine = start_engine(project)
    code = int(ExitCode.OK)
    for entry in entries:
        done = 0
        try:
            for result in maintain_dataset(engine, entry.dataset, actions):
                done += 1
                outcome, reason = result.outcome, result.verdict.reason
                data = {
                    "dataset": entry.name,
                    "reason": reason,
                    **asdict(outcome),
                    "expected_cost": result.done.expected_cost,
                    "cost": result.done.cost,
                    "expected_gain": result.done.expected_gain,
                    "gain": result.done.gain,
                }
                text = f"{entry.name}: {outcome.action}: {outcome.why}, in {outcome.seconds:.1f} s"
                context.output.result("maintained", data, f"{text} ({reason})")
        except PolynyaError as error:
            context.output.error(error)
            code = max(code, error.exit_code)
        else:
            if not done:
                context.output.note(f"{entry.name}: nothing pays now; `--dry-run` says why")
    return code
