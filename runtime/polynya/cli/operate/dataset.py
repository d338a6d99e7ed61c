"""`polynya dataset`: suspend or resume one dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from polynya.cli.context import CommandContext, Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.cli.selection import select_storage
from polynya.model.config.evolution import policy_in_words
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.engine.plan.inventory import Entry

#: What a suspended dataset may be told to do with what it met.
Accepted: TypeAlias = Literal["propagate", "ignore", "apply"]

app = verb_app("dataset", "Suspend or resume one dataset.")


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
        context: given by `main`.
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
        raise usage_error(
            "no table can follow a change of its keys: `--accept ignore` keeps them",
            "another `name` with the new `keys` builds a new table",
        )
    accepted = {suspension.cause: policy} if suspension is not None and policy else {}
    ended = resume_table(target, accepted)
    how = f"; the next batch may {policy_in_words(accept)} it" if accept else ""
    data = {"dataset": entry.name, "cause": ended.cause, "reason": ended.reason, "accept": accept}
    context.output.result(
        "dataset.resumed", data, f"{entry.name} goes on; it waited for: {ended.reason}{how}"
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
        context: given by `main`.
    """
    # Start-up time: pyspark.
    from polynya.engine.collaborators import start_engine
    from polynya.lake.table.copy_state import Suspension
    from polynya.lake.table.dataset import DatasetTable
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


def _entry(context: CommandContext, task: str, dataset: str) -> Entry:
    """The table of a dataset; a usage error when there is none."""
    # Start-up time: PyIceberg.
    from polynya.engine.plan.inventory import inventory
    from polynya.lake.spark.catalog import python_catalog

    project = context.load(tolerant=True)
    chosen = {one.name for one in select_storage(project, [task])}
    entries = [
        entry
        for entry in inventory(project, python_catalog(project.target))
        if entry.task.name in chosen and not entry.is_ledger and entry.table is not None
    ]
    for entry in entries:
        if entry.dataset.name == dataset:
            return entry
    names = ", ".join(entry.dataset.name for entry in entries)
    raise usage_error(f"the task {task} has no table of a dataset `{dataset}`", names or None)
