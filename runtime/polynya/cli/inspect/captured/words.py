"""How a capture is, as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from polynya.cli.inspect.words import age_in_words, moment_in_words, size_in_words
from polynya.observe.events import counted, one_line

if TYPE_CHECKING:
    from polynya.engine.verbs.captures import CaptureStatus
    from polynya.gateway.source import Lag


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
    for table in one.tables:
        why = f": {table.why}" if table.why else ""
        yield f"  {table.state:<10} {table.table}, {counted(table.rows, 'row')} loaded{why}"


def _lag_in_words(lag: Lag) -> str:
    known = [
        None if lag.bytes is None else size_in_words(lag.bytes),
        None if lag.seconds is None else age_in_words(lag.seconds),
    ]
    return ", ".join(part for part in known if part is not None) or "not known"
