"""The files of a project at one moment, from a folder or a configuration bucket.

A running node reads them again and again. One reading gives a value with an identity: it can be
compared with the reading before, and kept on disk for a start without its source.

A bucket holds a pointer, bundles and plain files. A push moves the pointer first and writes plain
files afterwards, so a reading that finds the pointer unchanged at its end saw no push in the
middle. Objects are fetched only when their version changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from polynya.model.automations import AUTOMATION_FOLDER
from polynya.model.bindings import BINDINGS_FOLDER
from polynya.model.bundle import (
    MAX_BUNDLE_BYTES,
    MAX_BYTES,
    MAX_FILES,
    MAX_POINTER_BYTES,
    InForce,
    Plain,
    Pointer,
    decode,
    in_force,
    parse_pointer,
)
from polynya.model.config.access import ACCESS_FILES
from polynya.model.documents.files import document_files, is_document
from polynya.model.documents.yaml import MAX_FILE_BYTES
from polynya.model.error_catalogue.cluster import (
    CONFIGURATION_OBJECT_DAMAGED,
    CONFIGURATION_OBJECT_REFUSED,
    CONFIGURATION_PUSH_OVERTAKEN,
)
from polynya.model.error_catalogue.configuration import (
    CONFIGURATION_FILE_UNREADABLE,
    NO_PROJECT,
    PATH_LEAVES_FOLDER,
)
from polynya.model.error_catalogue.machine import AWS_REFUSED, PATH_ESCAPES
from polynya.model.errors import ConfigError, PolynyaError
from polynya.model.loader import PROJECT_FILES, TASK_FOLDER
from polynya.model.names import is_name, relative_path_problem, shown
from polynya.model.notifications import NOTIFICATION_FOLDER
from polynya.model.project_derived import SAVED_FOLDER, SQL_FOLDER, is_query_file, query_files
from polynya.model.project_inputs import MAX_PROJECTS_DEEP, PROJECT_FOLDER
from polynya.model.project_parts import CONNECTION_FOLDER, certificate_files, is_certificate
from polynya.model.task_tests import TEST_FOLDER
from polynya.store.object_store import Content, ObjectInfo, ObjectStore


@dataclass(frozen=True)
class ConfigurationSnapshot:
    """The files of a project at one moment.

    `identity` changes when and only when the content of any file changed. `files` maps a relative
    POSIX path to its content. `revision` is that of the pushed bundle, None for a folder. `edited`
    are the files that differ from the pushed bundle by hand, () for a folder. `refused` tells of
    what lies there besides and is not used, each with the reason; it is not part of the identity.
    """

    identity: str
    files: Mapping[str, bytes]
    revision: str | None = None
    edited: tuple[str, ...] = ()
    refused: tuple[PolynyaError, ...] = ()


class ConfigurationSource(Protocol):
    """Where the files of a project come from."""

    def read(self) -> ConfigurationSnapshot:
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


def plan_fingerprint(files: Mapping[str, bytes]) -> str:
    """The identity of those files that a plan is made of: others do not decide about tables."""
    others = (AUTOMATION_FOLDER, NOTIFICATION_FOLDER, TEST_FOLDER, SAVED_FOLDER)
    return identity_of(
        {
            path: content
            for path, content in files.items()
            if path not in ACCESS_FILES and path.partition("/")[0] not in others
        }
    )


class FolderSource:
    """A project folder: its project file, its tasks and their tests."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> ConfigurationSnapshot:
        """The files as they are now.

        Raises:
            ConfigError: there is no such folder (POLYNYA-CFG-001), or a file of it cannot be read
                (POLYNYA-CFG-002): better none than a part.
        """
        if not self.path.is_dir():
            raise NO_PROJECT(
                "the configuration folder does not exist",
                where=str(self.path),
                fix="name the folder that holds polynya.yml",
            )
        files = {name: _content(self.path / name, name) for name in project_files(self.path)}
        return ConfigurationSnapshot(identity_of(files), files)


def project_files(folder: Path) -> Iterator[str]:
    """Relative paths of the files that make the project in a folder; not its data."""
    for name in _TOP_FILES:
        if (folder / name).is_file():
            yield name
    for below in _FOLDERS:
        for path in document_files(folder / below):
            yield f"{below}/{path.name}"
    for path in certificate_files(folder / CONNECTION_FOLDER):
        yield f"{CONNECTION_FOLDER}/{path.name}"
    for below in (SQL_FOLDER, SAVED_FOLDER):
        for path in query_files(folder / below):
            yield f"{below}/{path.name}"
    yield from _files_of_others(folder)


def _files_of_others(folder: Path, depth: int = 1) -> Iterator[str]:
    """The files of the projects from which transforms read, and of those that these read."""
    others = folder / PROJECT_FOLDER
    if depth > MAX_PROJECTS_DEEP or not others.is_dir():
        return
    for other in sorted(path for path in others.iterdir() if path.is_dir()):
        place = f"{PROJECT_FOLDER}/{other.name}"
        if not is_name(other.name):
            continue
        for name in PROJECT_FILES:
            if (other / name).is_file():
                yield f"{place}/{name}"
        for below in _FOLDERS_OF_OTHERS:
            for path in document_files(other / below):
                yield f"{place}/{below}/{path.name}"
        for path in query_files(other / SQL_FOLDER):
            yield f"{place}/{SQL_FOLDER}/{path.name}"
        for name in _files_of_others(other, depth + 1):
            yield f"{place}/{name}"


def write_to(snapshot: ConfigurationSnapshot, folder: Path) -> None:
    """Write the files to a folder, so that a reader finds all of them or those from before.

    The folder is a symbolic link to one that is never changed once it is complete. One process
    writes; what an earlier one left unfinished is removed.

    Raises:
        ConfigError: the name of a file leaves the folder, or is that of a folder too
            (POLYNYA-CFG-011); what was there stays.
    """
    for path in snapshot.files:
        if problem := relative_path_problem(path):
            raise _refused_folder(problem)
    folder.parent.mkdir(parents=True, exist_ok=True)
    complete = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    for path, content in snapshot.files.items():
        try:
            _write(complete / path, content)
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            shutil.rmtree(complete)
            raise _refused_folder(f"{shown(path)} is a file and a folder") from None
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


def _refused_folder(problem: str) -> ConfigError:
    return PATH_LEAVES_FOLDER(
        problem,
        state="nothing of this configuration was written; the previous one is kept",
        fix="remove the file where the configuration is kept",
    )


#: One byte more than a file may have: the reader of the file reports that it is too large.
_READ_BYTES: Final = MAX_FILE_BYTES + 1


def _content(path: Path, shown_as: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_READ_BYTES)
    except OSError as error:
        raise CONFIGURATION_FILE_UNREADABLE(
            where=shown_as,
            state="the previous configuration stays in force",
            fix="fix its permissions",
            reason=error.strerror,
        ) from None


#: The folders of a project whose files make its configuration.
_TOP_FILES: Final = (*PROJECT_FILES, *ACCESS_FILES)
_FOLDERS: Final = (
    TASK_FOLDER, AUTOMATION_FOLDER, CONNECTION_FOLDER, BINDINGS_FOLDER, TEST_FOLDER,
    NOTIFICATION_FOLDER,
)  # fmt: skip
#: Those that say where the tables of another project are.
_FOLDERS_OF_OTHERS: Final = (TASK_FOLDER, CONNECTION_FOLDER, BINDINGS_FOLDER)
POINTER: Final = "pushed.json"
CURRENT: Final = "current"
#: Most objects below `current/` that are looked at.
MAX_LISTED_OBJECTS: Final = 10_000

_ATTEMPTS: Final = 5
#: Refused objects that are named one by one; the others are only counted.
_MAX_NAMED_OBJECTS: Final = 20


def bundle_path(revision: str) -> str:
    """Where the bundle of a revision lies."""
    return f"bundles/{revision}.json"


def plain_path(path: str) -> str:
    """Where the plain file lies."""
    return f"{CURRENT}/{path}"


@dataclass(frozen=True, slots=True)
class BucketState:
    """A bucket at one moment.

    `pointer` is None, and its `version` too, when nothing was ever pushed. `refused` are objects
    below `current/` that are not used, each with the reason.
    """

    pointer: Pointer | None
    version: str | None
    pushed: Mapping[str, bytes]
    overtaken: Mapping[str, bytes] | None
    plain: Mapping[str, Plain]
    refused: tuple[PolynyaError, ...]

    @property
    def bucket(self) -> InForce:
        """What is in force."""
        replaces = self.pointer.replaces if self.pointer else {}
        return in_force(self.pushed, self.plain, replaces, self.overtaken)


class BucketReader:
    """Reads a bucket again and again. `name` is how messages call it."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        self.store = store
        self.name = name
        self._pointer: Content | None = None
        self._bundles: dict[str, Mapping[str, bytes]] = {}
        self._plain: Mapping[str, Plain] = {}

    def read(self) -> BucketState:
        """The bucket as it is now.

        Raises:
            OperationError: pointer or bundle are damaged (POLYNYA-BKT-004).
            ConflictError: it changed all the time (POLYNYA-BKT-001).
            DependencyError: it cannot be reached.
        """
        for _ in range(_ATTEMPTS):
            before, self._pointer = self._pointer or self._read_pointer(), None
            pointer = parse_pointer(before.data) if before else None
            pushed, overtaken = self._read_bundles(pointer)
            refused: list[PolynyaError] = []
            plain = self._read_plain(pushed, refused)
            # Only a reading that came this far is gone on from.
            self._pointer = self._read_pointer()
            if _version(self._pointer) == _version(before):
                return BucketState(
                    pointer, _version(before), pushed, overtaken, plain, tuple(refused)
                )
        raise CONFIGURATION_PUSH_OVERTAKEN(
            "the configuration was pushed repeatedly while it was read",
            where=self.name,
            state="the configuration that was read last stays in force",
            fix="retry in a moment",
        )

    def _read_pointer(self) -> Content | None:
        try:
            return self.store.read(POINTER, MAX_POINTER_BYTES)
        except FileNotFoundError:
            return None

    def _read_bundles(
        self, pointer: Pointer | None
    ) -> tuple[Mapping[str, bytes], Mapping[str, bytes] | None]:
        """The files that were pushed, and those of the push that was overtaken, if one was."""
        if pointer is None:
            return {}, None
        pushed = self._read_bundle(pointer.revision)
        overtaken = self._read_bundle(pointer.overtook) if pointer.overtook else None
        self._bundles = {pointer.revision: pushed}
        if pointer.overtook and overtaken is not None:
            self._bundles[pointer.overtook] = overtaken
        return pushed, overtaken

    def _read_bundle(self, revision: str) -> Mapping[str, bytes]:
        if revision in self._bundles:
            return self._bundles[revision]
        try:
            data = self.store.read(bundle_path(revision), MAX_BUNDLE_BYTES).data
        except FileNotFoundError:
            raise CONFIGURATION_OBJECT_DAMAGED(f"the bundle {revision[:12]} is missing") from None
        return decode(data, revision)

    def _read_plain(
        self, pushed: Mapping[str, bytes], refused: list[PolynyaError]
    ) -> Mapping[str, Plain]:
        listed = self._listed(pushed, refused)
        found: dict[str, Plain] = {}
        room = MAX_BYTES
        # What was pushed comes first, so that nothing that was added can push it out.
        for path, version in sorted(listed.items(), key=lambda item: item[0] not in pushed):
            known = self._plain.get(path)
            if known is None or known.version != version or known.content is None:
                known = self._fetched(path, version, room, refused)
            if known is not None:
                found[path] = known
                room -= len(known.content or b"")
        self._plain = found
        return found

    def _listed(self, pushed: Mapping[str, bytes], refused: list[PolynyaError]) -> dict[str, str]:
        """Versions of the files of the project among the objects."""
        # The objects may be millions, and nobody waits for them.
        objects = [
            ObjectInfo(info.path.removeprefix(f"{CURRENT}/"), info.size, info.version)
            for info in islice(self.store.list(CURRENT), MAX_LISTED_OBJECTS + 1)
        ]
        versions = {info.path: info.version for info in objects if is_project_file(info.path)}
        refused += _strangers(info.path for info in objects if info.path not in versions)
        if len(objects) > MAX_LISTED_OBJECTS:
            last = objects[-1].path
            what = f"more than {MAX_LISTED_OBJECTS} objects; none after {shown(last)} was looked at"
            refused.append(CONFIGURATION_OBJECT_REFUSED(what, where=CURRENT))
            # Nobody can say whether those are edited.
            versions |= {path: "?" for path in pushed if path > last}
        added = sorted(path for path in versions if path not in pushed)
        if excess := added[max(0, MAX_FILES - len(pushed)) :]:
            refused.append(
                CONFIGURATION_OBJECT_REFUSED(
                    f"more than {MAX_FILES} files", where=plain_path(excess[0])
                )
            )
        for path in excess:
            del versions[path]
        return versions

    def _fetched(
        self, path: str, version: str, room: int, refused: list[PolynyaError]
    ) -> Plain | None:
        """A plain file; None when it has just gone."""
        if version == "?":
            return Plain(version, None)
        if room <= MAX_FILE_BYTES:
            refused.append(
                CONFIGURATION_OBJECT_REFUSED(
                    f"more than {MAX_BYTES} bytes together", where=plain_path(path)
                )
            )
            return Plain(version, None)
        try:
            # One byte more than a file may have: its reader reports that it is too large.
            content = self.store.read(plain_path(path), MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            refused.append(
                CONFIGURATION_OBJECT_REFUSED(
                    f"it cannot be read: {error.strerror}", where=plain_path(path)
                )
            )
            return Plain(version, None)
        except PolynyaError as error:
            # One object may be encrypted with a key of its own. That all of AWS does not answer
            # says nothing about this one.
            if error.code not in {AWS_REFUSED.code, PATH_ESCAPES.code}:
                raise
            refused.append(error)
            return Plain(version, None)
        return Plain(content.version, content.data)


def is_project_file(path: str) -> bool:
    """Whether a path is that of a file which a project is made of."""
    folder, _, name = path.rpartition("/")
    if relative_path_problem(path) is not None:
        return False
    if path.startswith(f"{PROJECT_FOLDER}/"):
        return _is_file_of_other(path)
    if folder == CONNECTION_FOLDER and is_certificate(name):
        return True
    if folder in {SQL_FOLDER, SAVED_FOLDER} and is_query_file(name):
        return True
    return path in _TOP_FILES or (folder in _FOLDERS and is_document(name))


def _is_file_of_other(path: str, depth: int = 1) -> bool:
    """Whether a path is that of a file of another project, which `_files_of_others` yields."""
    parts = path.split("/", 2)
    if len(parts) < 3 or parts[0] != PROJECT_FOLDER or not is_name(parts[1]):
        return False
    inner = parts[2]
    if inner.startswith(f"{PROJECT_FOLDER}/"):
        return depth < MAX_PROJECTS_DEEP and _is_file_of_other(inner, depth + 1)
    folder, _, name = inner.rpartition("/")
    if folder == SQL_FOLDER:
        return is_query_file(name)
    return inner in PROJECT_FILES or (folder in _FOLDERS_OF_OTHERS and is_document(name))


def _strangers(paths: Iterable[str]) -> Iterator[ConfigError]:
    strangers = list(paths)
    for path in strangers[:_MAX_NAMED_OBJECTS]:
        problem = relative_path_problem(path) or "no file of a project has this name"
        yield CONFIGURATION_OBJECT_REFUSED(
            problem, where=shown(plain_path(path), limit=200).strip("`")
        )
    if rest := strangers[_MAX_NAMED_OBJECTS:]:
        yield CONFIGURATION_OBJECT_REFUSED(
            f"{len(rest)} more objects are not files of a project", where=CURRENT
        )


def _version(content: Content | None) -> str | None:
    return content.version if content else None
