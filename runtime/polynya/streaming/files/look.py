"""What there is to read in a source of files: lists only what its pattern's dates predict."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from polynya.formats.files.discovery import is_unfinished
from polynya.model.contract.file_pattern import FilePattern
from polynya.store.object_store import ObjectInfo
from polynya.store.source_store import SourceStore
from polynya.streaming.files.files import FoundFile
from polynya.streaming.files.moments import begun
from polynya.streaming.files.position import FilesPosition
from polynya.streaming.files.prefixes import prefixes

#: So many files are taken from one look at most: they are held in memory until they are read.
MOST_FILES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Look:
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
    most: int = MOST_FILES,
) -> Look:
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
        files = heapq.nsmallest(most + 1, rest, key=lambda one: one.turn)
        over = len(files) <= most
        files = files[:most]
    return Look(
        tuple(files),
        tuple(changed),
        over,
        horizon,
        tuple(there) if unit is None else None,
    )


def look_at_initial(
    store: SourceStore, pattern: FilePattern, position: FilesPosition, *, most: int = MOST_FILES
) -> Look:
    """Look for files of the initial load that were not read, in the order of their names."""
    listed = store.beginning(pattern.common, position.initial or "")
    cut = "" if position.cut is None else position.cut.file.name
    found = (one for one in _matching(listed, pattern.matches) if one.name != cut)
    files = list(islice(found, most + 1))
    return Look(tuple(files[:most]), over=len(files) <= most)


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
            known = [f"{one}{folder}/" for one in known]
            continue
        start = folder.partition("*")[0]
        known = [path for one in known for path in store.folders(one + start)]
    parts = (pattern.below(path) for path in known)
    return [part for part in parts if part is not None]


def _matching(found: Iterable[ObjectInfo], matches: Callable[[str], bool]) -> Iterator[FoundFile]:
    for info in found:
        if matches(info.path) and not is_unfinished(info.path):
            yield FoundFile(info.path, info.size, info.version, None, info.written)
