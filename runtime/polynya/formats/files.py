"""Discovery of landed files: which ones to read, in which order, and how far each was read.

The progress of all files is part of the state in each commit. A folder that is never emptied has
thousands of files, and a step changes a few, so the JSON of the completely read files is made once
and kept (`FilesProgress`). Where files land in the order of their names, the newest file that was
read speaks for its whole folder, so a position need not name the others.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Final, TypeAlias, overload

from polynya.formats.batch import WHOLE_FILE, DatasetBatch, FilePart, FileProgress, Rejected
from polynya.formats.errors import UnreadableFileError
from polynya.formats.values.arrow import no_rows
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.error_catalogue.lake import NOTHING_TO_RELOAD
from polynya.model.errors import OperationError
from polynya.model.patterns import glob_expression
from polynya.store.object_store import ObjectInfo

#: Writers rename to the final name when a file is whole.
_UNFINISHED = (".tmp", ".part", ".partial", ".inprogress", ".crdownload", ".crc", "~")
_HIDDEN = (".", "_")


_path = attrgetter("path")
#: Where the part of a glob ends that names files as it stands.
_WILD = re.compile(r"[*?\[]")


class LandedFiles(Sequence[ObjectInfo]):
    """Landed files in path order: those of one dataset are found without looking at all others."""

    def __init__(self, files: Iterable[ObjectInfo] = ()) -> None:
        self._files = sorted(files, key=_path)
        self.paths = frozenset(map(_path, self._files))

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

    def with_ends(self, ends: Iterable[tuple[str, str, Sequence[ObjectInfo]]]) -> LandedFiles:
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
        result = LandedFiles()
        result._files = files
        left = {info.path for info in gone} - {info.path for info in come}
        result.paths = (self.paths - left).union(info.path for info in come)
        return result

    def _bounds(self, start: str, files: list[ObjectInfo] | None = None) -> tuple[int, int]:
        """Where the files are that begin with a text."""
        files = self._files if files is None else files
        begin = bisect_left(files, start, key=_path)
        return begin, bisect_right(files, start, begin, key=lambda info: info.path[: len(start)])


def _versions(files: Sequence[ObjectInfo]) -> list[tuple[str, int, str]]:
    return [(file.path, file.size, file.version) for file in files]


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
    if isinstance(landed, LandedFiles):
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


class NoTable(Enum):
    """Why a file belongs to no table."""

    #: a table that the replication service keeps for itself
    CONTROL = auto()
    #: it describes another file and is read with that
    COMPANION = auto()
    #: it stands where no table has its folder
    UNPLACED = auto()


#: path below the landing folder → source table (`schema.table`), or why there is none
TableOf: TypeAlias = Callable[[str], "str | NoTable"]
#: path → that of the file without which it cannot be read, None for none
CompanionOf: TypeAlias = Callable[[str], "str | None"]


@dataclass(frozen=True, slots=True)
class Folders:
    """Landed files by what they belong to.

    Attributes:
        tables: by `schema.table`, the files that can be read, of the tables that the task takes.
        waiting: by `schema.table`, the companion that each of the other files waits for, by path.
        left_out: files of tables that the task does not take.
        control: files of the replication service's own tables.
        unplaced: files in no table's folder.
    """

    tables: Mapping[str, tuple[ObjectInfo, ...]] = field(default_factory=dict)
    waiting: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    left_out: tuple[ObjectInfo, ...] = ()
    control: tuple[ObjectInfo, ...] = ()
    unplaced: tuple[ObjectInfo, ...] = ()


#: No table has a folder.
NO_FOLDERS = Folders()


def sorted_out(
    landed: Iterable[ObjectInfo],
    root: str,
    table_of: TableOf,
    included: Callable[[str], bool],
    companion_of: CompanionOf = lambda _: None,
) -> Folders:
    """Sort the files below the folder `root`; unfinished ones are left alone."""
    tables: dict[str, list[ObjectInfo]] = defaultdict(list)
    others: dict[NoTable, list[ObjectInfo]] = {reason: [] for reason in NoTable}
    left_out: list[ObjectInfo] = []
    for info in landed:
        relative = info.path.removeprefix(f"{root}/")
        if is_unfinished_in_table_folder(relative):
            continue
        table = table_of(relative)
        if isinstance(table, NoTable):
            others[table].append(info)
        elif included(table):
            tables[table].append(info)
        else:
            left_out.append(info)
    there = {info.path for info in others[NoTable.COMPANION]}
    waiting = {table: _waiting(infos, companion_of, there) for table, infos in tables.items()}
    return Folders(
        tables={
            table: tuple(info for info in infos if info.path not in waiting[table])
            for table, infos in tables.items()
        },
        waiting={table: paths for table, paths in waiting.items() if paths},
        left_out=tuple(left_out),
        control=tuple(others[NoTable.CONTROL]),
        unplaced=tuple(others[NoTable.UNPLACED]),
    )


def _waiting(
    infos: Iterable[ObjectInfo], companion_of: CompanionOf, there: Collection[str]
) -> dict[str, str]:
    wanted = {info.path: companion_of(info.path) for info in infos}
    return {path: one for path, one in wanted.items() if one is not None and one not in there}


def unrouted(folders: Folders, seen: Mapping[str, FileProgress]) -> DatasetBatch:
    """Row accounting of new files without a table (not in `seen`); the batch has no rows.

    Files that are left out are counted, unread; a file in no table's folder is rejected whole.
    """
    new = {
        "control_table_files": _new(folders.control, seen),
        "not_included_files": _new(folders.left_out, seen),
    }
    stray = _new(folders.unplaced, seen)
    error = "the file is in no folder of a source table, so it belongs to no dataset"
    files = [info for infos in (*new.values(), stray) for info in infos]
    return no_rows(
        {info.path: FilePart.of(info).read(0, complete=True) for info in files},
        [Rejected(info.path, WHOLE_FILE, "no_dataset", error, b"") for info in stray],
        counters={counter: len(infos) for counter, infos in new.items() if infos},
    )


def by_kind(files: Iterable[str], kind_of: Callable[[str], str]) -> list[set[str]]:
    """Files in groups of one kind each, those with foreign names first.

    `kind_of` may raise UnreadableFileError.
    """
    groups: dict[str, set[str]] = defaultdict(set)
    for file in files:
        try:
            groups[kind_of(file)].add(file)
        except UnreadableFileError:
            groups[""].add(file)
    return [groups[kind] for kind in sorted(groups)]


def _new(infos: Iterable[ObjectInfo], seen: Mapping[str, FileProgress]) -> list[ObjectInfo]:
    return [info for info in infos if info.path not in seen]


#: The JSON of files is kept when there are so many more of them.
_JSON_CHUNK_FILES: Final = 256


class FilesProgress(dict[str, FileProgress]):
    """Progress by path. Nobody changes it: `after` makes the next one."""

    __slots__ = ("_count", "_text")

    def __init__(self, files: Mapping[str, FileProgress] | None = None) -> None:
        super().__init__(files or {})
        #: JSON of the first `_count` files, all of them complete, without braces.
        self._text, self._count = "", 0

    @classmethod
    def of(cls, files: Mapping[str, FileProgress]) -> FilesProgress:
        """These files; itself when it is of this kind."""
        return files if isinstance(files, cls) else cls(files)

    def after(self, now: Mapping[str, FileProgress], live: Set[str] | None) -> FilesProgress:
        """These and what was read `now`, without files that are not `live`; None: all are."""
        files = FilesProgress(self)
        is_kept = not any(path in self and self[path].complete for path in now)
        if live is not None and not self.keys() <= live:
            is_kept = False
            files = FilesProgress({path: done for path, done in self.items() if path in live})
        files.update(now)
        if is_kept:
            files._text, files._count = self._text, self._count
        files._keep_text()
        return files

    def to_json(self) -> str:
        """An object; see `written`."""
        rest = _json(dict(islice(self.items(), self._count, None)))
        return "{" + ", ".join(text for text in (self._text, rest) if text) + "}"

    def _keep_text(self) -> None:
        """Keep the JSON of the complete files that follow those of which it is kept."""
        if len(self) - self._count < _JSON_CHUNK_FILES:
            return
        more: dict[str, FileProgress] = {}
        for path, done in islice(self.items(), self._count, None):
            if not done.complete:
                break
            more[path] = done
        self._text = ", ".join(text for text in (self._text, _json(more)) if text)
        self._count += len(more)

    def begun(self) -> dict[str, int]:
        """The stamps of the files that were not read to their end."""
        rest = islice(self.items(), self._count, None)
        return {path: one.stamp for path, one in rest if one.stamp and not one.complete}


def written(files: Mapping[str, FileProgress]) -> dict[str, list[int]]:
    """Progress as the JSON has it: [bytes, records, 0 or 1 + twice the stamp of a complete file].

    Earlier versions read the last one as true or false.
    """
    return {
        path: [p.size, p.records, 1 + 2 * p.stamp if p.complete else 0] for path, p in files.items()
    }


def read(files: Mapping[str, Sequence[int]], begun: Mapping[str, int]) -> dict[str, FileProgress]:
    """Progress out of the JSON; `begun` has the stamps of files that are not complete."""
    return {
        path: FileProgress(size, records, bool(complete), complete // 2 or begun.get(path, 0))
        for path, (size, records, complete) in files.items()
    }


def _json(files: Mapping[str, FileProgress]) -> str:
    return json.dumps(written(files), ensure_ascii=False)[1:-1]


def nothing_to_reload(
    dataset: ResolvedDataset, reason: str, *, fix: str | None = None
) -> OperationError:
    """The error of a reload that has no files."""
    return NOTHING_TO_RELOAD(
        where=f"task {dataset.task}", fix=fix, relation=dataset.relations.current, reason=reason
    )


def full_load_of(
    landed: Iterable[ObjectInfo],
    dataset: ResolvedDataset,
    glob: str | None,
    *,
    table_of: TableOf,
    is_load: Callable[[str], bool],
) -> tuple[ObjectInfo, ...]:
    """The files of a full load of one table that are in its folder, and that a glob names."""
    root = dataset.landing.folder
    own = sorted_out(landed, root, table_of, lambda name: name == dataset.landing.source)
    pattern = glob_pattern(glob or "**")
    return tuple(
        info
        for info in own.tables.get(dataset.landing.source or "", ())
        if is_load(info.path) and pattern.fullmatch(relative_to(root, info.path))
    )


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
) -> FilesProgress:
    """The files whose progress a position has to name, after `now` was read.

    Those of the last read stay: after a kill they may be read once more. `live` are the files that
    exist, None where nobody has looked.
    """
    ordered = {path: done for path, done in before.items() if is_ordered(path)}
    read = {path: done for path, done in now.items() if is_ordered(path)}
    newest = newest_only(ordered, read).keys()
    passed = ordered.keys() - newest - read.keys()
    if live is None and not passed:
        return FilesProgress.of(before).after(now, None)
    kept = (before.keys() if live is None else live) - passed
    return FilesProgress.of(before).after(now, frozenset(kept) | (newest & before.keys()))
