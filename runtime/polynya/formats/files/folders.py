"""Landing zones with a folder for each source table: which table a landed file belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from polynya.formats.batch import WHOLE_FILE, DatasetBatch, FilePart, FileProgress, Rejected
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.discovery import is_unfinished_in_table_folder
from polynya.formats.values.table import no_rows
from polynya.store.object_store import ObjectInfo


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
    """The books of the files without a table that are not in `seen`; it has no rows.

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
