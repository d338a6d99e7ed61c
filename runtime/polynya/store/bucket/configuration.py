"""The files of a project as they were at one moment, wherever they are kept.

A running node reads them again and again. What one reading gives is a value: it has an identity,
can be compared with the one before and be kept on disk for a start without its source.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from polynya.model.contract.identifiers import shown
from polynya.model.contract.paths import relative_path_problem
from polynya.model.documents.yaml_reader import MAX_FILE_BYTES
from polynya.model.errors import ConfigError, PolynyaError
from polynya.model.reading.connections import CONNECTION_FOLDER, certificate_files
from polynya.model.reading.document import document_files
from polynya.model.reading.loader import PROJECT_FILES, TASK_FOLDER
from polynya.model.reading.task_test_loader import TEST_FOLDER


@dataclass(frozen=True)
class Snapshot:
    """The files of a project at one moment.

    `identity` changes when and only when the content of any file changed. `files` maps a relative
    POSIX path to its content. `revision` is that of the pushed bundle, None for a folder. `edited`
    are the files that differ from the pushed bundle by hand, () for a folder. `refused` tells of
    what lies there besides and is not used, each with the reason; it is no part of the identity.
    """

    identity: str
    files: Mapping[str, bytes]
    revision: str | None = None
    edited: tuple[str, ...] = ()
    refused: tuple[PolynyaError, ...] = ()


class ConfigurationSource(Protocol):
    """Where the files of a project come from."""

    def read(self) -> Snapshot:
        """The files as they are now.

        Raises:
            PolynyaError: nothing can be read.
        """
        ...


def identity_of(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the names and contents of files, in hex."""
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        name = path.encode("utf-8", "surrogatepass")
        # With both lengths in front no two sets of files give the same bytes.
        digest.update(f"{len(name)} {len(content)} ".encode())
        digest.update(name)
        digest.update(content)
    return digest.hexdigest()


class FolderSource:
    """A project folder: its project file, its tasks and their tests."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Snapshot:
        """The files as they are now.

        Raises:
            ConfigError: there is no such folder (POLYNYA-CFG-001), or a file of it cannot be read
                (POLYNYA-CFG-002): better none than a part.
        """
        if not self.path.is_dir():
            raise ConfigError(
                "POLYNYA-CFG-001",
                "the configuration folder is not there",
                where=str(self.path),
                fix="name the folder that holds polynya.yml",
            )
        files = {name: _content(self.path / name, name) for name in project_files(self.path)}
        return Snapshot(identity_of(files), files)


def project_files(folder: Path) -> Iterator[str]:
    """Relative paths of the files that make the project in a folder; not its data."""
    for name in PROJECT_FILES:
        if (folder / name).is_file():
            yield name
    for below in (TASK_FOLDER, CONNECTION_FOLDER, TEST_FOLDER):
        for path in document_files(folder / below):
            yield f"{below}/{path.name}"
    for path in certificate_files(folder / CONNECTION_FOLDER):
        yield f"{CONNECTION_FOLDER}/{path.name}"


def write_to(snapshot: Snapshot, folder: Path) -> None:
    """Write the files to a folder, so that a reader finds all of them or those from before.

    The folder is a symbolic link to one that is never changed once it is complete. One process
    writes; what an earlier one left unfinished is removed.

    Raises:
        ConfigError: the name of a file leaves the folder, or is that of a folder too
            (POLYNYA-CFG-011); what was there stays.
    """
    for path in snapshot.files:
        if problem := relative_path_problem(path):
            raise _refused(problem)
    folder.parent.mkdir(parents=True, exist_ok=True)
    complete = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    for path, content in snapshot.files.items():
        try:
            _write(complete / path, content)
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            shutil.rmtree(complete)
            raise _refused(f"{shown(path)} is a file and a folder") from None
    link = complete.with_suffix(".link")
    link.symlink_to(complete.name)
    link.replace(folder)
    for other in folder.parent.glob(f"{folder.name}-*"):
        if other != complete:
            shutil.rmtree(other, ignore_errors=True)


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _refused(problem: str) -> ConfigError:
    return ConfigError(
        "POLYNYA-CFG-011",
        problem,
        state="nothing of this configuration was written; the one from before is there",
        fix="remove the file where the configuration is kept",
    )


#: One byte more than a file may have: who reads the file says that it is too large.
_READ_BYTES: Final = MAX_FILE_BYTES + 1


def _content(path: Path, shown_as: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_READ_BYTES)
    except OSError as error:
        raise ConfigError(
            "POLYNYA-CFG-002",
            f"the file cannot be read: {error.strerror}",
            where=shown_as,
            state="the configuration from before stays in force",
            fix="fix its permissions",
        ) from None
