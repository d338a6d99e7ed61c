"""`polynya rebuild`: rebuild tables from the events that they keep."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.model.errors import PolynyaError

if TYPE_CHECKING:
    from polynya.engine.verbs.rebuild import RebuildResult


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
        context: given by `main`.
    """
    # Start-up time: pyspark.
    from polynya.cli.selection import select_storage
    from polynya.engine.collaborators import start_engine
    from polynya.engine.plan.inventory import inventory
    from polynya.engine.verbs.rebuild import rebuild as rebuild_dataset
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
        raise usage_error(
            f"the task {task} has no table {f'of `{dataset}`' if dataset else 'yet'}",
            "`polynya status` lists them",
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
