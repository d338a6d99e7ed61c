"""A Delta table that others write, as one table with versions. Needs no JVM.

The library `deltalake` reads the log, and nothing else: it gets a copy of the newest part of the
log in a local folder, so it opens no connection and looks for no credentials. The rows come from
the Parquet files that the log names, each by its path below the folder of the table.

Where a table has features whose rows these files alone do not give, it is refused by their name.

The number of a version is that of the log, behind a digest of the table's id: a table that is
created again in the same folder begins again at version 0.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from polynya.formats.records.columnar import column_types
from polynya.lake.read.parquet_folder import (
    UNREADABLE,
    FileReplacedError,
    FolderChanges,
    FolderVersion,
)
from polynya.model.config.registered import RegisteredDataset
from polynya.model.error_catalogue.registered import (
    DELTA_FEATURE_REFUSED,
    DELTA_READER_MISSING,
    REGISTERED_CHANGED,
    REGISTERED_MISSING,
    REGISTERED_UNREADABLE,
)
from polynya.model.errors import OperationError
from polynya.model.names import shown
from polynya.store.object_store import ObjectInfo, ObjectStore, checked_path

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LOG: Final = "_delta_log"
#: Files of a log: commits, and checkpoints of one or several parts or of version 2.
_LOG_FILE: Final = re.compile(r"(\d{20})\.(json|checkpoint(\.[0-9a-f.-]+)?\.(parquet|json))")
_LAST_CHECKPOINT: Final = f"{_LOG}/_last_checkpoint"
#: Bytes of a log that are read for one version, and of a commit that is looked into.
_MOST_LOG: Final = 512 * 1024 * 1024
_MOST_COMMIT: Final = 32 * 1024 * 1024
#: Commits that are looked into to see that they changed no row.
_MOST_COMMITS: Final = 100
#: Features of readers that change nothing about the rows of the files.
_PLAIN_FEATURES: Final = frozenset({"timestampNtz", "vacuumProtocolCheck", "deletionVectors"})
_VERSION_BITS: Final = 31
_VERSIONS: Final = (1 << _VERSION_BITS) - 1
#: Versions that are remembered.
_MOST_KNOWN: Final = 4


@dataclass(slots=True)
class DeltaFolder:
    """A Delta table below the root of a store."""

    store: ObjectStore
    dataset: RegisteredDataset
    _listed: tuple[tuple[str, str], ...] = ()
    _newest: FolderVersion | None = None
    _known: dict[int, FolderVersion] = field(default_factory=dict)

    def newest(self) -> FolderVersion:
        """The table as the newest commit has it.

        Raises OperationError: the folder has no log, the log cannot be read, the table has a
        feature that is not supported, or the library is missing. Raises what the store raises.
        """
        files = self._log(self._checkpoint())
        listed = tuple((file.path, file.version) for file in files)
        if self._newest is None or listed != self._listed:
            self._newest = self._read(files)
            self._listed = listed
        return self._newest

    def at(self, number: int) -> FolderVersion | None:
        """A version that can be read, as far as the log tells: its files may be gone."""
        newest = self._newest
        if newest is None or newest.number >> _VERSION_BITS != number >> _VERSION_BITS:
            return None
        if number not in self._known:
            try:
                self._read(self._log(-1), number & _VERSIONS)
            except OperationError:
                return None
        return self._known.get(number)

    def shows_same_rows(self, before: int, now: int) -> bool:
        """Whether two versions surely have the same rows: the commits between say that they do."""
        if before >> _VERSION_BITS != now >> _VERSION_BITS:
            return False
        first, last = (before & _VERSIONS) + 1, now & _VERSIONS
        if not 0 <= last - first < _MOST_COMMITS:
            return before == now
        return all(self._keeps_rows(version) for version in range(first, last + 1))

    def changes(self, before: int, now: int) -> FolderChanges | str:
        """The files that make the difference between two versions; or why they are not known."""
        old, new = self.at(before), self.at(now)
        if old is None or new is None:
            return "the version that it has read is not in its log any more"
        known = {file.path for version in (old, new) for file in version.files}
        changing = self._changing(before & _VERSIONS, now & _VERSIONS)
        # The rows of a file that came and went in between may be in one that says it changed none.
        if changing is not None and not changing <= known:
            changing = None
        return FolderChanges.between(old, new, changing)

    def batches(self, version: FolderVersion) -> Iterator[pa.RecordBatch]:
        """The rows of a version. Raises OperationError."""
        for file in version.files:
            try:
                yield from version.rows_of(self.store, file)
            except FileReplacedError as error:
                raise REGISTERED_CHANGED(where=self._name, table=self._name) from error
            except UNREADABLE as error:
                raise self._unreadable(f"{shown(file.path)}: {error}") from error

    @property
    def _name(self) -> str:
        return self.dataset.relations.current

    def _unreadable(self, reason: str) -> OperationError:
        return REGISTERED_UNREADABLE(where=self._name, table=self._name, reason=reason)

    def _feature(self, feature: str) -> OperationError:
        return DELTA_FEATURE_REFUSED(where=self._name, table=self._name, feature=feature)

    def _checkpoint(self) -> int:
        """The version of the last checkpoint, -1 without one. It is a hint that may be wrong."""
        try:
            content = self.store.read(_LAST_CHECKPOINT, _MOST_COMMIT)
            version = json.loads(content.data)["version"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return -1
        return version if isinstance(version, int) and 0 <= version < 10**20 else -1

    def _log(self, checkpoint: int) -> list[ObjectInfo]:
        """The files of the log from a checkpoint on. Raises OperationError."""
        after = f"{_LOG}/{checkpoint:020d}" if checkpoint >= 0 else ""
        found = [
            file
            for file in self.store.beginning(f"{_LOG}/", after)
            if _LOG_FILE.fullmatch(file.path.removeprefix(f"{_LOG}/"))
        ]
        has_checkpoint = any(".checkpoint." in file.path for file in found)
        if after and not has_checkpoint:
            return self._log(-1)
        if not found:
            reason = f"{shown(self.dataset.table.source)} holds no log of Delta"
            raise REGISTERED_MISSING(where=self._name, table=self._name, reason=reason)
        return found

    def _read(self, files: Sequence[ObjectInfo], version: int | None = None) -> FolderVersion:
        """A version, by default the newest, from the files of its log. Raises OperationError."""
        if sum(file.size for file in files) > _MOST_LOG:
            raise self._unreadable(
                f"the log since its last checkpoint has more than {_MOST_LOG:,} bytes"
            )
        with tempfile.TemporaryDirectory(prefix="polynya-delta-") as folder:
            log = Path(folder, _LOG)
            log.mkdir()
            try:
                for file in files:
                    data = self.store.get(file.path)
                    (log / file.path.removeprefix(f"{_LOG}/")).write_bytes(data)
            except FileNotFoundError as error:
                raise REGISTERED_CHANGED(where=self._name, table=self._name) from error
            try:
                found = self._version(_opened(folder, version))
            except (OperationError, KeyboardInterrupt, SystemExit):
                raise
            except ImportError:
                raise DELTA_READER_MISSING(where=self._name, table=self._name) from None
            # A panic of the library is no Exception.
            except BaseException as error:
                text = (str(error).strip().splitlines() or [type(error).__name__])[0]
                raise self._unreadable(f"its log: {text.replace(folder, '')[:300]}") from error
        while len(self._known) >= _MOST_KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[found.number] = found
        return found

    def _version(self, table: DeltaTable) -> FolderVersion:
        self._refuse_features(table)
        columns = column_types(pa.schema(table.schema().to_arrow()))
        added = pa.table(table.get_add_actions())
        # Statistics of large tables would take most of the memory.
        wanted = [
            name for name in ("path", "size_bytes", "partition") if name in added.column_names
        ]
        files, values = [], {}
        for one in added.select(wanted).to_pylist():
            path = self._path(one["path"])
            files.append(ObjectInfo(path, one["size_bytes"]))
            values[path] = one.get("partition") or {}
        number = _digest(str(table.metadata().id)) << _VERSION_BITS | table.version()
        form = f"Delta version {table.version()}"
        files.sort(key=lambda file: file.path)
        return FolderVersion(number, tuple(files), columns, values, form)

    def _refuse_features(self, table: DeltaTable) -> None:
        features = set(table.protocol().reader_features or ())
        if unknown := sorted(features - _PLAIN_FEATURES):
            raise self._feature(unknown[0])
        settings = table.metadata().configuration
        mode = settings.get("delta.columnMapping.mode") or "none"
        if mode != "none":
            raise self._feature(f"columnMapping ({mode})")
        if "deletionVectors" in features:
            self._refuse_deletion_vectors(table)
        types = {one.name: one.type for one in pa.schema(table.schema().to_arrow())}
        for name in table.metadata().partition_columns:
            if name in types and pa.types.is_binary(types[name]):
                raise self._feature(f"partition column {name} of binary")

    def _refuse_deletion_vectors(self, table: DeltaTable) -> None:
        """Rows that a vector deletes are still in the files."""
        try:
            count = pa.table(table.deletion_vectors()).num_rows
        except Exception as error:
            # The vectors of files are not in the copy of the log, and beside some features of its
            # own the library does not list them.
            raise self._feature("deletionVectors") from error
        if count:
            raise self._feature("deletionVectors")

    def _path(self, written: str) -> str:
        """The path of a file below the folder, from the URL in the log. Raises OperationError."""
        path = unquote(written)
        if urlsplit(written).scheme or path.startswith("/"):
            raise self._unreadable(
                f"its log names {shown(written)}, a file by a place of its own, as a shallow "
                "clone does: only files below the folder are read"
            )
        try:
            checked_path(path)
        except OperationError:
            raise self._unreadable(
                f"its log names {shown(written)}, which is not below its folder"
            ) from None
        return path

    def _changing(self, before: int, now: int) -> frozenset[str] | None:
        """The files by which commits after one up to another change rows; None: not known."""
        if not 0 < now - before <= _MOST_COMMITS:
            return None
        paths: set[str] = set()
        for version in range(before + 1, now + 1):
            actions = self._actions(version)
            if actions is None:
                return None
            for file in (file for action in actions for file in _files(action)):
                if file.get("dataChange") is not False:
                    paths.add(unquote(str(file.get("path"))))
        return frozenset(paths)

    def _keeps_rows(self, version: int) -> bool:
        """Whether a commit surely changed no row and no column."""
        actions = self._actions(version)
        return actions is not None and all(map(_is_quiet, actions))

    def _actions(self, version: int) -> list[dict[str, Any]] | None:
        """What a commit did; None where that is not known."""
        try:
            content = self.store.read(f"{_LOG}/{version:020d}.json", _MOST_COMMIT)
            actions = [json.loads(line) for line in content.data.splitlines() if line.strip()]
        except (OSError, ValueError, RecursionError):
            return None
        sound = len(content.data) < _MOST_COMMIT and all(
            isinstance(action, dict) and all(isinstance(file, dict) for file in _files(action))
            for action in actions
        )
        return actions if sound else None


def _files(action: dict[str, Any]) -> list[Any]:
    """The files that an action adds or removes."""
    return [action[kind] for kind in ("add", "remove") if kind in action]


def _is_quiet(action: dict[str, Any]) -> bool:
    if "metaData" in action or "protocol" in action:
        return False
    return all(file.get("dataChange") is False for file in _files(action))


def _digest(table: str) -> int:
    """32 bits of the id of a table."""
    return int.from_bytes(hashlib.sha256(table.encode()).digest()[:4])


def _opened(folder: str, version: int | None) -> DeltaTable:
    # Start-up time, and an extra.
    from deltalake import DeltaTable

    return DeltaTable(folder, version=version)
