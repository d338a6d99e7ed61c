"""Landing zones with a folder for each source table: which table a landed file belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from polynya.formats.batch import WHOLE_FILE, DatasetBatch, FileProgress, Rejected
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


@dataclass(frozen=True, slots=True)
class Folders:
    """Landed files by what they belong to.

    Attributes:
        tables: by `schema.table`, those that the task takes.
        left_out: files of tables that the task does not take.
        control: files of the replication service's own tables.
        unplaced: files in no table's folder.
        companions: paths of files that describe others.
    """

    tables: Mapping[str, tuple[ObjectInfo, ...]]
    left_out: tuple[ObjectInfo, ...]
    control: tuple[ObjectInfo, ...]
    unplaced: tuple[ObjectInfo, ...]
    companions: frozenset[str]


#: Nothing landed.
NO_FOLDERS = Folders({}, (), (), (), frozenset())


def sorted_out(
    landed: Iterable[ObjectInfo], root: str, table_of: TableOf, included: Callable[[str], bool]
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
    return Folders(
        {table: tuple(infos) for table, infos in tables.items()},
        tuple(left_out),
        tuple(others[NoTable.CONTROL]),
        tuple(others[NoTable.UNPLACED]),
        frozenset(info.path for info in others[NoTable.COMPANION]),
    )


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
        {info.path: FileProgress(info.size, 0, complete=True) for info in files},
        [Rejected(info.path, WHOLE_FILE, "no_dataset", error, b"") for info in stray],
        counters={counter: len(infos) for counter, infos in new.items() if infos},
    )


def _new(infos: Iterable[ObjectInfo], seen: Mapping[str, FileProgress]) -> list[ObjectInfo]:
    return [info for info in infos if info.path not in seen]
