"""A stream as `polynya status` shows it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from polynya.cli.inspect.words import age_in_words, moment_in_words, size_in_words
from polynya.observe.events import counted

if TYPE_CHECKING:
    from polynya.streaming.landing.status import StreamStatus

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
