"""Files that land in the order of their names, such as landed batches, among others that do not.

Of these the newest one that was read says all of its folder, so a position need not name the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import TypeAlias

from polynya.formats.batch import FileProgress
from polynya.formats.files.discovery import folder_of, newest_of_folders, newest_only
from polynya.formats.files.read_files import ReadFiles
from polynya.store.object_store import ObjectInfo

#: Whether a file lands in the order of its name, by its path.
IsOrdered: TypeAlias = Callable[[str], bool]


def not_passed(
    landed: Iterable[ObjectInfo], done: Mapping[str, FileProgress], is_ordered: IsOrdered
) -> Iterator[ObjectInfo]:
    """The landed files without those that were read before a newer one of their folder.

    A folder that has nothing as new as what was read was emptied, and begins anew.
    """
    newest = newest_of_folders(filter(is_ordered, done))
    if not newest:
        yield from landed
        return
    files = list(landed)
    there = newest_of_folders(info.path for info in files if is_ordered(info.path))
    for info in files:
        last = newest.get(folder_of(info.path), "")
        passed = info.path < last <= there.get(folder_of(info.path), "")
        if not (passed and is_ordered(info.path)):
            yield info


def still_told(
    before: Mapping[str, FileProgress],
    now: Mapping[str, FileProgress],
    live: Set[str] | None,
    is_ordered: IsOrdered,
) -> ReadFiles:
    """The files whose progress a position has to name, after `now` was read.

    Those of the last read stay: after a kill they may be read once more. `live` are the files that
    exist, None where nobody has looked.
    """
    ordered = {path: done for path, done in before.items() if is_ordered(path)}
    read = {path: done for path, done in now.items() if is_ordered(path)}
    newest = newest_only(ordered, read).keys()
    passed = ordered.keys() - newest - read.keys()
    if live is None and not passed:
        return ReadFiles.of(before).after(now, None)
    kept = (before.keys() if live is None else live) - passed
    return ReadFiles.of(before).after(now, frozenset(kept) | (newest & before.keys()))
