"""What `polynya status` says of landings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from polynya.cli.context import CommandContext
from polynya.cli.inspect.words import age_in_words, moment_in_words, size_in_words
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.reading.loader import LoadedProject

if TYPE_CHECKING:
    from polynya.streaming.landing.status import StreamStatus


def show_streams(
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
            context.output.result("stream.status", data, _block(one, now, positions=positions))
        if not found and (not patterns or any(fnmatchcase(task.name, one) for one in patterns)):
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
    from polynya.streaming.landing.status import stream_statuses

    store = store_at(project.target.landing, project.target.aws)
    for task in project.landings:
        yield task, list(stream_statuses(store, task, now))


def _is_wanted(task: StreamingLanding, one: StreamStatus, patterns: Sequence[str]) -> bool:
    return not patterns or any(_names(task, [one], pattern) for pattern in patterns)


def _names(task: StreamingLanding, found: Sequence[StreamStatus], pattern: str) -> bool:
    names = [task.name, *(one.name for one in found)]
    return any(fnmatchcase(name, pattern) for name in names)


def _block(one: StreamStatus, now: datetime, *, positions: bool) -> str:
    lines: dict[str, str | None] = {
        "landed": f"{one.records:,} records, {size_in_words(one.size_bytes)}, "
        f"{one.batches:,} batches",
        "newest": moment_in_words(one.landed_at, now),
        "behind": _behind(one),
        "rate": None
        if one.records_per_second is None
        else f"{one.records_per_second:,.1f} records/s",
        "lost": f"{one.lost_records:,} records at most" if one.lost_records else None,
    }
    for loss in one.lost:
        lines["last loss"] = f"{loss['at']}: {loss['from']} to {loss['to']}, {loss['why']}"
    if positions:
        lines["positions"] = ", ".join(f"{at}: {to}" for at, to in one.positions.items()) or None
    shown = [f"  {name:<11}{text}" for name, text in lines.items() if text is not None]
    return "\n".join([one.name, *shown])


def _behind(one: StreamStatus) -> str | None:
    if one.behind_records is None:
        return None
    if not one.behind_records:
        return "nothing when it was landed"
    age = "" if one.behind_seconds is None else f", {age_in_words(one.behind_seconds)}"
    return f"{one.behind_records:,} records{age}"
