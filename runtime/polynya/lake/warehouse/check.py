"""Whether a warehouse on this machine is usable: its folder, its tables, its catalog."""

from __future__ import annotations

import errno
import gzip
import json
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from polynya.lake.warehouse.catalogs import CatalogEntry, catalog_file, entries, namespaces
from polynya.lake.warehouse.moved import FOLDER, refuse_moved
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.machine import ACCESS_DENIED, DISK_FULL
from polynya.model.error_catalogue.warehouse import (
    CATALOG_LOST,
    METADATA_FILE_MISSING_FIX,
    TABLE_FILE_MISSING,
    TABLES_IN_OTHER_WAREHOUSE,
    WAREHOUSE_REMOVED,
)
from polynya.model.errors import (
    ConfigError,
    ConflictError,
    DependencyError,
    OperationError,
    PolynyaError,
    SuspendedError,
    TaskStoppedError,
)
from polynya.store.object_store import LocalObjectStore

#: Errors that explain themselves.
_OF_THEIR_OWN = (ConfigError, ConflictError, SuspendedError, TaskStoppedError)


def cause_of(failure: PolynyaError, target: ResolvedTarget, catalog: str) -> PolynyaError:
    """Why a step failed in a warehouse that had tables: it is gone, or else the given error.

    A write recreates a folder that is gone, so only the catalog can tell.
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
    removed = WAREHOUSE_REMOVED(where=str(file), why=failure.message, is_what=what)
    removed.__cause__ = failure
    return removed


#: `00012-<uuid>.metadata.json`, as catalogs name them; packed ones have `.gz` before the ending.
_METADATA: Final = re.compile(r"(\d+)-.*?(\.gz)?\.metadata\.json")


def read_metadata(file: Path) -> dict[str, Any] | None:
    """What a metadata file says, None when it is not whole."""
    try:
        raw = file.read_bytes()
        document = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (OSError, EOFError, ValueError):
        return None
    return document if isinstance(document, dict) and "location" in document else None


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
        document = read_metadata(file)
        if document is not None:
            newest = (version_of(file), int(document.get("last-updated-ms", 0)), file)
            best = newest if best is None else max(best, newest)
    return None if best is None else best[2]


def tables_in(warehouse: Path) -> Iterator[tuple[str, str, Path]]:
    """Namespace, name and newest metadata of each table in a warehouse.

    Views are left out, and tables without a snapshot: a killed process may leave such a table.
    """
    for folder in sorted(warehouse.glob("*/*/metadata")):
        newest = newest_metadata(folder.parent)
        document = read_metadata(newest) if newest is not None else None
        if newest is not None and document is not None and document.get("snapshots"):
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
_NAMED_TABLES = 3


def entries_of(
    target: ResolvedTarget, catalog: str, schemas: Collection[str] = ()
) -> list[CatalogEntry]:
    """Everything that the catalog of a target holds, in a file or on a server.

    Of a REST catalog, which may be large, only what is in `schemas`, in the order of their names.
    Raises DependencyError when it cannot be read.
    """
    file = catalog_file(target)
    if file is not None:
        return entries(file, catalog)
    if target.rest is not None:
        # Start-up time: PyIceberg, which no other catalog needs for this.
        from polynya.lake.warehouse.rest_catalog import rest_entries

        return rest_entries(target, catalog, schemas)
    if target.database is None:
        return []
    # Start-up time: the driver, which no other catalog needs.
    from polynya.lake.warehouse.catalogs import server_entries

    return server_entries(target, catalog)


def namespaces_of(target: ResolvedTarget, catalog: str) -> dict[str, dict[str, str]]:
    """Namespaces of the catalog of a target with their properties, in a file or on a server.

    Raises DependencyError when it cannot be read.
    """
    file = catalog_file(target)
    if file is not None:
        return namespaces(file, catalog)
    if target.database is None:
        return {}
    # Start-up time: the driver, which no other catalog needs.
    from polynya.lake.warehouse.catalogs import server_namespaces

    return server_namespaces(target, catalog)


def refuse_unusable(
    target: ResolvedTarget, catalog: str, entries: Sequence[CatalogEntry] | None = None
) -> None:
    """Raise when the catalog of a target is not that of its warehouse.

    When it is damaged or does not answer, lost beside tables, or names tables of another warehouse,
    because the folder was copied or moved. Nothing is known against a catalog on Glue. `entries`
    are what it holds, where that was read already.
    """
    file, warehouse = catalog_file(target), target.warehouse
    if target.rest is not None:
        _refuse_other_served(target, catalog)
        return
    if entries is None:
        entries = entries_of(target, catalog)
    if not isinstance(warehouse, Path) or target.on_glue:
        return
    if not entries and has_tables_in(warehouse):
        raise _lost(file, target, warehouse)
    if file is None or not file.is_relative_to(warehouse):
        # A catalog elsewhere may serve several warehouses.
        return
    # Tables are what people know; views follow them.
    entries = sorted(entries, key=lambda entry: entry.is_view)
    away = [entry for entry in entries if not lies_in(entry.metadata, warehouse)]
    if away:
        raise TABLES_IN_OTHER_WAREHOUSE(
            where=away[0].metadata,
            why=f"the warehouse of the target is {warehouse}",
            tables=_names(away),
        )


def _refuse_other_served(target: ResolvedTarget, catalog: str) -> None:
    """Raise when a folder has tables and the REST catalog of the target knows none of them.

    Mostly it knows the first one. Those of other schemas may be in another catalog.
    """
    warehouse = target.warehouse
    if not isinstance(warehouse, Path) or not has_tables_in(warehouse):
        return
    # Start-up time: PyIceberg, which no other catalog needs for this.
    from polynya.lake.warehouse.rest_catalog import serves

    names = ((schema, table) for schema, table, _ in tables_in(warehouse))
    if not any(serves(target, catalog, schema, table) for schema, table in names):
        raise _lost(None, target, warehouse)


def refuse_incomplete(target: ResolvedTarget, catalog: str) -> None:
    """Raise when metadata of tables is missing. A run continues with its other tables."""
    gone = [entry for entry in entries_of(target, catalog) if _is_gone(entry.metadata)]
    if gone:
        raise TABLE_FILE_MISSING(
            f"files of {_names(gone)} are missing",
            where=gone[0].metadata,
            state="other tables are not affected",
            fix=METADATA_FILE_MISSING_FIX,
        )


def _is_gone(location: str) -> bool:
    path = plain_path(location)
    return path is not None and not path.is_file()


def _names(tables: Sequence[CatalogEntry]) -> str:
    names = ", ".join(entry.full_name for entry in tables[:_NAMED_TABLES])
    return names + (
        f" and {len(tables) - _NAMED_TABLES} more" if len(tables) > _NAMED_TABLES else ""
    )


def refuse_moved_away(target: ResolvedTarget, warehouse: Path) -> None:
    """Raise OperationError when tables of a folder belong to another catalog than the target's."""
    schemas = [file.stem for file in (warehouse / FOLDER).glob("*.json")]
    if schemas:
        refuse_moved(LocalObjectStore(warehouse), target, schemas)


def _lost(file: Path | None, target: ResolvedTarget, warehouse: Path) -> OperationError:
    refuse_moved_away(target, warehouse)
    if file is None:
        does_not = "is empty" if target.rest is None else "does not have the tables"
        fix = "restore the catalog, or name the one that has the tables; to start from scratch, "
        return CATALOG_LOST(
            where=f"target {target.name}",
            fix=f"{fix}remove {warehouse}",
            is_what=does_not,
        )
    is_what = "is empty" if file.exists() else "is missing"
    return CATALOG_LOST(where=str(file), is_what=is_what, warehouse=warehouse)


#: Error numbers of a full disk.
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
#: What is written to try: permission bits say nothing about full disks and read-only mounts.
_TRIAL_BYTES: Final = b"polynya" * 10_000


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
            file.write(_TRIAL_BYTES)
    except OSError as error:
        raise unwritable(str(folder), error) from error


def unwritable(where: str, error: OSError) -> DependencyError:
    """The error for a place that accepts no file, from the system's message."""
    if error.errno in NO_ROOM:
        return DISK_FULL(where=where, why=error.strerror)
    return ACCESS_DENIED(where=where, why=error.strerror or str(error))
