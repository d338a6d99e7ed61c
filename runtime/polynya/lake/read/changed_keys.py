"""The keys of the rows that a live view of a table may show otherwise than in an older snapshot.

Every change of a record writes a row: an event, a version, or the place of a row that goes. So the
keys in the files that the snapshots in between have added or removed, and at the places that they
have deleted, are a superset of the keys that changed. Steps that change no row of the live views,
such as applies and maintenance, are left out (`commits.changes_rows`). Of a step that has written a
row of each record that it changed, only these rows are read (`WRITES_ALL_KEYS`): the places
that it has deleted may be in all data files of the table.

So it is with tables that others maintain, whose rows are those of all of their files: only
snapshots that say that they replace files by equal ones are left out. Files of deletes count when
they go, too, and those that delete rows by the values of their keys name these keys.

Only the columns of the key are read, by Arrow, from these files alone. Where that does not tell the
keys, the answer is the reason, as a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.apply.collected import WRITES_ALL_KEYS
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.arrow_columns import arrow_type
from polynya.lake.iceberg.deletes import deleted_places, positions
from polynya.lake.iceberg.files import DeleteFile
from polynya.lake.iceberg.reading import TableFile, each_read, is_read_by, stored_file
from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.read.commits import changes_rows, snapshots_since
from polynya.lake.read.committed import blob_of, records
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import shown
from polynya.store.data_files import DataFiles

#: Partitions whose rows the live views are made of.
_SHOWN: Final = frozenset(map(str, (Partition.CHANGES, Partition.CURRENT, Partition.PRIOR)))
_ADDED, _DELETED = 1, 2
_POSITION_DELETES, _EQUALITY_DELETES = 1, 2
#: What a manifest holds, if not data files.
_OF_DELETES = 1
#: What is raised by files that are not read, and by those of others that do not follow Iceberg.
_UNREAD: Final = (OSError, pa.ArrowInvalid)
_UNREAD_OF_OTHERS: Final = (*_UNREAD, EOFError, LookupError, TypeError, ValueError)
#: More rows than this are not looked through for their keys: all is computed sooner.
MOST_ROWS: Final = 20_000_000


def may_change(summary: Mapping[str, Any]) -> bool:
    """Whether a snapshot of a table of others, by its summary, may show other rows."""
    return summary.get("operation") != "replace"


@dataclass(slots=True)
class _Changes:
    """What some snapshots did: data files that they added or removed, and delete files they added.

    `files` has the number of rows of each data file by its location. `keys` are the field ids of
    the key of a table of others, None for an own one.
    """

    keys: frozenset[int] | None = None
    files: dict[str, int] = field(default_factory=dict)
    deletes: dict[tuple[str, int], DeleteFile] = field(default_factory=dict)
    foreign: str | None = None

    @property
    def rows(self) -> int:
        """Rows of the data files."""
        return sum(self.files.values())


def changed_keys(table: IcebergTable, shape: Shape, before: int, now: int) -> pa.Table | str:
    """The keys of the rows that may differ between two snapshots: the columns `shape.touching`.

    A key occurs once or oftener. The reason, as a sentence, where they are not known.
    """
    reason = why_unknown(shape)
    if reason is not None:
        return reason
    columns = {column["name"]: column for column in table.columns()}
    keys = [columns[name] for name in shape.touching]
    return _changed(table, _Changes(), keys, (before, now), columns[h.OPERATION])


def changed_keys_of_others(
    table: IcebergTable, keys: Sequence[str], before: int, now: int
) -> pa.Table | str:
    """The same of a table that others maintain, by the columns that tell its rows apart."""
    metadata = table.kept_metadata()
    columns, others = columns_at(metadata, now), columns_at(metadata, before)
    if columns is None or others is None:
        return "the snapshot that it has read has expired"
    if columns != others:
        return "its columns changed"
    named = {column["name"]: column for column in columns}
    if unknown := [name for name in keys if arrow_type(named.get(name, {}).get("type")) is None]:
        return f"its key {shown(unknown[0])} has a type that is not read"
    found = [named[name] for name in keys]
    changes = _Changes(frozenset(column["id"] for column in found))
    return _changed(table, changes, found, (before, now), None)


def columns_at(metadata: Mapping[str, Any], snapshot: int) -> list[dict[str, Any]] | None:
    """The columns of the rows of a snapshot; None where the metadata does not tell them."""
    numbers = {one["snapshot-id"]: one.get("schema-id") for one in metadata.get("snapshots", ())}
    schemas = {one["schema-id"]: one["fields"] for one in metadata.get("schemas", ())}
    return schemas.get(numbers.get(snapshot))


def _changed(
    table: IcebergTable,
    changes: _Changes,
    keys: Sequence[Mapping[str, Any]],
    versions: tuple[int, int],
    operation: Mapping[str, Any] | None,
) -> pa.Table | str:
    """The keys that changed between two snapshots, or why they are not known.

    `operation` is the column whose values tell that a table was truncated, if it has one.
    """
    store, metadata = table.reach().reads, table.kept_metadata()
    if isinstance(store, str):
        return store
    own = changes.keys is None
    snapshots = snapshots_since(metadata, *versions, changes_rows if own else may_change)
    if isinstance(snapshots, str):
        return snapshots
    unread = _UNREAD if own else _UNREAD_OF_OTHERS
    try:
        return _keys_of(store, changes, keys, snapshots, operation)
    except unread as error:
        return f"a file was not read: {error}"


def why_unknown(shape: Shape) -> str | None:
    """Why the keys of changed rows of an own table are never known; None where they may be."""
    if not shape.keys:
        return "it has no keys"
    if shape.links:
        return "its records change their keys"
    if shape.expired is not None:
        return "rows leave it by their age"
    return None


def _keys_of(
    store: DataFiles,
    changes: _Changes,
    keys: Sequence[Mapping[str, Any]],
    snapshots: Sequence[Mapping[str, Any]],
    operation: Mapping[str, Any] | None,
) -> pa.Table | str:
    for snapshot in snapshots:
        _add(changes, store, snapshot)
    if changes.foreign is not None:
        return changes.foreign
    if changes.rows > MOST_ROWS:
        return f"{changes.rows:,} of its rows were written since"
    read = each_read(
        store, lambda path: _of_file(store, path, keys, operation), sorted(changes.files)
    )
    truncated = next((part for part in read if isinstance(part, str)), None)
    if truncated is not None:
        return truncated
    parts = [part for part in read if not isinstance(part, str)]
    parts += _of_deletes(store, changes, keys)
    none = pa.table({column["name"]: pa.nulls(0, arrow_type(column["type"])) for column in keys})
    # A file that is older than a wider type of a key has it as it was.
    whole = pa.concat_tables([none, *parts], promote_options="permissive")
    return whole.group_by(whole.column_names).aggregate([])


def _add(changes: _Changes, store: DataFiles, snapshot: Mapping[str, Any]) -> None:
    """What one snapshot did, by its manifests."""
    number = snapshot["snapshot-id"]
    if "manifest-list" not in snapshot:
        raise OSError("a snapshot has no list of its manifests")
    # Nobody but a process of ours tells that of a table whose steps are ours.
    written = changes.keys is None and WRITES_ALL_KEYS in snapshot.get("summary", {})
    statuses = {_ADDED} if written else {_ADDED, _DELETED}
    for manifest in records(store, snapshot["manifest-list"]):
        of_deletes = manifest.get("content") == _OF_DELETES
        if manifest["added_snapshot_id"] != number or (written and of_deletes):
            continue
        for entry in records(store, manifest["manifest_path"]):
            made_by = entry.get("snapshot_id")
            if entry["status"] in statuses and made_by in {None, number}:
                _add_entry(changes, entry["status"], entry["data_file"])


def _add_entry(changes: _Changes, status: int, file: Mapping[str, Any]) -> None:
    path, content = str(file["file_path"]), int(file.get("content") or 0)
    of_others = changes.keys is not None
    if content == _EQUALITY_DELETES:
        if changes.keys is not None and changes.keys <= set(file.get("equality_ids") or ()):
            changes.files[path] = int(file["record_count"])
        else:
            changes.foreign = "another engine deleted rows of it by their values"
    elif content == _POSITION_DELETES:
        # One that is removed was taken over by another one, or named files that went.
        if status == _ADDED or of_others:
            blob = blob_of(file)
            touched = () if blob is None else (blob.data_file,)
            deletes = DeleteFile(None, path, touched, blob)
            changes.deletes[deletes.place] = deletes
    elif of_others or file["partition"].get(h.PARTITION) in _SHOWN:
        changes.files[path] = int(file["record_count"])


def _of_file(
    store: DataFiles,
    path: str,
    keys: Sequence[Mapping[str, Any]],
    operation: Mapping[str, Any] | None,
) -> pa.Table | str:
    """The keys in a data file; the reason why they are not all that it changes."""
    if operation is None:
        file = _opened(store, path, keys, of_others=True)
        return pa.concat_tables(
            [file.empty(keys), *(file.read(group, keys) for group in file.groups)]
        )
    file = _opened(store, path, [*keys, operation])
    parts = []
    for group in file.groups:
        rows = file.read(group, [*keys, operation])
        # It concerns every record. A record that was stored has another operation.
        if pc.any(pc.equal(rows.column(h.OPERATION), "T")).as_py():
            return "it was truncated"
        parts.append(rows.drop_columns([h.OPERATION]))
    return pa.concat_tables(parts) if parts else file.empty(keys)


def _of_deletes(
    store: DataFiles, changes: _Changes, keys: Sequence[Mapping[str, Any]]
) -> list[pa.Table]:
    """The keys at places that were deleted."""
    deletes, of_others = list(changes.deletes.values()), changes.keys is not None
    named = deleted_places(store, [], deletes, keep=True)
    if named is None:
        raise OSError("a file of deletes is not of Parquet")
    paths = sorted(set().union(*(names for _, names in named.named)) - changes.files.keys())
    deleted = deleted_places(store, paths, deletes, keep=True)
    assert deleted is not None, "they were read before"
    parts = []
    for number, path in enumerate(paths):
        at = pc.unique(positions(deleted.places, number))
        try:
            file = _opened(store, path, keys, of_others=of_others)
        except FileNotFoundError:
            # A delete file that goes may name files that went long before: no state shows them.
            if of_others:
                continue
            raise
        ends = [*file.starts[1:], file.footer.num_rows]
        for group, start, end in zip(file.groups, file.starts, ends, strict=True):
            inside = pc.and_(pc.greater_equal(at, start), pc.less(at, end))
            if pc.any(inside).as_py():
                rows = file.read(group, keys)
                parts.append(rows.take(pc.subtract(at.filter(inside), start)))
    return parts


def _opened(
    store: DataFiles, path: str, columns: Sequence[Mapping[str, Any]], *, of_others: bool = False
) -> TableFile:
    if not is_read_by(store, path):
        raise OSError(f"{path} is not of Parquet")
    file = stored_file(store, path)
    if not file.reads(columns):
        raise OSError(f"{path} has other types than the table")
    # The metadata may have the values of a column that a file of others lacks.
    if of_others and len(file.own(columns)) < len(columns):
        raise OSError(f"{path} lacks a column of the key")
    return file
