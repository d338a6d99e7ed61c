"""The metadata of a table in the folder to which the table was moved or copied.

Iceberg writes absolute paths: into the metadata, the lists of manifests, the manifests, and into
files of position deletes. Those of the current snapshot are written again beside the old ones, with
the paths of the present folder; data files stay as they are. Earlier snapshots are left behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from polynya.lake.warehouse.on_disk import plain_path, read_metadata, version_of
from polynya.model.errors import OperationError

_POSITION_DELETES: Final = 1
_GONE: Final = 2
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
        found, root = plain_path(location), plain_path(self.before)
        if found is None or root is None or not found.is_relative_to(root):
            raise OperationError(
                "POLYNYA-LAKE-044",
                "a file of the table lies outside of its folder",
                where=location,
                why=f"the table is in {self.after}",
                state="nothing was changed",
                fix="copy the whole warehouse to where it was, and set `warehouse` to that folder",
            )
        return str(self.after / found.relative_to(root))


def at_home(metadata: Path, folder: Path) -> Path:
    """The metadata file of a table or view in its folder: the given one if it was never moved.

    Otherwise a new one, which nothing refers to before a catalog does. Raises OperationError when
    a file is not where it should be.
    """
    said = read_metadata(metadata)
    if said is None:
        raise _not_there(metadata)
    if plain_path(said["location"]) == folder:
        return metadata
    move = _Move(said["location"].rstrip("/"), folder)
    said["location"] = str(folder)
    if "table-uuid" in said:
        _move_table(said, move)
    file = metadata.with_name(f"{version_of(metadata) + 1:05d}-{uuid4()}.metadata.json")
    file.write_text(json.dumps(said), encoding="utf-8")
    return file


def _move_table(said: _Record, move: _Move) -> None:
    """Leave the current snapshot in the metadata of a table, with all its files in the folder."""
    current = said.get("current-snapshot-id", -1)
    kept = [one for one in said.get("snapshots", ()) if one["snapshot-id"] == current]
    for snapshot in kept:
        listed = Path(move.path(snapshot["manifest-list"]))
        snapshot["manifest-list"] = str(
            _written_again(listed, lambda one: _moved_manifest(one, move))
        )
    said["snapshots"] = kept
    said["snapshot-log"] = [
        one for one in said.get("snapshot-log", ()) if one["snapshot-id"] == current
    ]
    said["refs"] = {name: one for name, one in said.get("refs", {}).items() if name == "main"}
    # The clean-up of old metadata would otherwise delete that of the table that was copied.
    said["metadata-log"] = []
    said["statistics"], said["partition-statistics"] = [], []


def _moved_manifest(listed: _Record, move: _Move) -> _Record:
    manifest = Path(move.path(listed["manifest_path"]))
    written = _written_again(manifest, lambda one: _moved_entry(one, move))
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
        if entry["status"] != _GONE:
            written = _moved_deletes(Path(file["file_path"]), move)
            file["file_path"] = str(written)
            file["file_size_in_bytes"] = written.stat().st_size
            file["split_offsets"] = None
    return {**entry, "data_file": file}


def _without_path(bounds: list[_Record] | None) -> list[_Record] | None:
    """Bounds without those of the path, which would be of the former folder."""
    if bounds is None:
        return None
    return [one for one in bounds if one["key"] != _FILE_PATH_ID]


def _moved_deletes(file: Path, move: _Move) -> Path:
    """Position deletes that name the data files where they are now."""
    try:
        rows = pq.read_table(file)
    except OSError as error:
        raise _not_there(file) from error
    place = rows.column_names.index("file_path")
    named = rows.column(place).to_pylist()
    moved = {one: move.path(one) for one in set(named)}
    paths = pa.array([moved[one] for one in named], pa.string())
    written = _beside(file)
    pq.write_table(rows.set_column(place, rows.schema.field(place), paths), written)
    return written


def _written_again(file: Path, change: Callable[[_Record], _Record]) -> Path:
    """An Avro file of Iceberg beside another one, with its records changed."""
    try:
        with file.open("rb") as source:
            reader = fastavro.reader(source)
            said = dict(reader.metadata)
            records = [change(dict(record)) for record in reader if isinstance(record, dict)]
    except FileNotFoundError as error:
        raise _not_there(file) from error
    schema = json.loads(said["avro.schema"])
    kept = {name: value for name, value in said.items() if not name.startswith("avro.")}
    written = _beside(file)
    with written.open("xb") as out:
        fastavro.writer(out, schema, records, codec=said.get("avro.codec", "null"), metadata=kept)
    return written


def _beside(file: Path) -> Path:
    return file.with_name(f"{uuid4()}-adopted{file.suffix}")


def _not_there(file: Path) -> OperationError:
    return OperationError(
        "POLYNYA-LAKE-043",
        "a file of the table is missing, or is not whole",
        where=str(file),
        state="nothing was changed",
        fix="copy the whole warehouse again, while nothing works in it",
    )
