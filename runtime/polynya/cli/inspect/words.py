"""Times, ages and sizes as people read them: one way for every command."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_in_words(text: str | None, now: datetime) -> str:
    """A time in UTC to the second and how long ago that was; `never` without one."""
    if text is None:
        return "never"
    moment = datetime.fromisoformat(text).astimezone(UTC)
    ago = max((now - moment).total_seconds(), 0.0)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC, {age_in_words(ago)} ago"


def age_in_words(seconds: float) -> str:
    """Seconds in the largest unit that fits."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.1f} s"


def size_in_words(size: int) -> str:
    """Bytes as KiB or MiB."""
    return f"{size / 1024:,.0f} KiB" if size < 1024**2 else f"{size / 1024**2:,.1f} MiB"
