"""What has to be right with a warehouse on this machine before anything reads or writes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from polynya.lake.warehouse.catalog_file import CatalogEntry, catalog_file, entries
from polynya.lake.warehouse.on_disk import has_tables_in, lies_in, plain_path
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import OperationError

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
    from polynya.lake.warehouse.catalog_server import server_entries

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
    """Raise when metadata of tables is missing. A run goes on with its other tables."""
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
