"""Which prefixes the dates of a pattern predict, and the files below them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from polynya.formats.files import is_unfinished
from polynya.model.patterns import UNITS, FilePattern
from polynya.store.object_store import ObjectInfo
from polynya.store.places import SourceStore
from polynya.streams.files.files import FoundFile
from polynya.streams.files.position import FilesPosition

_NAMES: Final = tuple(UNITS)
_LENGTHS: Final = {"dd": timedelta(days=1), "HH": timedelta(hours=1), "mm": timedelta(minutes=1)}
#: How many of a unit there are in the next larger one.
PARTS: Final = {"MM": 12, "dd": 31, "HH": 24, "mm": 60}
#: No date in a path can be after it.
END: Final = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)


def begun(moment: datetime, unit: str) -> datetime:
    """When the unit of a moment began."""
    count = _NAMES.index(unit) + 1
    numbers = (moment.year, moment.month, moment.day, moment.hour, moment.minute)
    year, month, day, hour, minute = [*numbers[:count], *(1, 1, 1, 0, 0)[count:]]
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def following(moment: datetime, unit: str) -> datetime:
    """When the next unit begins, of a moment at which one begins."""
    if unit in _LENGTHS:
        length = _LENGTHS[unit]
        return moment + length if moment <= END - length else END
    months = moment.year * 12 + moment.month - 1 + (12 if unit == "yyyy" else 1)
    if months // 12 > END.year:
        return END
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def units(begin: datetime, end: datetime, unit: str) -> Iterator[datetime]:
    """The beginnings of all units that meet the time from `begin` to `end`, both included."""
    at = begun(begin, unit)
    while at <= end:
        yield at
        after = following(at, unit)
        if after <= at:
            return
        at = after


#: A request costs as much as it takes to list some hundred objects. So a unit is listed whole when
#: more than a quarter of it is wanted.
_WHOLE_UNIT_FRACTION: Final = 4
#: As many prefixes are asked for one by one; of more the beginning that they share is listed.
_MAX_PREFIXES: Final = 1000


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
    if len(list(islice(units(begin, end, first), _MAX_PREFIXES + 1))) > _MAX_PREFIXES:
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
    most = PARTS[part] // _WHOLE_UNIT_FRACTION
    return len(list(islice(wanted, most + 1))) > most


def _before(moment: datetime) -> datetime:
    """The last minute before a moment: no date is finer."""
    return moment - timedelta(minutes=1)


#: So many files are taken from one look at most: they are held in memory until they are read.
MAX_LISTED_FILES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Listing:
    """What a listing has shown.

    Attributes:
        files: to be read, in their order.
        changed: files in another version than the one that was read. They are not read again.
        over: no more files are there than these.
        horizon: the moment from which on files are looked for again; None without dates.
        there: names of all files of a source without dates, if the listing went to its end.
    """

    files: tuple[FoundFile, ...] = ()
    changed: tuple[FoundFile, ...] = ()
    over: bool = True
    horizon: datetime | None = None
    there: tuple[FoundFile, ...] | None = None


def look_at(
    store: SourceStore,
    pattern: FilePattern,
    position: FilesPosition,
    *,
    now: datetime,
    look_back: timedelta,
    without: FilePattern | None = None,
    most: int = MAX_LISTED_FILES,
) -> Listing:
    """Look for files that were not read.

    Args:
        store: the place of the source.
        pattern: of the paths of its files.
        position: what was read.
        now: dates after this moment have to wait.
        look_back: so long files may come late.
        without: the pattern of the initial load, whose files are not read a second time.
        most: after so many files the listing may stop.
    """
    unit = pattern.unit
    horizon = begun(now - look_back, unit) if unit else None
    ordered = pattern.in_order and not pattern.folders
    found = _dated(store, pattern, position, now) if unit else _undated(store, pattern)
    files: list[FoundFile] = []
    changed: list[FoundFile] = []
    there: list[FoundFile] = []

    def unread() -> Iterator[FoundFile]:
        for file in found:
            if without is not None and without.matches(file.name):
                continue
            if unit is None:
                there.append(file)
            if position.known.has_other(file):
                changed.append(file)
            elif position.known.has(file):
                continue
            elif position.cut is None or position.cut.file.name != file.name:
                yield file

    rest = unread()
    if ordered and unit:
        files = list(islice(rest, most))
        over = next(rest, None) is None
    else:
        files = heapq.nsmallest(most + 1, rest, key=lambda file: file.turn)
        over = len(files) <= most
        files = files[:most]
    return Listing(
        tuple(files),
        tuple(changed),
        over,
        horizon,
        tuple(there) if unit is None else None,
    )


def look_at_initial(
    store: SourceStore,
    pattern: FilePattern,
    position: FilesPosition,
    *,
    most: int = MAX_LISTED_FILES,
) -> Listing:
    """Look for files of the initial load that were not read, in the order of their names."""
    listed = store.beginning(pattern.common, position.initial or "")
    cut = "" if position.cut is None else position.cut.file.name
    found = (file for file in _matching(listed, pattern.matches) if file.name != cut)
    files = list(islice(found, most + 1))
    return Listing(tuple(files[:most]), over=len(files) <= most)


def _undated(store: SourceStore, pattern: FilePattern) -> Iterator[FoundFile]:
    return _matching(store.beginning(pattern.common), pattern.matches)


def _dated(
    store: SourceStore, pattern: FilePattern, position: FilesPosition, now: datetime
) -> Iterator[FoundFile]:
    """The files with dates up to now that are not done."""
    for part in _parts(store, pattern):
        # Names are in the order of dates then: what is done need not be listed.
        after = position.passed if part.in_order and part is pattern else ""
        for prefix in prefixes(part, position.since, now):
            for info in store.beginning(prefix, after):
                date = part.date(info.path)
                if date is None or date > now or is_unfinished(info.path):
                    continue
                file = FoundFile(info.path, info.size, info.version, date, info.written)
                if not position.is_done(file):
                    yield file


def _parts(store: SourceStore, pattern: FilePattern) -> Iterable[FilePattern]:
    """The pattern for each folder that its `*` before the dates stands for."""
    if not pattern.folders:
        return [pattern]
    known = [""]
    for folder in pattern.folders:
        if "*" not in folder:
            known = [f"{path}{folder}/" for path in known]
            continue
        start = folder.partition("*")[0]
        known = [path for one in known for path in store.folders(one + start)]
    parts = (pattern.below(path) for path in known)
    return [part for part in parts if part is not None]


def _matching(found: Iterable[ObjectInfo], matches: Callable[[str], bool]) -> Iterator[FoundFile]:
    for info in found:
        if matches(info.path) and not is_unfinished(info.path):
            yield FoundFile(info.path, info.size, info.version, None, info.written)
