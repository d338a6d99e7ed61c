"""`polynya reload`: read a full load again and move only the differences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter

from polynya.cli.cluster_location import ANYWHERE, Where, locate, operator
from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.stopping import Stopping
from polynya.cli.unit_requests import send_request
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.dataset import ReloadMode, ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.task import StorageTask
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.loader import LoadedProject
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.formats.base import LandingFormat

From: TypeAlias = Literal["landing", "source"]
#: Kinds of requests to nodes of a cluster.
_KINDS: Final = {"landing": "reload", "source": "reload-from-source"}


def reload(
    task: str,
    /,
    *,
    dataset: str | None = None,
    mode: ReloadMode = "compare_and_apply_with_deleted_rows",
    files: str | None = None,
    from_: Annotated[From, Parameter(name="--from")] = "landing",
    as_of: str | None = None,
    abandon: bool = False,
    accept_incomplete: bool = False,
    reason: str = "",
    wait: bool = False,
    where: Where = ANYWHERE,
    context: Context,
) -> int:
    """Compare a task's tables with a new full load and write the differences.

    The new load replaces the old one in the landing zone, where `initial_load` matches. It is
    stored next to Current, which readers see unchanged until one commit writes the differences. To
    resume a killed reload, call it again. A concurrent `polynya run` of these datasets waits, and
    says so. It works for native formats, `dms`, `replicate`, tables that a task of kind `landing`
    of this project captures (read from their database), and streams (read from the source with
    `direct: true`, otherwise as `--from` says).

    With a coordination place the nodes of the cluster do it: the owner of each dataset reloads it
    between two steps.

    For example: `polynya reload users --mode compare_and_apply_without_deleted_rows`.

    Args:
        task: name of the task.
        dataset: only this dataset.
        mode: compare with Current and apply the differences, deleting or keeping rows that are
            missing from the load; `truncate_and_insert` ends every record and starts again;
            `drop_and_create` drops the table's rows, history included.
        files: glob of the load's files below the landing path, instead of `initial_load`.
        from_: for a landed stream: `landing` reads the kept landed batches, `source` reads Kafka or
            Kinesis again, up to the end of the newest landed batch.
        as_of: required for `dms` and `replicate`: when the full load began (ISO 8601, UTC without
            an offset). Records that changed later stay as they are.
        accept_incomplete: write the differences although the load is empty or some of its records
            went to quarantine; records missing from it are deleted.
        abandon: discard running reloads; Current stays as it is.
        reason: in a cluster, reason to show to other operators.
        wait: in a cluster, wait until it is done; exit code 1 when it fails.
        where: the cluster.
    """
    if where.coordination or os.environ.get("POLYNYA_COORDINATION"):
        # Start-up time: pydantic models of all documents.
        from polynya.cluster.coordination.documents import UnitRequest

        location = locate(context, where)
        request = UnitRequest(
            kind="abandon" if abandon else _KINDS[from_],
            dataset=dataset,
            mode=mode,
            files=files,
            as_of=None if as_of is None else _time_of(as_of, SystemClock().now()),
            accept_incomplete=accept_incomplete,
            by=operator(),
            reason=reason,
            since=SystemClock().now(),
        )
        return send_request(context, location, task, request, wait=wait)
    # Start-up time: pyspark, pyarrow.
    from polynya.cli.context import select_storage
    from polynya.engine.collaborators import start_engine
    from polynya.engine.commands.reload import ReloadRequest, abandon_begun
    from polynya.engine.commands.reload import reload as reload_dataset
    from polynya.engine.inventory import inventory
    from polynya.formats.registry import format_of
    from polynya.lake.spark.catalog import python_catalog

    project = context.load(tolerant=True)
    (chosen,) = select_storage(project, [task])
    if isinstance(chosen, DerivedTask):
        raise WRONG_USAGE(f"the transform {task} follows its inputs by itself")
    entries = [
        entry
        for entry in inventory(project, python_catalog(project.target))
        if entry.task == chosen and not entry.is_ledger and dataset in (None, entry.dataset.name)
    ]
    named = [entry.dataset for entry in entries]
    if not named:
        raise WRONG_USAGE(f"the task {task} has no dataset `{dataset}`")
    began = None if abandon else began_at(format_of(chosen), named, as_of, SystemClock().now())
    with context.starting(project):
        engine = start_engine(project, sink=context.output.event)
    if abandon:
        made = [entry.dataset for entry in entries if entry.table is not None]
        for name in abandon_begun(engine, made or named):
            context.output.result("reload.abandoned", {"dataset": name}, f"{name}: given up")
        return ExitCode.OK
    stopping = Stopping.on_signals(engine.stop, context.output)
    for wanted in named:
        name = wanted.relations.current
        result = reload_dataset(
            engine,
            ReloadRequest(
                chosen,
                wanted,
                mode=mode,
                files=files,
                as_of=began,
                accept_incomplete=accept_incomplete,
                from_source=from_ == "source",
                capture=_capture_of(project, chosen),
            ),
        )
        if result is None:
            return ExitCode.INTERRUPTED if stopping.interrupted else ExitCode.OK
        data = {"dataset": name, "mode": mode, "rows_loaded": result.loaded,
                "rows_quarantined": result.quarantined, "rows_written": result.current,
                "versions_closed": result.prior, "rows_removed": result.removed,
                "seconds": result.seconds}  # fmt: skip
        text = (
            f"reloaded {name}: {result.loaded:,} rows loaded, {result.current:,} written to "
            f"Current, {result.prior:,} to Prior, {result.removed:,} removed, "
            f"{result.quarantined:,} quarantined, in {result.seconds:.1f} s"
        )
        context.output.result("reloaded", data, text)
    return ExitCode.OK


def _capture_of(project: LoadedProject, task: StorageTask) -> ConnectedCapture | None:
    """What captures into the folder that a task reads, if the project has it."""
    if task.landing.format != "debezium":
        return None
    return next(
        (capture for capture in project.captures if capture.place == task.landing.path), None
    )


def began_at(
    landing: LandingFormat, datasets: Sequence[ResolvedDataset], as_of: str | None, now: datetime
) -> datetime | None:
    """When the load began, which the order of some formats needs and that of others cannot use."""
    placed = [dataset for dataset in datasets if landing.place_of_load(now, dataset) is not None]
    if as_of is None:
        if placed:
            raise WRONG_USAGE(
                f"the load of {placed[0].relations.view} needs `--as-of`: changes that were copied "
                "may be later than what the load read",
                fix="say when the full load began, such as `--as-of 2026-11-21T10:00:00Z`",
            )
        return None
    if len(placed) < len(datasets):
        raise WRONG_USAGE("`--as-of` needs changes that are ordered by time: `dms` or `replicate`")
    return _time_of(as_of, now)


def _time_of(as_of: str, now: datetime) -> datetime:
    try:
        began = datetime.fromisoformat(as_of)
    except ValueError:
        raise WRONG_USAGE(f"`{as_of}` is not a time in ISO 8601") from None
    began = began if began.tzinfo else began.replace(tzinfo=UTC)
    if began > now:
        raise WRONG_USAGE(f"`{as_of}` has not come yet")
    return began.astimezone(UTC)
