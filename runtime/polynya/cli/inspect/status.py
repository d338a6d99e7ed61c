"""`polynya status`: how fresh each dataset is, and what is pending."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.inspect.captured.shown import show_named_captures
from polynya.cli.inspect.chosen import chosen_entries
from polynya.cli.inspect.shape import health_line, upkeep_line
from polynya.cli.inspect.streams.shown import stream_block
from polynya.cli.inspect.words import age_in_words, moment_in_words, size_in_words
from polynya.cli.options import usage_error
from polynya.engine.work.policy import PendingFacts, wait_for_apply
from polynya.model.config.streaming.direct import DirectTask
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.reading.loader import LoadedProject
from polynya.observe.events import counted
from polynya.store.clock import Clock, SystemClock

if TYPE_CHECKING:
    from polynya.engine.plan.care import Care
    from polynya.engine.plan.inventory import Entry
    from polynya.lake.read.inspect import DatasetStatus
    from polynya.streaming.landing.status import StreamStatus

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
        context: given by `main`.
    """
    clock: Clock = SystemClock()
    if every_seconds <= 0:
        raise usage_error("`--every-seconds` is more than 0")
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
    from polynya.engine.plan.care import care_of
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
        care = care_of(entry.table, entry.dataset, now)
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
    care: Care | None = None,
    *,
    positions: bool = False,
    cluster: str | None = None,
    waits: str | None = None,
) -> str:
    """A status as people read it.

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


def _show_direct(context: CommandContext, entry: Entry, now: datetime) -> None:
    """Show how far a table has read its stream by itself."""
    if not isinstance(entry.task, DirectTask) or entry.table is None:
        return
    # Start-up time: PyArrow.
    from polynya.lake.read.inspect import states
    from polynya.streaming.landing.status import status_of_direct

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
    from polynya.streaming.landing.status import stream_statuses

    store = store_at(project.target.landing, project.target.aws)
    for task in project.landings:
        yield task, list(stream_statuses(store, task, now))


def _is_wanted(task: StreamingLanding, one: StreamStatus, patterns: Sequence[str]) -> bool:
    return not patterns or any(_names(task, [one], pattern) for pattern in patterns)


def _names(task: StreamingLanding, found: Sequence[StreamStatus], pattern: str) -> bool:
    names = [task.name, *(one.name for one in found)]
    return any(fnmatchcase(name, pattern) for name in names)
