"""Register the tables of a warehouse in its catalog again: after a move, a copy, or a lost catalog.

Iceberg writes absolute paths into the metadata, the manifest lists, the manifests, and files of
position deletes. In a warehouse that was moved, new versions of these files are written next to the
old ones for the current snapshot, with the paths of the new folder. Data files stay as they are,
and earlier snapshots are left behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.warehouse.catalogs import (
    CatalogEntry,
    catalog_file,
    change_entries,
    entries,
    new_catalog,
)
from polynya.lake.warehouse.check import (
    newest_metadata,
    plain_path,
    read_metadata,
    refuse_moved_away,
    tables_in,
    version_of,
)
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.warehouse import (
    CATALOG_DAMAGED,
    CATALOG_NOT_LOCAL,
    TABLE_FILE_MISSING,
    TABLE_NOT_IN_WAREHOUSE,
)
from polynya.model.errors import OperationError, PolynyaError

_POSITION_DELETES: Final = 1
_DELETED_ENTRY: Final = 2
#: Field of the data file's path in position deletes, by Iceberg's specification.
_FILE_PATH_ID: Final = 2147483546

_Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Move:
    """From the folder that the metadata names to the one that it lies in."""

    before: str
    after: Path

    def path(self, location: str) -> str:
        """A location of the table, in the present folder."""
        present, root = plain_path(location), plain_path(self.before)
        if present is None or root is None or not present.is_relative_to(root):
            raise TABLE_NOT_IN_WAREHOUSE(
                "a file of the table is outside its folder",
                where=location,
                why=f"the table is in {self.after}",
                fix="copy the whole warehouse to its former location, and set `warehouse` to that "
                "folder",
            )
        return str(self.after / present.relative_to(root))


def at_home(metadata: Path, folder: Path) -> Path:
    """The metadata file of a table or view in its folder: the given one if it was never moved.

    Otherwise a new one, which nothing refers to before a catalog does. Raises OperationError when
    a file is not where it should be.
    """
    document = read_metadata(metadata)
    if document is None:
        raise _not_there(metadata)
    if plain_path(document["location"]) == folder:
        return metadata
    move = _Move(document["location"].rstrip("/"), folder)
    document["location"] = str(folder)
    if "table-uuid" in document:
        _move_table(document, move)
    file = metadata.with_name(f"{version_of(metadata) + 1:05d}-{uuid4()}.metadata.json")
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def _move_table(document: _Record, move: _Move) -> None:
    """Leave the current snapshot in the metadata of a table, with all its files in the folder."""
    current = document.get("current-snapshot-id", -1)
    kept = [
        snapshot for snapshot in document.get("snapshots", ()) if snapshot["snapshot-id"] == current
    ]
    for snapshot in kept:
        listed = Path(move.path(snapshot["manifest-list"]))
        snapshot["manifest-list"] = str(
            _written_again(listed, lambda record: _moved_manifest(record, move))
        )
    document["snapshots"] = kept
    document["snapshot-log"] = [
        entry for entry in document.get("snapshot-log", ()) if entry["snapshot-id"] == current
    ]
    document["refs"] = {
        name: ref for name, ref in document.get("refs", {}).items() if name == "main"
    }
    # The clean-up of old metadata would otherwise delete that of the table that was copied.
    document["metadata-log"] = []
    document["statistics"], document["partition-statistics"] = [], []


def _moved_manifest(listed: _Record, move: _Move) -> _Record:
    manifest = Path(move.path(listed["manifest_path"]))
    written = _written_again(manifest, lambda record: _moved_entry(record, move))
    return {
        **listed,
        "manifest_path": str(written),
        "manifest_length": written.stat().st_size,
    }


def _moved_entry(entry: _Record, move: _Move) -> _Record:
    file = dict(entry["data_file"])
    file["file_path"] = move.path(file["file_path"])
    if file.get("referenced_data_file") is not None:
        file["referenced_data_file"] = move.path(file["referenced_data_file"])
    if file.get("content") == _POSITION_DELETES:
        for name in ("lower_bounds", "upper_bounds"):
            file[name] = _without_path(file.get(name))
        if entry["status"] != _DELETED_ENTRY:
            written = _moved_deletes(Path(file["file_path"]), move)
            file["file_path"] = str(written)
            file["file_size_in_bytes"] = written.stat().st_size
            file["split_offsets"] = None
    return {**entry, "data_file": file}


def _without_path(bounds: list[_Record] | None) -> list[_Record] | None:
    """Bounds without those of the path, which would be of the former folder."""
    if bounds is None:
        return None
    return [bound for bound in bounds if bound["key"] != _FILE_PATH_ID]


def _moved_deletes(file: Path, move: _Move) -> Path:
    """Position deletes that name the data files where they are now."""
    try:
        rows = pq.read_table(file)
    except OSError as error:
        raise _not_there(file) from error
    place = rows.column_names.index("file_path")
    named = rows.column(place).to_pylist()
    moved = {path: move.path(path) for path in set(named)}
    paths = pa.array([moved[path] for path in named], pa.string())
    written = _new_path_beside(file)
    pq.write_table(rows.set_column(place, rows.schema.field(place), paths), written)
    return written


def _written_again(file: Path, change: Callable[[_Record], _Record]) -> Path:
    """Write a changed copy of an Avro file of Iceberg next to the original."""
    try:
        with file.open("rb") as source:
            reader = fastavro.reader(source)
            header = dict(reader.metadata)
            records = [change(dict(record)) for record in reader if isinstance(record, dict)]
    except FileNotFoundError as error:
        raise _not_there(file) from error
    schema = json.loads(header["avro.schema"])
    kept = {name: value for name, value in header.items() if not name.startswith("avro.")}
    written = _new_path_beside(file)
    with written.open("xb") as out:
        fastavro.writer(out, schema, records, codec=header.get("avro.codec", "null"), metadata=kept)
    return written


def _new_path_beside(file: Path) -> Path:
    return file.with_name(f"{uuid4()}-adopted{file.suffix}")


def _not_there(file: Path) -> OperationError:
    return TABLE_FILE_MISSING(
        "a file of the table is missing or incomplete",
        where=str(file),
        state="nothing was changed",
        fix="copy the whole warehouse again while nothing works in it",
    )


@dataclass(frozen=True, slots=True)
class Adopted:
    """What changed in the catalog.

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
    Raises OperationError when a table is not in the warehouse, and ConflictError when another
    process works in it.
    """
    file, warehouse = _local(target)
    changed: dict[CatalogEntry, Path | None] = {}
    former = str(warehouse)
    for entry in entries(file, catalog):
        folder = warehouse / entry.namespace / entry.name
        metadata = _metadata_of(entry, folder)
        if metadata is None and not entry.is_view:
            raise TABLE_NOT_IN_WAREHOUSE(
                where=str(folder),
                why=f"the catalog has it at {entry.metadata}",
                table=entry.full_name,
            )
        home = None if metadata is None else at_home(metadata, folder)
        if home is None or plain_path(entry.metadata) != home:
            changed[entry] = home
            former = _former(entry) or former
    if changed:
        change_entries(file, catalog, changed, (former, str(warehouse)))
    return _adopted(changed)


def repair(target: ResolvedTarget, catalog: str) -> Adopted:
    """Register the tables of a warehouse again where its catalog is lost or damaged.

    A damaged catalog is put aside. Of a table whose metadata is missing the newest one that is
    there takes its place. Raises what `adopt` raises.
    """
    file, warehouse = _local(target)
    aside: Path | None = None
    try:
        catalog_entries = entries(file, catalog)
    except PolynyaError as error:
        if error.code != CATALOG_DAMAGED.code:
            raise
        catalog_entries, aside = [], _put_aside(file)
    if catalog_entries:
        return adopt(target, catalog)
    registered = [
        CatalogEntry(namespace, name, str(at_home(metadata, warehouse / namespace / name)))
        for namespace, name, metadata in tables_in(warehouse)
    ]
    if registered:
        new_catalog(file, catalog, registered)
    return Adopted(tables=tuple(entry.full_name for entry in registered), aside=aside)


def _local(target: ResolvedTarget) -> tuple[Path, Path]:
    file, warehouse = catalog_file(target), target.warehouse
    if file is None or not isinstance(warehouse, Path):
        raise CATALOG_NOT_LOCAL(where=f"target {target.name}", target=target.name)
    refuse_moved_away(target, warehouse)
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


def _adopted(changed: dict[CatalogEntry, Path | None]) -> Adopted:
    def names(chosen: Sequence[CatalogEntry]) -> tuple[str, ...]:
        return tuple(entry.full_name for entry in chosen)

    kept = [entry for entry, home in changed.items() if home is not None]
    return Adopted(
        tables=names([entry for entry in kept if not entry.is_view]),
        views=names([entry for entry in kept if entry.is_view]),
        dropped=names([entry for entry, home in changed.items() if home is None]),
    )
