"""`polynya status`: datasets, captures and streams, how fresh they are, and what is pending."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import age_in_words, moment_in_words, size_in_words
from polynya.engine.policy import PendingFacts, wait_for_apply
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.loader import LoadedProject
from polynya.observe.events import counted, one_line
from polynya.store.clock import Clock, SystemClock
from polynya.store.places import store_at

if TYPE_CHECKING:
    from polynya.capture.source import Lag
    from polynya.engine.commands.captures import CaptureStatus
    from polynya.engine.inventory import ProjectTable
    from polynya.engine.maintenance_choice import ActionReview, ActionVerdict
    from polynya.engine.maintenance_status import MaintenanceStatus
    from polynya.lake.read.inspect import DatasetStatus
    from polynya.streams.landed_status import StreamStatus


def verdict_line(one: ActionVerdict) -> str:
    """What is thought of one action."""
    mark = "now" if one.taken else "not now"
    return f"  {one.action:<30}{mark:<9}{one.reason}"


def came_true_line(one: ActionReview) -> str:
    """What an action cost and gained when it was last taken, beside what was expected."""
    sides = [
        f"{what} {ratio:.2f} of what was expected"
        for what, ratio in (("cost", one.cost_ratio), ("gain", one.gain_ratio))
        if ratio is not None
    ]
    part = "" if one.whole else " (a part of it)"
    return f"  {one.action:<30}{'last':<9}{', '.join(sides) or 'nothing was expected'}{part}"


def health_line(care: MaintenanceStatus) -> str:
    """The shape of a table."""
    one = care.health
    parts = [
        f"{counted(one.files, 'file')} of {size_in_words(one.average_bytes)}",
        f"{one.deleted_share:.1%} deleted in {counted(one.delete_files, 'file')}"
        if one.delete_files
        else None,
        f"{counted(one.rows_not_optimised, 'row')} not optimised"
        if one.rows_not_optimised
        else None,
        counted(one.manifests, "manifest"),
        f"{counted(one.snapshots, 'snapshot')} in {size_in_words(one.metadata_bytes)} of metadata",
        f"{size_in_words(one.removed_orphan_bytes)} of orphans removed by the last look"
        if one.removed_orphan_bytes
        else None,
    ]
    return f"{one.score} of 100: {', '.join(part for part in parts if part)}"


def upkeep_line(care: MaintenanceStatus, now: datetime) -> str | None:
    """What was done last about the shape of a table, and what comes next."""
    parts = []
    if care.last is not None:
        action, done = care.last
        when = moment_in_words(done.at.isoformat(), now)
        parts.append(f"{action} {when}, in {done.seconds:.1f} s: {done.why}")
    comes = care.choice.next
    # A mere look at a table that is new is no news before its day.
    if comes is not None and (parts or comes.taken or comes.score > 0):
        parts.append(f"next {comes.action}: {comes.reason}")
    return "; ".join(parts) or None


def chosen_entries(context: CommandContext, patterns: Sequence[str]) -> Iterator[ProjectTable]:
    """Tables by name or glob, with or without their schema; all without any.

    Raises ConfigError for a name that no dataset has.
    """
    # Start-up time: PyIceberg.
    from polynya.engine.inventory import inventory
    from polynya.lake.spark.catalog import has_tables, python_catalog

    project = context.load(tolerant=True)
    catalog = python_catalog(project.target) if has_tables(project.target) else None
    entries = list(inventory(project, catalog))
    for pattern in patterns:
        if not any(_is_called(entry, pattern) for entry in entries):
            raise WRONG_USAGE(
                f"no dataset is called `{pattern}`",
                fix=suggest(pattern, [entry.name for entry in entries]),
            )
    for entry in entries:
        if not patterns or any(_is_called(entry, pattern) for pattern in patterns):
            yield entry


def _is_called(entry: ProjectTable, pattern: str) -> bool:
    names = (entry.name, entry.dataset.relations.view, entry.dataset.name)
    return any(fnmatchcase(name, pattern) for name in names)


#: States in which changes wait for the rows of their table.
_BEFORE_RUNNING: Final = frozenset({"queued", "caching changes", "applying cached changes"})


def status_lines(one: CaptureStatus, now: datetime) -> Iterator[str]:
    """A capture and its tables."""
    if not one.batches:
        held = " and is stopped: `polynya landing resume`" if one.held else ": `polynya run`"
        yield f"{one.task}\n  nothing has landed yet{held}"
        return
    yield f"{one.task}  {one.state}"
    written = None if one.written_at is None else one.written_at.isoformat()
    yield f"  newest     batch {one.batches:,}, {moment_in_words(written, now)}"
    if one.lag_error is not None:
        yield f"  behind     not known: {one_line(one.lag_error)}"
    elif one.lag is not None:
        yield f"  behind     {_lag_in_words(one.lag)}"
        yield from (f"  note       {note}" for note in one.lag.notes)
    if one.next_load is not None:
        yield f"  next load  {one.next_load:%Y-%m-%d %H:%M} UTC"
    width = max((len(table.state) for table in one.tables), default=0)
    for table in one.tables:
        facts = f"{counted(table.rows, 'row')} loaded"
        if table.state in _BEFORE_RUNNING and table.cached_changes:
            facts += f", {counted(table.cached_changes, 'change')} cached"
        why = f": {table.why}" if table.why else ""
        yield f"  {table.state:<{max(width, 10)}} {table.table}, {facts}{why}"


def _lag_in_words(lag: Lag) -> str:
    known = [
        None if lag.bytes is None else size_in_words(lag.bytes),
        None if lag.seconds is None else age_in_words(lag.seconds),
    ]
    return ", ".join(part for part in known if part is not None) or "not known"


def show_named_captures(
    context: CommandContext, project: LoadedProject, patterns: Sequence[str], now: datetime
) -> tuple[str, ...]:
    """Show the captures that any glob names, all without one; returns the globs that name none.

    The databases are not asked.
    """
    wanted = [task for task in project.captures if not patterns or _is_named(task, patterns)]
    show_captures(context, project, wanted, now, ask_database=False)
    return tuple(one for one in patterns if not any(_is_named(task, [one]) for task in wanted))


def show_captures(
    context: CommandContext,
    project: LoadedProject,
    tasks: Sequence[ConnectedCapture],
    now: datetime,
    *,
    ask_database: bool,
) -> None:
    """Show captures with their tables."""
    if not tasks:
        return
    # Start-up time: PyArrow, and drivers of databases.
    from polynya.engine.commands.captures import capture_status

    store = store_at(project.target.landing, project.target.aws)
    for task in tasks:
        one = capture_status(project, store, task, ask_database=ask_database)
        context.output.result("landing.status", _as_json(one), "\n".join(status_lines(one, now)))


def _is_named(task: ConnectedCapture, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(task.name, pattern) for pattern in patterns)


def _as_json(one: CaptureStatus) -> dict[str, object]:
    return {
        "task": one.task,
        "state": one.state,
        "batches": one.batches,
        "written_at": None if one.written_at is None else one.written_at.isoformat(),
        "held": one.held,
        "tables": [asdict(table) for table in one.tables],
        "lag": None if one.lag is None else asdict(one.lag),
        "lag_error": None if one.lag_error is None else one.lag_error.as_dict(),
        "next_load": None if one.next_load is None else one.next_load.isoformat(),
    }


#: Below that bytes are said one by one.
_FEW_BYTES: Final = 10 * 1024


def stream_block(one: StreamStatus, now: datetime, *, positions: bool) -> str:
    """A landed table as people read it; see `block`."""
    lines: dict[str, str | None] = {
        "read"
        if one.direct
        else "landed": f"{counted(one.records, 'record')}, {size_in_words(one.size_bytes)}, "
        f"{one.batches:,} {'batch' if one.batches == 1 else 'batches'}",
        "newest": moment_in_words(one.landed_at, now),
        "behind": _behind(one),
        "rate": _rate(one),
        "lost": f"{counted(one.lost_records, 'record')} at most" if one.lost_records else None,
    }
    for loss in one.lost:
        lines["last loss"] = (
            f"{loss['at']}: deleted and made again"
            if loss["why"] == "recreated"
            else f"{loss['at']}: {loss['from']} to {loss['to']}, {loss['why']}"
        )
    if positions:
        lines["positions"] = ", ".join(f"{at}: {to}" for at, to in one.positions.items()) or None
    shown = [f"  {name:<11}{text}" for name, text in lines.items() if text is not None]
    return "\n".join([one.name, *shown])


def _rate(one: StreamStatus) -> str | None:
    if one.records_per_second is None or one.bytes_per_second is None:
        return None
    size = one.bytes_per_second
    words = f"{size:,.0f} bytes" if size < _FEW_BYTES else size_in_words(round(size))
    return f"{one.records_per_second:,.1f} records/s, {words}/s"


def _behind(one: StreamStatus) -> str | None:
    counts = {"record": one.behind_records, "shard": one.behind_shards, "file": one.behind_files}
    told = [(unit, count) for unit, count in counts.items() if count is not None]
    if not told:
        return None
    unit, count = told[0]
    if not count:
        return f"nothing when it was {'read' if one.direct else 'landed'}"
    age = "" if one.behind_seconds is None else f", {age_in_words(one.behind_seconds)}"
    return f"{counted(count, unit)}{age}"


#: What the sources and their times did that was put right, in words.
_CONFLICTS: Final = {
    "insert_of_existing": "inserts of a record that exists, taken as updates",
    "update_of_missing": "updates of a record that is missing, taken as inserts",
    "delete_of_missing": "deletes of a record that is missing",
    "raised": "times that went back along the sequence, raised to that of the version before",
}


def status(
    *datasets: str,
    watch: bool = False,
    every_seconds: float = 5.0,
    context: Context,
) -> int:
    """Show pending changes, freshness, row accounting, last apply and health of each dataset.

    For each stream it first shows records landed, lag, throughput and records lost at the source,
    as of the newest landed batch. For a capture it shows the state of each table (`polynya landing
    status` also asks the database). A stream with `direct: true` is shown before the table that
    reads it.

    Freshness is the age of the newest copied event by the source's clock. Needs no Java, and
    answers while another process works on the tables. `--verbose` also shows positions in the order
    of events.

    For example: `polynya status users --watch`.

    Args:
        datasets: names or globs of datasets, with or without their schema, of landings and
            captures, or of their tables as `task/table`. Default: all.
        watch: refresh until Ctrl-C.
        every_seconds: with `--watch`, the interval.
    """
    clock: Clock = SystemClock()
    if every_seconds <= 0:
        raise WRONG_USAGE("`--every-seconds` is more than 0")
    try:
        while True:
            _show(context, datasets, clock.now())
            if not watch:
                return ExitCode.OK
            clock.sleep(every_seconds)
            context.output.start_over()
    except KeyboardInterrupt:
        if not watch:
            raise
    return ExitCode.OK


def _show(context: CommandContext, patterns: Sequence[str], now: datetime) -> None:
    # Start-up time: PyIceberg.
    from polynya.engine.maintenance_status import maintenance_status
    from polynya.lake.read.inspect import status as status_of

    project = context.load(tolerant=True)
    left = show_named_captures(context, project, patterns, now)
    if not patterns or left:
        left = _show_streams(context, project, left, now)
    if patterns and not left:
        return
    for entry in chosen_entries(context, left):
        if entry.table is None:
            context.output.result(
                "dataset.new",
                {"task": entry.task.name, "dataset": entry.name},
                f"{entry.name}\n  nothing was copied yet: `polynya run`",
            )
            continue
        _show_direct(context, entry, now)
        one = status_of(entry.table, entry.dataset, now)
        care = maintenance_status(entry.table, entry.dataset, now)
        waits = wait_for_apply(_pending(one), entry.task.apply)
        context.output.result(
            "dataset.status",
            {
                "task": entry.task.name,
                "cluster": project.cluster_of(entry.task),
                **asdict(one),
                "waits": waits,
                **care.as_json(),
            },
            block(
                one,
                now,
                care,
                positions=context.options.verbose,
                cluster=project.cluster_of(entry.task),
                waits=waits,
            ),
        )


def _pending(one: DatasetStatus) -> PendingFacts:
    return PendingFacts(one.pending_rows, one.pending_bytes, one.pending_files, one.current_rows)


def block(
    one: DatasetStatus,
    now: datetime,
    care: MaintenanceStatus | None = None,
    *,
    positions: bool = False,
    cluster: str | None = None,
    waits: str | None = None,
) -> str:
    """A status as text.

    `positions` are those in the order of events, `cluster` is whose the task is, if that is said,
    `waits` is why copies wait for the apply.
    """
    pending = "nothing"
    if one.pending_rows:
        age = one.pending_age_seconds
        oldest = "" if age is None else f", the oldest for {age_in_words(age)}"
        pending = f"{one.pending_rows:,} rows, {size_in_words(one.pending_bytes)}{oldest}"
    applied = moment_in_words(one.applied_at, now)
    if one.applied_at is not None:
        applied += f", in {one.last_apply_seconds or 0:.1f} s: {one.last_apply_reason}"
    lines: dict[str, str | None] = {}
    if one.suspended is not None:
        lines["suspended"] = f"{one.suspended} ({one.suspended_where})"
    lines |= {
        "current": f"{one.current_rows:,} rows",
        "pending": pending,
        "waits": waits and f"copies wait for the apply: {waits}",
        "retained": _retained(one, now),
        "freshness": _freshness(one.freshness_seconds),
        "records": f"{one.rows_in:,} in = {one.rows_out:,} out + {one.rows_filtered:,} filtered "
        f"+ {one.rows_quarantined:,} quarantined{_unparsed(one)}",
        "rate": None if one.rows_per_second is None else f"{one.rows_per_second:,.1f} records/s",
        "lost": _lost(one),
        "last copy": moment_in_words(one.copied_at, now),
        "last apply": applied,
    }
    if cluster is not None:
        lines["cluster"] = cluster
    if care is not None:
        lines |= {"shape": health_line(care), "upkeep": upkeep_line(care, now)}
    if positions:
        lines |= {
            "copied to": one.copied_to or "nothing",
            "applied to": one.applied_to or "nothing",
        }
    conflicts = [f"{count:,} {_CONFLICTS[name]}" for name, count in one.conflicts.items() if count]
    lines["conflicts"] = "; ".join(conflicts) or None
    shown = [f"  {name:<11}{text}" for name, text in lines.items() if text is not None]
    return "\n".join([one.dataset, *shown])


def _freshness(seconds: float | None) -> str:
    if seconds is None:
        return "no event has come yet"
    return f"newest event is {age_in_words(seconds)} old"


def _unparsed(one: DatasetStatus) -> str:
    return f" ({one.rows_unparsed:,} could not be parsed)" if one.rows_unparsed else ""


def _lost(one: DatasetStatus) -> str | None:
    """Landed batches that nobody copied; most datasets never lack any."""
    if not one.lost_batches:
        return None
    batches = f"{one.lost_batches:,} landed {'batch' if one.lost_batches == 1 else 'batches'}"
    held = f", {counted(one.lost_messages, 'message')} at least" if one.lost_messages else ""
    return f"{batches}, removed before the table had copied all{held}"


def _retained(one: DatasetStatus, now: datetime) -> str | None:
    """Applied events that are kept; most datasets keep none."""
    if not one.retained_rows:
        return None
    since = one.retained_since
    after = f", of applies after {moment_in_words(since, now)}" if since else ""
    return f"{one.retained_rows:,} applied events, {size_in_words(one.retained_bytes)}{after}"


def _show_streams(
    context: CommandContext, project: LoadedProject, patterns: Sequence[str], now: datetime
) -> tuple[str, ...]:
    """Show the landed tables that any pattern names, all without one.

    A pattern is a glob of tasks or of `task/table`. Returns the patterns that name none.
    """
    left = list(patterns)
    for task, found in _landings(project, now):
        shown = [one for one in found if _is_wanted(task, one, patterns)]
        left = [one for one in left if not _names(task, found, one)]
        for one in shown:
            positions = context.options.verbose
            data = {"stream": one.name, **asdict(one)}
            context.output.result(
                "stream.status", data, stream_block(one, now, positions=positions)
            )
        if not found and (not patterns or any(fnmatchcase(task.name, one) for one in patterns)):
            nothing = f"{task.name}\n  nothing was landed yet: `polynya run`"
            context.output.result("stream.new", {"task": task.name}, nothing)
    return tuple(left)


def _show_direct(context: CommandContext, entry: ProjectTable, now: datetime) -> None:
    """Show how far a table has read its stream by itself."""
    if not isinstance(entry.task, DirectTask) or entry.table is None:
        return
    # Start-up time: PyArrow.
    from polynya.lake.read.inspect import states
    from polynya.streams.landed_status import status_of_direct

    position = states(entry.table)[0].position.stream
    if position is not None:
        one = status_of_direct(position, now)
        data = {"stream": one.name, **asdict(one)}
        text = stream_block(one, now, positions=context.options.verbose)
        context.output.result("stream.status", data, text)


def _landings(
    project: LoadedProject, now: datetime
) -> Iterator[tuple[StreamingLanding, list[StreamStatus]]]:
    if not project.landings:
        return
    # Start-up time: PyArrow, and the AWS SDK.
    from polynya.store.places import store_at
    from polynya.streams.landed_status import stream_statuses

    store = store_at(project.target.landing, project.target.aws)
    for task in project.landings:
        yield task, list(stream_statuses(store, task, now))


def _is_wanted(task: StreamingLanding, one: StreamStatus, patterns: Sequence[str]) -> bool:
    return not patterns or any(_names(task, [one], pattern) for pattern in patterns)


def _names(task: StreamingLanding, found: Sequence[StreamStatus], pattern: str) -> bool:
    names = [task.name, *(one.name for one in found)]
    return any(fnmatchcase(name, pattern) for name in names)
