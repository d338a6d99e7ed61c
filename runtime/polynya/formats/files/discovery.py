"""Which landed files are to be read: name order, nothing unfinished, nothing twice."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import overload

from polynya.formats.batch import FilePart, FileProgress
from polynya.model.contract.wildcards import glob_expression
from polynya.store.object_store import ObjectInfo

#: Writers rename to the final name when a file is whole.
_UNFINISHED = (".tmp", ".part", ".partial", ".inprogress", ".crdownload", ".crc", "~")
_HIDDEN = (".", "_")


#: Where the part of a glob ends that names files as it stands.
_WILD = re.compile(r"[*?\[]")


class Landed(Sequence[ObjectInfo]):
    """Landed files in path order: those of one dataset are found without looking at all others."""

    def __init__(self, files: Iterable[ObjectInfo] = ()) -> None:
        self._files = sorted(files, key=lambda info: info.path)
        self.paths = frozenset(info.path for info in self._files)

    @overload
    def __getitem__(self, index: int) -> ObjectInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ObjectInfo]: ...
    def __getitem__(self, index: int | slice) -> ObjectInfo | Sequence[ObjectInfo]:
        return self._files[index]

    def __len__(self) -> int:
        return len(self._files)

    def below(self, start: str, since: str = "") -> Sequence[ObjectInfo]:
        """Those whose path starts like this, and does not come before another one."""
        low, high = self._bounds(start)
        return self._files[max(low, bisect_left(self._files, since, key=_path)) : high]

    def with_ends(self, ends: Iterable[tuple[str, str, Sequence[ObjectInfo]]]) -> Landed:
        """These files with others at some ends; itself when nothing is new.

        `ends` has the beginning of paths, a path, and the files that are there now of all that
        begin like this and come after that path. No beginning is one of another one.
        """
        files, gone, come = self._files, list[ObjectInfo](), list[ObjectInfo]()
        for start, after, found in ends:
            low, high = self._bounds(start, files)
            low = max(low, bisect_right(files, after, key=_path))
            before = files[low:high]
            if _versions(before) != _versions(found):
                files = [*files[:low], *found, *files[high:]]
                gone, come = [*gone, *before], [*come, *found]
        if files is self._files:
            return self
        result = Landed()
        result._files = files
        left = {one.path for one in gone} - {one.path for one in come}
        result.paths = (self.paths - left).union(one.path for one in come)
        return result

    def _bounds(self, start: str, files: list[ObjectInfo] | None = None) -> tuple[int, int]:
        """Where the files are that begin with a text."""
        files = self._files if files is None else files
        begin = bisect_left(files, start, key=_path)
        return begin, bisect_right(files, start, begin, key=lambda info: info.path[: len(start)])


def _path(info: ObjectInfo) -> str:
    return info.path


def _versions(files: Sequence[ObjectInfo]) -> list[tuple[str, int, str]]:
    return [(one.path, one.size, one.version) for one in files]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that changed after it was read, sizes in bytes. It is not read again.

    `stamp` is the one that it has now, as `ObjectInfo` has it.
    """

    path: str
    was: int
    size: int
    stamp: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Discovery:
    """Files to read, in order, and files that changed after they were read.

    `load` tells that the settings name the files as a full load.
    """

    files: tuple[FilePart, ...]
    changed: tuple[ChangedFile, ...]
    load: bool = False

    @property
    def size_bytes(self) -> int:
        """Size of the files to read, each whole."""
        return sum(part.size for part in self.files)


def matching(
    landed: Iterable[ObjectInfo],
    root: str,
    glob: str,
    *,
    since: str = "",
    done: Mapping[str, FileProgress] | None = None,
) -> Iterator[ObjectInfo]:
    """The landed files below `root` that a glob names and that are finished, none before `since`.

    `root` is "" for the store's own. `*` and `?` stay inside one folder, `**` crosses folders.
    What `done` tells to be read to its end is left out: of a folder that nobody empties that is
    nearly all, and to compare a name with a glob takes ten times as long.
    """
    pattern = glob_pattern(glob)
    if isinstance(landed, Landed):
        landed = landed.below(start_of(root, glob), since)
    for info in landed:
        if done is not None and _is_read(info, done.get(info.path)):
            continue
        relative = relative_to(root, info.path)
        if info.path >= since and pattern.fullmatch(relative) and not is_unfinished(relative):
            yield info


def _is_read(info: ObjectInfo, progress: FileProgress | None) -> bool:
    """Whether there is nothing to read of a file, and nothing to say."""
    return (
        progress is not None
        and progress.complete
        and progress.size == info.size
        and not _is_replaced(info, progress)
    )


def _is_replaced(info: ObjectInfo, before: FileProgress) -> bool:
    """Whether a file has the size that it had, and another content."""
    told = info.stamp and before.stamp
    return bool(told) and info.size == before.size and info.stamp != before.stamp


def start_of(root: str, glob: str) -> str:
    """How the paths of all files begin that a glob below `root` names."""
    named = _WILD.split(glob, maxsplit=1)[0]
    return f"{root}/{named}" if root else named


def relative_to(root: str, path: str) -> str:
    """A path below `root`, "" for the store's own root."""
    return path.removeprefix(f"{root}/") if root else path


def unread(
    landed: Iterable[ObjectInfo],
    done: Mapping[str, FileProgress],
    *,
    may_grow: bool = True,
    in_order: bool = False,
) -> Discovery:
    """What of the landed files is to be read, in name order.

    Args:
        landed: files, in any order.
        done: what was read so far, by path.
        may_grow: records may be appended to a file while it is read.
        in_order: files land in the order of their names, so that all of a folder before one that
            was read were read too.

    Returns:
        Files that are new or not yet complete. A complete file that has another size, a partly read
        one that shrank (or grew, unless it may), and one of equal size that was replaced are
        reported as changed.
    """
    files: list[FilePart] = []
    changed: list[ChangedFile] = []
    newest = newest_of_folders(done) if in_order else {}
    for info in landed:
        before = done.get(info.path)
        if before is None:
            if in_order and info.path <= newest.get(folder_of(info.path), ""):
                continue
            files.append(FilePart.of(info))
        elif _is_replaced(info, before) or (
            info.size != before.size
            and (before.complete or info.size < before.size or not may_grow)
        ):
            changed.append(ChangedFile(info.path, before.size, info.size, info.stamp))
        elif not before.complete:
            files.append(FilePart.of(info, before.records))
    return Discovery(tuple(sorted(files, key=lambda part: part.path)), tuple(changed))


def before_file(parts: Sequence[FilePart], path: str) -> tuple[FilePart, ...]:
    """The files that are read before another one; none when that is not among them."""
    paths = [part.path for part in parts]
    return tuple(parts[: paths.index(path)]) if path in paths else ()


def folder_of(path: str) -> str:
    """The folder of a file, "" for the root."""
    return path.rpartition("/")[0]


def newest_of_folders(paths: Iterable[str]) -> dict[str, str]:
    """The last name of each folder, where files land in the order of their names."""
    newest: dict[str, str] = {}
    for path in paths:
        folder = folder_of(path)
        newest[folder] = max(newest.get(folder, ""), path)
    return newest


def newest_only(
    before: Mapping[str, FileProgress], now: Mapping[str, FileProgress]
) -> dict[str, FileProgress]:
    """Progress of the newest file of each folder, which says all where files land in order.

    `now` was read after `before`: a folder that was emptied begins anew with lower names.
    """
    newest = {**newest_of_folders(before), **newest_of_folders(now)}
    files = {**before, **now}
    return {path: files[path] for path in newest.values()}


def is_unfinished(path: str) -> bool:
    """Whether a name says that the file is hidden, or that its writer is not done."""
    # `.` and `..` are no names of folders. A key on S3 may hold them: the file is refused by name.
    hidden = any(part.startswith(_HIDDEN) for part in path.split("/") if part not in {".", ".."})
    return hidden or path.endswith(_UNFINISHED)


def is_unfinished_in_table_folder(path: str) -> bool:
    """The same where folders are named by source tables: a table's name may begin with `_`."""
    *folders, name = path.split("/")
    hidden = name.startswith(_HIDDEN) or any(part.startswith(".") for part in folders)
    return hidden or name.endswith(_UNFINISHED)


@lru_cache(maxsize=256)
def glob_pattern(glob: str) -> re.Pattern[str]:
    """The regular expression of a glob; case matters."""
    return re.compile(glob_expression(glob), re.DOTALL)
