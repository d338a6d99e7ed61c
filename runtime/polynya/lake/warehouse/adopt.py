"""Make a catalog name the tables that lie beside it: after a move, a copy, or a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from polynya.lake.warehouse.catalog_file import (
    CatalogEntry,
    catalog_file,
    change_entries,
    entries,
    new_catalog,
)
from polynya.lake.warehouse.moved import at_home
from polynya.lake.warehouse.on_disk import newest_metadata, plain_path, tables_in
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import OperationError, PolynyaError


@dataclass(frozen=True, slots=True)
class Adopted:
    """What became of the catalog.

    `tables` and `views` are the names that it now has elsewhere, `dropped` the views that are gone
    and that the next run makes. `aside` is where a damaged catalog was put.
    """

    tables: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    aside: Path | None = None

    @property
    def nothing(self) -> bool:
        """Whether all was right."""
        return not (self.tables or self.views or self.dropped or self.aside)


def adopt(target: ResolvedTarget, catalog: str) -> Adopted:
    """Let the catalog of a target name the tables in its own warehouse, wherever they were before.

    The files of the former place are neither needed nor touched. One transaction, at the end.
    Raises OperationError when a table is not in the warehouse, and ConflictError when somebody
    works in it.
    """
    file, warehouse = _local(target)
    changed: dict[CatalogEntry, Path | None] = {}
    former = str(warehouse)
    for entry in entries(file, catalog):
        folder = warehouse / entry.namespace / entry.name
        found = _metadata_of(entry, folder)
        if found is None and not entry.is_view:
            raise _not_here(entry, folder)
        home = None if found is None else at_home(found, folder)
        if home is None or plain_path(entry.metadata) != home:
            changed[entry] = home
            former = _former(entry) or former
    if changed:
        change_entries(file, catalog, changed, (former, str(warehouse)))
    return _told(changed)


def repair(target: ResolvedTarget, catalog: str) -> Adopted:
    """Register the tables of a warehouse again where its catalog is lost or damaged.

    A damaged catalog is put aside. Of a table whose metadata is missing the newest one that is
    there takes its place. Raises what `adopt` raises.
    """
    file, warehouse = _local(target)
    aside: Path | None = None
    try:
        known = entries(file, catalog)
    except PolynyaError as error:
        if error.code != "POLYNYA-LAKE-040":
            raise
        known, aside = [], _put_aside(file)
    if known:
        return adopt(target, catalog)
    found = [
        CatalogEntry(namespace, name, str(at_home(metadata, warehouse / namespace / name)))
        for namespace, name, metadata in tables_in(warehouse)
    ]
    if found:
        new_catalog(file, catalog, found)
    return Adopted(tables=tuple(one.full_name for one in found), aside=aside)


def _local(target: ResolvedTarget) -> tuple[Path, Path]:
    file, warehouse = catalog_file(target), target.warehouse
    if file is None or not isinstance(warehouse, Path):
        raise OperationError(
            "POLYNYA-LAKE-046",
            f"the catalog of the target {target.name} is no file on this machine",
            where=f"target {target.name}",
            state="nothing was changed",
            fix="see to the catalog with the tools of its own",
        )
    return file, warehouse


def _metadata_of(entry: CatalogEntry, folder: Path) -> Path | None:
    """The metadata file that an entry names, in the folder where it should be."""
    same = folder / "metadata" / Path(entry.metadata).name
    return same if same.is_file() else newest_metadata(folder)


def _former(entry: CatalogEntry) -> str | None:
    """The warehouse that an entry was in: above its namespace, name and folder of metadata."""
    path = plain_path(entry.metadata)
    return None if path is None or len(path.parents) < 4 else str(path.parents[3])


def _put_aside(file: Path) -> Path:
    places = (file.with_name(f"{file.name}.damaged-{number}") for number in count(1))
    return file.rename(next(place for place in places if not place.exists()))


def _told(changed: dict[CatalogEntry, Path | None]) -> Adopted:
    def names(chosen: Sequence[CatalogEntry]) -> tuple[str, ...]:
        return tuple(one.full_name for one in chosen)

    kept = [one for one, home in changed.items() if home is not None]
    return Adopted(
        tables=names([one for one in kept if not one.is_view]),
        views=names([one for one in kept if one.is_view]),
        dropped=names([one for one, home in changed.items() if home is None]),
    )


def _not_here(entry: CatalogEntry, folder: Path) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-044",
        f"the table {entry.full_name} is not in this warehouse",
        where=str(folder),
        why=f"the catalog has it at {entry.metadata}",
        state="nothing was changed",
        fix="copy the whole warehouse; or set `warehouse` of the target to where the tables are",
    )
