"""Whether a warehouse on this machine is usable: its folder, its tables, its catalog."""

from __future__ import annotations

import errno
import gzip
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from polynya.lake.warehouse.catalogs import CatalogEntry, catalog_file, entries
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    OperationError,
    PolynyaError,
    SuspendedError,
    TaskStoppedError,
)

#: Errors that explain themselves.
_OF_THEIR_OWN = (ConfigError, ConflictError, SuspendedError, TaskStoppedError)


def cause_of(failure: PolynyaError, target: ResolvedTarget, catalog: str) -> PolynyaError:
    """Why a step failed in a warehouse that had tables: it is gone, or else the given error.

    Whoever writes into a folder that is gone makes it again, so that the catalog has to tell.
    """
    file, warehouse = catalog_file(target), target.warehouse
    if file is None or not isinstance(warehouse, Path) or isinstance(failure, _OF_THEIR_OWN):
        return failure
    try:
        if entries(file, catalog):
            return failure
    except PolynyaError as damaged:
        return damaged
    what = "is empty" if file.exists() else "is gone"
    found = DependencyError(
        "POLYNYA-DEP-017",
        f"the catalog {what}: somebody removed the warehouse, or a part of it, meanwhile",
        where=str(file),
        why=failure.message,
        state="nothing of this step was written; what was in the folder is gone with it",
        fix="end the run. If only the catalog is gone, `polynya doctor --repair` registers the "
        "tables again; else put the folder back from a backup, or begin anew with `polynya run`",
    )
    found.__cause__ = failure
    return found


#: `00012-<uuid>.metadata.json`, as catalogs name them; packed ones have `.gz` before the ending.
_METADATA: Final = re.compile(r"(\d+)-.*?(\.gz)?\.metadata\.json")


def read_metadata(file: Path) -> dict[str, Any] | None:
    """What a metadata file says, None when it is not whole."""
    try:
        raw = file.read_bytes()
        said = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (OSError, EOFError, ValueError):
        return None
    return said if isinstance(said, dict) and "location" in said else None


def version_of(file: Path) -> int:
    """The number of a version of the metadata, -1 for another file."""
    match = _METADATA.fullmatch(file.name)
    return int(match.group(1)) if match else -1


def newest_metadata(folder: Path) -> Path | None:
    """The newest whole metadata file of a table or a view in a folder.

    Of two of one number, one was never committed. Either is a state that the table could have, with
    the position in its source that belongs to it.
    """
    files = sorted((folder / "metadata").glob("*.metadata.json"), key=version_of, reverse=True)
    best: tuple[int, int, Path] | None = None
    for file in files:
        if best is not None and version_of(file) < best[0]:
            break
        said = read_metadata(file)
        if said is not None:
            found = (version_of(file), int(said.get("last-updated-ms", 0)), file)
            best = found if best is None else max(best, found)
    return None if best is None else best[2]


def tables_in(warehouse: Path) -> Iterator[tuple[str, str, Path]]:
    """Namespace, name and newest metadata of each table in a warehouse.

    Views are left out, and tables without a snapshot: a killed process may leave such a table.
    """
    for folder in sorted(warehouse.glob("*/*/metadata")):
        newest = newest_metadata(folder.parent)
        said = read_metadata(newest) if newest is not None else None
        if newest is not None and said is not None and said.get("snapshots"):
            yield folder.parent.parent.name, folder.parent.name, newest


def has_tables_in(warehouse: Path) -> bool:
    """Whether any table lies in a warehouse."""
    return next(tables_in(warehouse), None) is not None


def plain_path(location: str) -> Path | None:
    """The path of a location on this machine, with or without its scheme; None for another one."""
    if location.startswith("file:"):
        return Path("/" + location.removeprefix("file:").lstrip("/"))
    return Path(location) if location.startswith("/") else None


def lies_in(location: str, folder: Path) -> bool:
    """Whether a location is in a folder, whatever links lead there."""
    path = plain_path(location)
    if path is None:
        return False
    return path.is_relative_to(folder) or path.resolve().is_relative_to(folder.resolve())


#: Tables that a message names.
_MOST_NAMED = 3


def entries_of(target: ResolvedTarget, catalog: str) -> list[CatalogEntry]:
    """Everything that the catalog of a target holds, in a file or on a server.

    Raises DependencyError when it cannot be read.
    """
    file = catalog_file(target)
    if file is not None:
        return entries(file, catalog)
    if target.database is None:
        return []
    # Start-up time: the driver, which no other catalog needs.
    from polynya.lake.warehouse.catalogs import server_entries

    return server_entries(target, catalog)


def refuse_unusable(target: ResolvedTarget, catalog: str) -> None:
    """Raise when the catalog of a target is not that of its warehouse.

    When it is damaged or does not answer, lost beside tables, or names tables of another warehouse,
    because the folder was copied or moved. Nothing is known against a catalog on Glue.
    """
    file, warehouse = catalog_file(target), target.warehouse
    known = entries_of(target, catalog)
    if not isinstance(warehouse, Path) or target.on_glue:
        return
    if not known and has_tables_in(warehouse):
        raise _lost(file, target, warehouse)
    if file is None or not file.is_relative_to(warehouse):
        # A catalog elsewhere may serve several warehouses.
        return
    # Tables are what people know; views follow them.
    known = sorted(known, key=lambda one: one.is_view)
    away = [one for one in known if not lies_in(one.metadata, warehouse)]
    if away:
        raise _elsewhere(away, warehouse)


def refuse_incomplete(target: ResolvedTarget, catalog: str) -> None:
    """Raise when metadata of tables is missing. A run continues with its other tables."""
    gone = [one for one in entries_of(target, catalog) if _is_gone(one.metadata)]
    if gone:
        raise _without_metadata(gone)


def _is_gone(location: str) -> bool:
    path = plain_path(location)
    return path is not None and not path.is_file()


def _names(found: Sequence[CatalogEntry]) -> str:
    names = ", ".join(one.full_name for one in found[:_MOST_NAMED])
    return names + (f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else "")


def _lost(file: Path | None, target: ResolvedTarget, warehouse: Path) -> OperationError:
    what = "is empty" if file is None or file.exists() else "is not there"
    back = (
        "put the file back, or let `polynya doctor --repair` register the tables again"
        if file is not None
        else "restore the database, or name the one that has the tables"
    )
    return OperationError(
        "POLYNYA-LAKE-041",
        f"the catalog {what}, and its warehouse holds tables",
        where=str(file) if file is not None else f"target {target.name}",
        state="nothing was started; the tables are as they were",
        fix=f"{back}; to begin from scratch remove {warehouse}",
    )


def _elsewhere(away: Sequence[CatalogEntry], warehouse: Path) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-042",
        f"{_names(away)} {'lies' if len(away) == 1 else 'lie'} in another warehouse: "
        "this one was copied or moved",
        where=away[0].metadata,
        why=f"the warehouse of the target is {warehouse}",
        state="nothing was started; the tables are as they were, here and there",
        fix="`polynya adopt` makes the tables in this folder its own; to go on with those there, "
        "set `warehouse` of the target",
    )


def _without_metadata(gone: Sequence[CatalogEntry]) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-043",
        f"files of {_names(gone)} are missing",
        where=gone[0].metadata,
        state="the other tables are not concerned",
        fix="put the file back from a backup, or let `polynya doctor --repair` go back to the "
        "newest metadata that is there",
    )


#: Error numbers of a full disk.
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
#: What is written to try: permission bits say nothing about full disks and read-only mounts.
_TRIAL: Final = b"polynya" * 10_000


def make_folder(folder: Path) -> None:
    """Make a folder where there is none. Raises DependencyError when that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(str(folder), error) from error


def refuse_unwritable(folder: Path) -> None:
    """Write a little and take it back. Raises DependencyError when that cannot be done."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(_TRIAL)
    except OSError as error:
        raise unwritable(str(folder), error) from error


def unwritable(where: str, error: OSError) -> DependencyError:
    """The error for a place that accepts no file, from the system's message."""
    if error.errno in NO_ROOM:
        return no_room(where, error.strerror)
    return no_access(where, error.strerror or str(error))


def no_room(where: str | None, why: str | None) -> DependencyError:
    """The error for a full disk."""
    return DependencyError(
        "POLYNYA-DEP-011",
        "there is no room left on the disk",
        where=where,
        why=why,
        state="as after the last completed commit; every commit is atomic",
        fix="make room, then run again",
    )


def no_access(where: str | None, why: str) -> DependencyError:
    """The error for a folder or a file that the system does not let us use."""
    return DependencyError(
        "POLYNYA-DEP-010",
        "the system refuses access to a file or a folder",
        where=where,
        why=why,
        state="as after the last completed commit; every commit is atomic",
        fix="see to the permissions and to how the disk is mounted, or choose another folder",
    )
