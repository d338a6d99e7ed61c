"""`polynya status`: datasets, captures and streams, how fresh they are, and what is pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import age_in_words, moment_in_words, size_in_words
from polynya.cli.visible import visible
from polynya.engine.policy import PendingFacts, wait_for_apply
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.derived import DerivedTask
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.notify.decide import routes_of
from polynya.notify.memory import NotificationStore
from polynya.observe.events import counted, one_line
from polynya.store.clock import Clock, SystemClock
from polynya.store.places import store_at

if TYPE_CHECKING:
    from polynya.capture.source import Lag
    from polynya.engine.commands.captures import CaptureStatus
    from polynya.engine.inventory import ProjectTable
    from polynya.engine.maintenance_status import MaintenanceStatus
    from polynya.lake.read.committed import CommittedTable
    from polynya.lake.read.inspect import DatasetStatus
    from polynya.lake.table.state import DecidedChange
    from polynya.streams.landed_status import StreamStatus

#: Tables that are looked at at the same time: in S3 each waits for some answers.
_LOOKS_AT_ONCE: Final = 8


def status(
    *datasets: str,
    watch: bool = False,
    every_seconds: float = 5.0,
    schema_changes: bool = False,
    context: Context,
) -> int:
    """Show pending changes, freshness, row accounting, last apply and health of each dataset.

    For each stream it first shows records landed, lag, throughput and records lost at the source,
    as of the newest landed batch. For a capture it shows the state of each table (`polynya landing
    status` also asks the database). A stream with `direct: true` is shown before the table that
    reads it. Channels of notifications that fail are shown first.

    Freshness is the age of the newest copied event by the source's clock. Needs no Java, and
    answers while another process works on the tables. `--verbose` also shows positions in the order
    of events.

    For example: `polynya status users --watch`.

    Args:
        datasets: names or globs of datasets, with or without their schema, of landings and
            captures, or of their tables as `task/table`. Default: all.
        watch: refresh until Ctrl-C.
        every_seconds: with `--watch`, the interval.
        schema_changes: also list the changes of the source's columns, keys and names: when, what,
            and which policy decided.
    """
    clock: Clock = SystemClock()
    if every_seconds <= 0:
        raise WRONG_USAGE("`--every-seconds` is more than 0")
    try:
        while True:
            _show(context, datasets, clock.now(), schema_changes=schema_changes)
            if not watch:
                return ExitCode.OK
            clock.sleep(every_seconds)
            context.output.start_over()
    except KeyboardInterrupt:
        if not watch:
            raise
    return ExitCode.OK


def _show(
    context: CommandContext, patterns: Sequence[str], now: datetime, *, schema_changes: bool
) -> None:
    project = context.load(tolerant=True)
    left = show_named_captures(context, project, patterns, now)
    if not patterns:
        show_failing_channels(context, project, now)
    if not patterns or left:
        left = _show_streams(context, project, left, now)
    if patterns and not left:
        return
    entries = list(chosen_entries(project, left))
    for entry, looked in zip(entries, _looks(now, entries), strict=True):
        _show_entry(context, project, entry, looked, now, schema_changes=schema_changes)


def _looks(
    now: datetime, entries: Sequence[ProjectTable[CommittedTable]]
) -> Iterator[tuple[DatasetStatus, MaintenanceStatus] | None]:
    """What `_look` says of each table: side by side where the files are far, else in turn."""
    look = partial(_look, now)
    if all(entry.table is None or entry.table.is_local for entry in entries):
        # Threads would only wait for each other: almost all of a look is Python.
        yield from map(look, entries)
        return
    with ThreadPoolExecutor(_LOOKS_AT_ONCE, "status") as pool:
        yield from pool.map(look, entries)


def _look(
    now: datetime, entry: ProjectTable[CommittedTable]
) -> tuple[DatasetStatus, MaintenanceStatus] | None:
    """The figures and the health of a table; None before its first run."""
    # Start-up time: PyArrow.
    from polynya.engine.maintenance_status import maintenance_status
    from polynya.lake.read.inspect import status as status_of

    if entry.table is None:
        return None
    return (
        status_of(entry.table, entry.dataset, now),
        maintenance_status(entry.table, entry.dataset, now),
    )


def _show_entry(
    context: CommandContext,
    project: LoadedProject,
    entry: ProjectTable[CommittedTable],
    looked: tuple[DatasetStatus, MaintenanceStatus] | None,
    now: datetime,
    *,
    schema_changes: bool,
) -> None:
    if looked is None:
        context.output.result(
            "dataset.new",
            {"task": entry.task.name, "dataset": entry.name},
            f"{entry.name}\n  nothing was copied yet: `polynya run`",
        )
        return
    _show_direct(context, entry, now)
    dataset, maintenance = looked
    waits = wait_for_apply(_pending(dataset), entry.task.apply)
    cluster = project.cluster_of(entry.task)
    if context.output.is_json:
        data = {
            "task": entry.task.name,
            "cluster": cluster,
            **asdict(dataset),
            "waits": waits,
            **maintenance.as_json(),
        }
        context.output.result("dataset.status", data)
        return
    text = dataset_block(
        dataset,
        now,
        maintenance,
        positions=context.options.verbose,
        cluster=cluster,
        waits=waits,
        names=_input_names(entry.task),
    )
    if schema_changes:
        text = "\n".join([text, *schema_change_lines(dataset)])
    context.output.result("dataset.status", {}, text)


def show_failing_channels(context: CommandContext, project: LoadedProject, now: datetime) -> None:
    """Show the channels of notifications that do not take messages."""
    routes = {route.id for route in routes_of(project.notifications)}
    if not routes:
        return
    target = project.target
    store = NotificationStore(lambda: store_at(target.warehouse, target.aws))
    for one in store.failing_channels():
        if one.route not in routes:
            continue
        age = age_in_words((now - one.since).total_seconds())
        text = f"{one.route}\n  fails       for {age}, {one.failures} times in a row: {one.why}"
        context.output.result("notification.failing", one.model_dump(mode="json"), visible(text))


def chosen_entries(
    project: LoadedProject, patterns: Sequence[str]
) -> Iterator[ProjectTable[CommittedTable]]:
    """Tables by name or glob, with or without their schema; all without any.

    Raises ConfigError for a name that no dataset has.
    """
    # Start-up time: PyArrow.
    from polynya.engine.inventory import inventory
    from polynya.lake.read.committed import committed_tables

    entries = list(inventory(project, committed_tables(project.target)))
    for pattern in patterns:
        if not any(_is_called(entry, pattern) for entry in entries):
            raise WRONG_USAGE(
                f"no dataset is called `{pattern}`",
                fix=suggest(pattern, [entry.name for entry in entries]),
            )
    for entry in entries:
        if not patterns or any(_is_called(entry, pattern) for pattern in patterns):
            yield entry


def _is_called(entry: ProjectTable[CommittedTable], pattern: str) -> bool:
    names = (entry.name, entry.dataset.relations.view, entry.dataset.name)
    return any(fnmatchcase(name, pattern) for name in names)


#: Conflicts of events with the table that were resolved.
_CONFLICTS: Final = {
    "insert_of_existing": "inserts of a record that exists, taken as updates",
    "update_of_missing": "updates of a record that is missing, taken as inserts",
    "delete_of_missing": "deletes of a record that is missing",
    "raised": "times that went back along the sequence, raised to that of the version before",
}


def _pending(dataset: DatasetStatus) -> PendingFacts:
    return PendingFacts(
        dataset.pending_rows, dataset.pending_bytes, dataset.pending_files, dataset.current_rows
    )


def dataset_block(
    dataset: DatasetStatus,
    now: datetime,
    maintenance: MaintenanceStatus | None = None,
    *,
    positions: bool = False,
    cluster: str | None = None,
    waits: str | None = None,
    names: Mapping[str, str] | None = None,
) -> str:
    """The status of a dataset as text.

    `positions` adds those in the order of events, and the snapshots that the last step of a derived
    table has read. `cluster` is the one that has the task, `waits` why copies wait for the apply;
    None leaves the line out. `names` are those of views by their internal tables.
    """
    pending = "nothing"
    if dataset.pending_rows:
        age = dataset.pending_age_seconds
        oldest = "" if age is None else f", the oldest for {age_in_words(age)}"
        pending = f"{dataset.pending_rows:,} rows, {size_in_words(dataset.pending_bytes)}{oldest}"
    applied = moment_in_words(dataset.applied_at, now)
    if dataset.applied_at is not None:
        applied += f", in {dataset.last_apply_seconds or 0:.1f} s: {dataset.last_apply_reason}"
    lines: dict[str, str | None] = {}
    if dataset.suspended is not None:
        lines["suspended"] = f"{dataset.suspended} ({dataset.suspended_where})"
    # A derived table takes no records in: its last step says all that these lines would.
    is_derived = dataset.derived_at is not None
    lines |= {
        "current": f"{dataset.current_rows:,} rows",
        "pending": pending,
        "waits": waits and f"copies wait for the apply: {waits}",
        "retained": _retained(dataset, now),
        "freshness": None if is_derived else _freshness(dataset.freshness_seconds),
        "records": None if is_derived else _accounting(dataset),
        "changes": _changes(dataset),
        "schema": _newest_schema_change(dataset),
        "expect": _failures(dataset),
        "rate": None
        if dataset.rows_per_second is None
        else f"{dataset.rows_per_second:,.1f} records/s",
        "lost": _lost(dataset),
        "derived": _derived(dataset, now, names or {}, snapshots=positions),
        "last copy": None if is_derived else moment_in_words(dataset.copied_at, now),
        "last apply": applied,
        "reload": _reload_in_words(dataset, now),
    }
    if cluster is not None:
        lines["cluster"] = cluster
    if maintenance is not None:
        lines |= {
            "health": health_line(maintenance),
            "maintained": maintenance_line(maintenance, now),
        }
    if positions:
        lines |= {
            "copied to": dataset.copied_to or "nothing",
            "applied to": dataset.applied_to or "nothing",
        }
    conflicts = [
        f"{count:,} {_CONFLICTS[name]}" for name, count in dataset.conflicts.items() if count
    ]
    lines["conflicts"] = "; ".join(conflicts) or None
    shown = [f"  {name:<11}{text}" for name, text in lines.items() if text is not None]
    return "\n".join([dataset.dataset, *shown])


def _reload_in_words(dataset: DatasetStatus, now: datetime) -> str | None:
    """The last scheduled reload of a dataset, and the next one."""
    parts = []
    if dataset.reload_ended is not None:
        rows = counted(dataset.reload_rows, "row")
        bad = f", {dataset.reload_quarantined:,} quarantined" if dataset.reload_quarantined else ""
        parts.append(f"{moment_in_words(dataset.reload_ended, now)}, {rows}{bad}")
    if dataset.reload_next is not None:
        parts.append(f"next {_due_in_words(datetime.fromisoformat(dataset.reload_next), now)}")
    return "; ".join(parts) or None


def _due_in_words(due: datetime, now: datetime) -> str:
    return "now" if due <= now else f"{due:%Y-%m-%d %H:%M} UTC"


def health_line(maintenance: MaintenanceStatus) -> str:
    """The health of a table, and its parts."""
    health = maintenance.health
    metadata = size_in_words(health.metadata_bytes)
    parts = [
        f"{counted(health.files, 'file')} of {size_in_words(health.average_bytes)}",
        f"{health.deleted_share:.1%} deleted in {counted(health.delete_files, 'file')}"
        if health.delete_files
        else None,
        f"{counted(health.rows_not_optimised, 'row')} not optimised"
        if health.rows_not_optimised
        else None,
        counted(health.manifests, "manifest"),
        f"{counted(health.snapshots, 'snapshot')} in {metadata} of metadata",
        f"{size_in_words(health.removed_orphan_bytes)} of orphan files removed last"
        if health.removed_orphan_bytes
        else None,
    ]
    return f"{health.score} of 100: {', '.join(part for part in parts if part)}"


def maintenance_line(maintenance: MaintenanceStatus, now: datetime) -> str | None:
    """The last action of maintenance, and the next one."""
    parts = []
    if maintenance.last is not None:
        action, done = maintenance.last
        when = moment_in_words(done.at.isoformat(), now)
        parts.append(f"{action} {when}, in {done.seconds:.1f} s: {done.why}")
    next_action = maintenance.choice.next
    # A new table is not worth a line before its first action.
    if next_action is not None and (parts or next_action.taken or next_action.score > 0):
        parts.append(f"next {next_action.action}: {next_action.reason}")
    return "; ".join(parts) or None


def _freshness(seconds: float | None) -> str:
    if seconds is None:
        return "no event has arrived yet"
    return f"newest event is {age_in_words(seconds)} old"


def _accounting(dataset: DatasetStatus) -> str:
    unparsed = ""
    if dataset.rows_unparsed:
        unparsed = f" ({dataset.rows_unparsed:,} could not be parsed)"
    return (
        f"{dataset.rows_in:,} in = {dataset.rows_out:,} out + {dataset.rows_filtered:,} filtered "
        f"+ {dataset.rows_quarantined:,} quarantined{unparsed}"
    )


def _changes(dataset: DatasetStatus) -> str | None:
    """What applied events did; None before the first, and before they were counted."""
    counts = {
        "insert": dataset.inserts,
        "update": dataset.updates,
        "delete": dataset.deletes,
        "truncate": dataset.truncates,
    }
    if not any(counts.values()):
        return None
    since = "" if dataset.counted_since is None else f", since {moment(dataset.counted_since)}"
    return f"{', '.join(counted(number, name) for name, number in counts.items())}{since}"


def _newest_schema_change(dataset: DatasetStatus) -> str | None:
    count = len(dataset.shape_changes) + dataset.earlier_shape_changes
    if not dataset.shape_changes:
        return None
    newest = dataset.shape_changes[-1]
    return f"{counted(count, 'change')}, last {moment(newest.at)}: {_decided(newest)}"


def _input_names(task: StorageTask) -> dict[str, str]:
    """The views of the tables that a task reads, by their internal tables."""
    if not isinstance(task, DerivedTask):
        return {}
    declared = (resolved(read, one).relations for read in task.reads for one in read.datasets)
    return {relations.internal: relations.current for relations in declared}


def _derived(
    dataset: DatasetStatus, now: datetime, names: Mapping[str, str], *, snapshots: bool
) -> str | None:
    """When the last step of a derived table read its inputs, and which; None for other tables."""
    if dataset.derived_at is None:
        return None
    read = []
    for name, version in dataset.inputs.items():
        shown_name = names.get(name, name.removeprefix("registered:"))
        read.append(f"{shown_name} at {version}" if snapshots else shown_name)
    of = f", from {', '.join(read)}" if read else ""
    return f"{moment_in_words(dataset.derived_at, now)}{of}"


def _failures(dataset: DatasetStatus) -> str | None:
    """The expectations that committed results have failed; None without one."""
    failed = [
        f"{shown(name)} failed in {counted(one.steps, 'step')}, last {moment(one.at)}: {one.says}"
        for name, one in dataset.failures.items()
    ]
    return "\n             ".join(failed) or None


def schema_change_lines(dataset: DatasetStatus) -> Iterator[str]:
    """All schema changes that the table remembers, the oldest first."""
    if dataset.earlier_shape_changes:
        yield f"             {counted(dataset.earlier_shape_changes, 'earlier change')}"
    for change in dataset.shape_changes:
        yield f"             {moment(change.at)}  {_decided(change)}"


def _decided(change: DecidedChange) -> str:
    by = "accepted by `polynya dataset resume`" if change.accepted else "policy"
    return f"{change.says} ({by}: {change.policy})"


def moment(text: str) -> str:
    """A time that is ISO 8601, in UTC and to the second."""
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _lost(dataset: DatasetStatus) -> str | None:
    """Landed batches that were lost before they were copied; None if there are none."""
    if not dataset.lost_batches:
        return None
    batches = (
        f"{dataset.lost_batches:,} landed {'batch' if dataset.lost_batches == 1 else 'batches'}"
    )
    held = (
        f", {counted(dataset.lost_messages, 'message')} at least" if dataset.lost_messages else ""
    )
    return f"{batches}, removed before the table had copied them{held}"


def _retained(dataset: DatasetStatus, now: datetime) -> str | None:
    """Applied events that the table keeps; None if it keeps none."""
    if not dataset.retained_rows:
        return None
    since = dataset.retained_since
    after = f", of applies after {moment_in_words(since, now)}" if since else ""
    return (
        f"{dataset.retained_rows:,} applied events, {size_in_words(dataset.retained_bytes)}{after}"
    )


def _show_streams(
    context: CommandContext, project: LoadedProject, patterns: Sequence[str], now: datetime
) -> tuple[str, ...]:
    """Show the streams that any pattern names, or all; returns the patterns that name none.

    A pattern is a glob of tasks or of `task/table`.
    """
    left = list(patterns)
    for task, streams in _landings(project, now):
        left = [pattern for pattern in left if not _names(task, streams, pattern)]
        for stream in streams:
            if not patterns or any(_names(task, [stream], pattern) for pattern in patterns):
                _show_stream(context, stream, now)
        if not streams and (not patterns or any(fnmatchcase(task.name, glob) for glob in patterns)):
            nothing = f"{task.name}\n  nothing was landed yet: `polynya run`"
            context.output.result("stream.new", {"task": task.name}, nothing)
    return tuple(left)


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


def _names(task: StreamingLanding, streams: Sequence[StreamStatus], pattern: str) -> bool:
    names = [task.name, *(stream.name for stream in streams)]
    return any(fnmatchcase(name, pattern) for name in names)


def _show_direct(
    context: CommandContext, entry: ProjectTable[CommittedTable], now: datetime
) -> None:
    """Show how far a table has read its stream directly."""
    if not isinstance(entry.task, DirectTask) or entry.table is None:
        return
    # Start-up time: PyArrow.
    from polynya.lake.read.inspect import states
    from polynya.streams.landed_status import status_of_direct

    position = states(entry.table)[0].position.stream
    if position is not None:
        _show_stream(context, status_of_direct(position, now), now)


def _show_stream(context: CommandContext, stream: StreamStatus, now: datetime) -> None:
    text = stream_block(stream, now, positions=context.options.verbose)
    context.output.result("stream.status", {"stream": stream.name, **asdict(stream)}, text)


def stream_block(stream: StreamStatus, now: datetime, *, positions: bool) -> str:
    """The status of a stream as text."""
    lines: dict[str, str | None] = {
        "read"
        if stream.direct
        else "landed": f"{counted(stream.records, 'record')}, {size_in_words(stream.size_bytes)}, "
        f"{stream.batches:,} {'batch' if stream.batches == 1 else 'batches'}",
        "newest": moment_in_words(stream.landed_at, now),
        "behind": _behind(stream),
        "rate": _rate(stream),
        "lost": f"{counted(stream.lost_records, 'record')} at most"
        if stream.lost_records
        else None,
    }
    for loss in stream.lost:
        lines["last loss"] = (
            f"{loss['at']}: deleted and created again"
            if loss["why"] == "recreated"
            else f"{loss['at']}: {loss['from']} to {loss['to']}, {loss['why']}"
        )
    if positions:
        lines["positions"] = ", ".join(f"{at}: {to}" for at, to in stream.positions.items()) or None
    shown = [f"  {name:<11}{text}" for name, text in lines.items() if text is not None]
    return "\n".join([stream.name, *shown])


#: Rates below this are shown in bytes.
_FEW_BYTES: Final = 10 * 1024


def _rate(stream: StreamStatus) -> str | None:
    if stream.records_per_second is None or stream.bytes_per_second is None:
        return None
    size = stream.bytes_per_second
    words = f"{size:,.0f} bytes" if size < _FEW_BYTES else size_in_words(round(size))
    return f"{stream.records_per_second:,.1f} records/s, {words}/s"


def _behind(stream: StreamStatus) -> str | None:
    counts = {
        "record": stream.behind_records,
        "shard": stream.behind_shards,
        "file": stream.behind_files,
        "page": stream.behind_pages,
    }
    known = [(unit, count) for unit, count in counts.items() if count is not None]
    if not known:
        return None
    unit, count = known[0]
    if not count:
        return f"nothing when it was {'read' if stream.direct else 'landed'}"
    age = "" if stream.behind_seconds is None else f", {age_in_words(stream.behind_seconds)}"
    return f"{counted(count, unit)}{age}"


def show_named_captures(
    context: CommandContext, project: LoadedProject, patterns: Sequence[str], now: datetime
) -> tuple[str, ...]:
    """Show the captures that any glob names, or all; returns the globs that name none.

    It does not connect to the databases.
    """
    wanted = [task for task in project.captures if not patterns or _is_named(task, patterns)]
    show_captures(context, project, wanted, now, ask_database=False)
    return tuple(glob for glob in patterns if not any(_is_named(task, [glob]) for task in wanted))


def _is_named(task: ConnectedCapture, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(task.name, pattern) for pattern in patterns)


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
        capture = capture_status(project, store, task, now, ask_database=ask_database)
        text = "\n".join(capture_lines(capture, now))
        context.output.result("landing.status", _as_json(capture), text)


def _as_json(capture: CaptureStatus) -> dict[str, object]:
    return {
        "task": capture.task,
        "state": capture.state,
        "batches": capture.batches,
        "written_at": None if capture.written_at is None else capture.written_at.isoformat(),
        "held": capture.held,
        "tables": [asdict(table) for table in capture.tables],
        "lag": None if capture.lag is None else asdict(capture.lag),
        "lag_error": None if capture.lag_error is None else capture.lag_error.as_dict(),
        "next_load": None if capture.next_load is None else capture.next_load.isoformat(),
        "closed_until": capture.closed_until and capture.closed_until.isoformat(),
        "never_open": capture.never_open,
    }


#: States in which changes wait until the rows of their table are loaded.
_BEFORE_RUNNING: Final = frozenset({"queued", "caching changes", "applying cached changes"})


def capture_lines(capture: CaptureStatus, now: datetime) -> Iterator[str]:
    """A capture and its tables."""
    if not capture.batches:
        held = " and is stopped: `polynya landing resume`" if capture.held else ": `polynya run`"
        yield f"{capture.task}\n  nothing has landed yet{held}"
        return
    yield f"{capture.task}  {capture.state}"
    written = None if capture.written_at is None else capture.written_at.isoformat()
    yield f"  newest     batch {capture.batches:,}, {moment_in_words(written, now)}"
    if capture.lag_error is not None:
        yield f"  behind     unknown: {one_line(capture.lag_error)}"
    elif capture.lag is not None:
        yield f"  behind     {_lag_in_words(capture.lag)}"
        yield from (f"  note       {note}" for note in capture.lag.notes)
    if capture.next_load is not None:
        yield f"  next load  {_due_in_words(capture.next_load, now)}"
    if capture.closed_until is not None or capture.never_open:
        opens = capture.closed_until
        until = "no later window opens" if opens is None else f"until {opens:%Y-%m-%d %H:%M} UTC"
        kept = "; the database keeps its log meanwhile" if capture.follows else ""
        yield f"  closed     it may not read, {until}{kept}"
    width = max((len(table.state) for table in capture.tables), default=0)
    for table in capture.tables:
        facts = f"{counted(table.rows, 'row')} loaded"
        if table.state in _BEFORE_RUNNING and table.cached_changes:
            facts += f", {counted(table.cached_changes, 'change')} cached"
        if table.loaded_at is not None:
            facts += f", all rows {moment_in_words(table.loaded_at, now)}"
        why = f": {table.why}" if table.why else ""
        yield f"  {table.state:<{max(width, 10)}} {table.table}, {facts}{why}"
    yield from _inexact_lines(capture)


def _inexact_lines(capture: CaptureStatus) -> Iterator[str]:
    """What the tables do not keep exactly, each once with the number of tables."""
    counts = Counter(what for table in capture.tables for what in table.inexact)
    for what, tables in counts.items():
        yield f"  not exact  {what} (in {counted(tables, 'table')})"


def _lag_in_words(lag: Lag) -> str:
    parts = [
        None if lag.bytes is None else size_in_words(lag.bytes),
        None if lag.seconds is None else age_in_words(lag.seconds),
    ]
    return ", ".join(part for part in parts if part is not None) or "not parts"
