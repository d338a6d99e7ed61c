"""Which prefixes the dates of a pattern predict: only they are listed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from polynya.model.contract.file_pattern import UNITS, FilePattern
from polynya.streaming.files.moments import PARTS, begun, following, units

_NAMES: Final = tuple(UNITS)
#: A request costs as much as it takes to list some hundred objects. So a unit is listed whole when
#: more than a quarter of it is wanted.
_WHOLE_FROM: Final = 4
#: As many prefixes are asked for one by one; of more the beginning that they share is listed.
_MOST: Final = 1000


def prefixes(pattern: FilePattern, begin: datetime | None, end: datetime) -> Iterator[str]:
    """How the paths begin whose dates are in a time, in the order of these dates.

    No prefix is the beginning of another one. What they list may hold dates outside of the time,
    never less than four times as many units as were asked for.

    Args:
        pattern: of the paths.
        begin: any moment of the first unit; None: there is no beginning.
        end: any moment of the last unit.
    """
    levels = sorted(pattern.starts)
    if begin is None or len(levels) == 1:
        yield pattern.common
        return
    begin = begun(begin, _NAMES[pattern.depth - 1])
    first = _NAMES[levels[1] - 1]
    if len(list(islice(units(begin, end, first), _MOST + 1))) > _MOST:
        yield pattern.common
        return
    yield from _within(pattern, levels[1:], begin, end)


def _within(
    pattern: FilePattern, levels: list[int], begin: datetime, end: datetime
) -> Iterator[str]:
    """The prefixes of the units of one level that meet a time."""
    level, finer = levels[0], levels[1:]
    unit = _NAMES[level - 1]
    for at in units(begin, end, unit):
        after = following(at, unit)
        if not finer or _is_whole(at, after, begin, end, _NAMES[finer[0] - 1]):
            yield pattern.start(level, at)
        else:
            yield from _within(pattern, finer, max(at, begin), min(_before(after), end))


def _is_whole(at: datetime, after: datetime, begin: datetime, end: datetime, part: str) -> bool:
    """Whether so much of a unit is wanted that it is listed at once. Parts are the finer unit."""
    if begin <= at and after <= following(begun(end, part), part):
        return True
    wanted = units(max(at, begin), min(_before(after), end), part)
    most = PARTS[part] // _WHOLE_FROM
    return len(list(islice(wanted, most + 1))) > most


def _before(moment: datetime) -> datetime:
    """The last minute before a moment: no date is finer."""
    return moment - timedelta(minutes=1)
