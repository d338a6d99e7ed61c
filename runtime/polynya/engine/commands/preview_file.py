"""A preview of one file, wherever it is, as if it had just landed for a task. It is only read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from polynya.formats.files import glob_pattern, relative_to
from polynya.formats.registry import format_of
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.task import StorageTask
from polynya.model.error_catalogue.configuration import (
    FILE_NOT_PREVIEWABLE,
    SEVERAL_DATASETS_READ_FILE,
)
from polynya.model.errors import ConfigError
from polynya.model.formats import rules_of
from polynya.model.names import Location
from polynya.store.object_store import LocalObjectStore, ObjectInfo

#: Folders above a file that may say which table it belongs to: schema and table, or both in one.
_MOST_FOLDERS: Final = 2
#: Suffix of a file that describes another file of the same name.
_COMPANION_SUFFIX: Final = ".dfm"


@dataclass(frozen=True, slots=True)
class FileConsumer:
    """What may read a file: a declared dataset, or a task that discovers its tables (None)."""

    task: StorageTask
    dataset: ResolvedDataset | None = None

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.task.name if self.dataset is None else self.dataset.relations.current

    def takes(self, path: str) -> bool:
        """Whether a path of the landing zone is one of its files."""
        folder = self.task.landing.path
        if not path.startswith(f"{folder}/") or self.dataset is None:
            return path.startswith(f"{folder}/")
        landing = self.dataset.landing
        globs = (landing.glob, landing.initial_load)
        relative = relative_to(folder, path)
        return any(glob and glob_pattern(glob).fullmatch(relative) for glob in globs)


@dataclass(frozen=True, slots=True)
class PreviewFile:
    """A file at the path that it would have in a landing zone, with the task that reads it."""

    reader: FileConsumer
    task: StorageTask
    store: LocalObjectStore
    files: tuple[ObjectInfo, ...]


def preview_file(readers: Sequence[FileConsumer], file: Path, landing: Location) -> PreviewFile:
    """Find the dataset that reads a file, and the path that the file would have.

    Raises ConfigError when there is no such file, nothing reads it, or several datasets may.
    """
    if not file.is_file():
        raise _unusable(file, "there is no such file")
    path = file.resolve()
    inside = isinstance(landing, Path) and path.is_relative_to(landing.resolve())
    if inside and isinstance(landing, Path):
        relative = path.relative_to(landing.resolve()).as_posix()
        taking = [reader for reader in readers if reader.takes(relative)]
        reader = _one_of(taking or readers, file)
        if reader in taking:
            store = LocalObjectStore(landing)
            return PreviewFile(reader, reader.task, store, _with_companion(store, path))
    return _elsewhere(_one_of(readers, file), path)


def _one_of(readers: Sequence[FileConsumer], file: Path) -> FileConsumer:
    if len(readers) == 1:
        return readers[0]
    if not readers:
        raise _unusable(file, "the project has no dataset that could read it")
    raise SEVERAL_DATASETS_READ_FILE(
        where=str(file),
        file=file.name,
        datasets=", ".join(sorted(reader.name for reader in readers)),
    )


def _elsewhere(reader: FileConsumer, path: Path) -> PreviewFile:
    """A file outside of the landing zone: the folders above it take the place of the task's."""
    finds_tables = rules_of(reader.task.landing.format).finds_tables
    shares = rules_of(reader.task.landing.format).shares_files
    depths = range(1, _MOST_FOLDERS + 1) if finds_tables and not shares else (0,)
    for depth in depths:
        if len(path.parents) < depth + 2:
            break
        folder = path.parents[depth]
        store = LocalObjectStore(folder.parent)
        moved = reader.task.landing.model_copy(update={"path": folder.name})
        task = reader.task.model_copy(update={"landing": moved})
        files = _with_companion(store, path)
        folders = format_of(task).tables(files)
        if depth == 0 or folders.tables or folders.waiting:
            return PreviewFile(reader, task, store, files)
    raise _unusable(path, "the folders above it name no source table that the task takes")


def _with_companion(store: LocalObjectStore, path: Path) -> tuple[ObjectInfo, ...]:
    stem = path.name.partition(".")[0]
    beside = path.with_name(f"{stem}{_COMPANION_SUFFIX}")
    files = [path, *([beside] if beside.is_file() and beside != path else [])]
    return tuple(_info(store, files))


def _info(store: LocalObjectStore, files: Iterable[Path]) -> Iterable[ObjectInfo]:
    for file in files:
        yield ObjectInfo(file.relative_to(store.root).as_posix(), file.stat().st_size)


def _unusable(file: Path, reason: str) -> ConfigError:
    return FILE_NOT_PREVIEWABLE(where=str(file), reason=reason)
