"""Durations ("30d", "2h", "500ms") and sizes ("64MB") as people write them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
# As Spark reads "64MB": every step is 1024.
_SIZES: Final = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
DURATION_PATTERN: Final = r"^[0-9]{1,13} ?(ms|s|m|h|d|w)$"
SIZE_PATTERN: Final = r"^[0-9]{1,15} ?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?$"
MAX_DURATION: Final = timedelta(days=100 * 365)


def parse_duration(text: str) -> timedelta:
    """Return the duration that a text such as `15m` spells; raises ValueError."""
    match = re.fullmatch(DURATION_PATTERN, text)
    if match is None:
        raise ValueError(f"`{text[:40]}` is no duration; write a number and ms, s, m, h, d or w")
    unit = _UNITS[match[1]]
    count = int(text[: match.start(1)])
    # Compared as a count: the product of a large number and a week does not fit a timedelta.
    if count > MAX_DURATION // unit:
        raise ValueError(f"`{text[:40]}` is longer than 100 years")
    return count * unit


def format_duration(value: timedelta) -> str:
    """Return the shortest exact text of a duration: the largest unit that divides it."""
    for name in reversed(_UNITS):
        if value % _UNITS[name] == timedelta(0) and (value or name == "s"):
            return f"{value // _UNITS[name]}{name}"
    raise ValueError(f"{value} is finer than a millisecond")


def parse_size(text: str) -> int:
    """Return the number of bytes that a text such as `64MB` (64 x 1024 x 1024) spells."""
    match = re.fullmatch(SIZE_PATTERN, text)
    if match is None:
        raise ValueError(f"`{text[:40]}` is no size; write a number and B, KB, MB, GB or TB")
    unit = (match[1] or "B").replace("i", "")
    return int(text[: match.start(1)] if match[1] else text) * _SIZES[unit]


def format_size(value: int) -> str:
    """Return the shortest exact text of a number of bytes."""
    for name in reversed(_SIZES):
        if value and value % _SIZES[name] == 0:
            return f"{value // _SIZES[name]}{name}"
    return f"{value}B"
