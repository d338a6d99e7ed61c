"""How a capture is, as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from polynya.cli.inspect.words import age_in_words, moment_in_words, size_in_words
from polynya.observe.events import counted, one_line

if TYPE_CHECKING:
    from polynya.engine.verbs.captures import CaptureStatus
    from polynya.gateway.source import Lag


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
