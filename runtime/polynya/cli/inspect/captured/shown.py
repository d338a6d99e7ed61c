"""How captures are: their part of `polynya status`, and `polynya landing status`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from polynya.cli.context import CommandContext
from polynya.cli.inspect.captured.words import status_lines
from polynya.model.config.capture.connected import ConnectedCapture
from polynya.model.reading.loader import LoadedProject
from polynya.store.places import store_at

if TYPE_CHECKING:
    from polynya.engine.verbs.captures import CaptureStatus


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
    from polynya.engine.verbs.captures import capture_status

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
