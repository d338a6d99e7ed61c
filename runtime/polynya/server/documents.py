"""The documents of a project: read with their versions, changed one at a time.

The files are the truth. A change is checked with the whole project before it is written, and a
reader finds the file from before or the new one.
"""

from __future__ import annotations

import difflib
import os
import re
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from polynya.model.automations import load_automations
from polynya.model.config.access import ACCESS_FILES
from polynya.model.error_catalogue.access import ACCESS_CHANGE_REFUSED
from polynya.model.error_catalogue.server import (
    DOCUMENT_CHANGED,
    DOCUMENT_PATH_REFUSED,
    NO_SUCH_RESOURCE,
    REQUEST_INVALID,
)
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.loader import load_project
from polynya.model.names import shown
from polynya.server.configuration import FollowedConfiguration
from polynya.store.configuration import FolderSource, project_files
from polynya.store.project_archive import secrets_in

#: A file of the project folder, or of one folder in it; none that is hidden.
_NAME: Final = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)?[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_MOST_NAME: Final = 200


class DocumentPlace(StrEnum):
    """Which documents: those of the project folder, or those in force in its bucket."""

    PROJECT = "project"
    BUCKET = "bucket"


@dataclass(frozen=True, slots=True)
class ProjectDocument:
    """A document and its version; `stored` is that of its object in a bucket."""

    path: str
    content: bytes
    stored: str | None = None

    @property
    def etag(self) -> str:
        """The version, as `ETag` and `If-Match` have it."""
        return f'"{sha256(self.content).hexdigest()[:32]}"'


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """What a change does: the lines that differ, and what it makes wrong."""

    after: ProjectDocument | None
    diff: str
    errors: tuple[ConfigError, ...]


#: By path, a document as it is and the content that it gets; None: none.
_Changes: TypeAlias = Mapping[str, tuple[ProjectDocument | None, bytes | None]]


class ProjectDocuments:
    """The documents of a project folder, and of the bucket that it follows, if it does."""

    def __init__(
        self, root: Path, target: str | None, followed: FollowedConfiguration | None = None
    ) -> None:
        self._root, self._target, self._followed = root, target, followed
        self._lock = threading.Lock() if followed is None else followed.lock

    def all(self) -> list[ProjectDocument]:
        """Every document, by path."""
        files = FolderSource(self._root).read().files
        return [
            ProjectDocument(path, content)
            for path, content in sorted(files.items())
            if path not in ACCESS_FILES
        ]

    def find(self, path: str) -> ProjectDocument | None:
        """One document; None where the project has no such one."""
        if path in ACCESS_FILES or path not in set(project_files(self._root)):
            return None
        return ProjectDocument(path, (self._root / path).read_bytes())

    def read(self, path: str) -> ProjectDocument:
        """One document. Raises ConfigError where the project has no such one."""
        found = self.find(path)
        if found is None:
            raise NO_SUCH_RESOURCE(what=f"document {shown(path)}")
        return found

    def change(
        self, path: str, content: bytes | None, version: str | None, *, write: bool
    ) -> DocumentChange:
        """Replace a document, make it, or remove it where `content` is None.

        `version` is that of the document as the change found it, None for one that is new. Without
        `write` nothing is written.

        Raises:
            ConflictError: the document has another version.
            ConfigErrors: the project would have errors that it has not now; nothing was written.
            ConfigError: the path is none of a project, or the content has a secret.
        """
        if path in ACCESS_FILES:
            raise ACCESS_CHANGE_REFUSED(
                where=path, reason="its own route is `/api/v1/access`, for owners"
            )
        if len(path) > _MOST_NAME or _NAME.fullmatch(path) is None:
            raise DOCUMENT_PATH_REFUSED(path=shown(path))
        with self._lock:
            before = self.find(path)
            if (before and before.etag) != version:
                raise DOCUMENT_CHANGED(path=path)
            return self._changed({path: (before, content)}, write=write)

    def add(self, contents: Mapping[str, bytes], *, replace: bool, write: bool) -> DocumentChange:
        """Add several documents, all or none; `after` of the change is None.

        Without `replace` one that is there already is a ConflictError. A process that is killed
        in the middle leaves each file whole, but not every one of them. Raises as `change`.
        """
        for path in contents:
            if len(path) > _MOST_NAME or _NAME.fullmatch(path) is None:
                raise DOCUMENT_PATH_REFUSED(path=shown(path))
        with self._lock:
            before = {path: self.find(path) for path in contents}
            for path, found in before.items():
                if found is not None and not replace:
                    raise DOCUMENT_CHANGED(path=path)
            changes = {path: (before[path], content) for path, content in contents.items()}
            return self._changed(changes, write=write)

    def _changed(self, changes: _Changes, *, write: bool) -> DocumentChange:
        """Check changes with the whole project, and write them if they make no error."""
        for path, (_, content) in changes.items():
            if content is not None:
                if secrets := secrets_in(path, content):
                    raise ConfigErrors(secrets)
                _text(content)
        change = self._checked(changes)
        if write:
            if change.errors:
                raise ConfigErrors(change.errors)
            for path, (before, content) in changes.items():
                if self._followed is not None:
                    self._followed.write(path, content, None if before is None else before.content)
                self._write(path, before, content)
        return change

    def _checked(self, changes: _Changes) -> DocumentChange:
        with tempfile.TemporaryDirectory(prefix="polynya-change-") as name:
            folder = Path(name)
            for one in self.all():
                _put(folder, one.path, one.content)
            known = {_error(one) for one in _errors(folder, self._target)}
            for path, (_, content) in changes.items():
                if content is None:
                    (folder / path).unlink(missing_ok=True)
                else:
                    _put(folder, path, content)
            files = set(project_files(folder))
            for path, (_, content) in changes.items():
                if content is not None and path not in files:
                    raise DOCUMENT_PATH_REFUSED(path=shown(path))
            found = _errors(folder, self._target)
        errors = tuple(one for one in found if _error(one) not in known)
        after, diffs = None, []
        for path, (before, content) in changes.items():
            new = None if content is None else ProjectDocument(path, content)
            diffs.append(_diff(path, before, new))
            after = new if len(changes) == 1 else None
        return DocumentChange(after, "".join(diffs), errors)

    def _write(self, path: str, before: ProjectDocument | None, content: bytes | None) -> None:
        """Write a document, or remove it, that was `before` when its change was checked."""
        del before  # The lock holds others of this server off, and no file has a version.
        place = self._root / path
        if not place.resolve().is_relative_to(self._root.resolve()):
            raise DOCUMENT_PATH_REFUSED(path=shown(path))
        if content is None:
            place.unlink(missing_ok=True)
            return
        place.parent.mkdir(exist_ok=True)
        partial = place.with_name(f".{place.name}.{os.getpid()}.new")
        partial.write_bytes(content)
        partial.replace(place)


def _put(folder: Path, path: str, content: bytes) -> None:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def _errors(folder: Path, target: str | None) -> tuple[ConfigError, ...]:
    try:
        project = load_project(folder, target, tolerant=True)
        return (*project.errors, *load_automations(project)[1])
    except ConfigErrors as errors:
        return errors.errors
    except ConfigError as error:
        return (error,)


def _error(error: ConfigError) -> tuple[str, str, str | None]:
    """What tells an error from others; its line moves with edits above it."""
    place = (error.where or "").partition(":")[0]
    return error.code, error.message, place


def _diff(path: str, before: ProjectDocument | None, after: ProjectDocument | None) -> str:
    old = "" if before is None else _text(before.content)
    new = "" if after is None else _text(after.content)
    lines = difflib.unified_diff(
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        "/dev/null" if before is None else f"a/{path}",
        "/dev/null" if after is None else f"b/{path}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise REQUEST_INVALID(reason=f"a document is UTF-8 text: {error}") from error
