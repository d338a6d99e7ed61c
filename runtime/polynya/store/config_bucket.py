"""The configuration bucket: push a project, and remember what was pulled.

A push uploads the bundle, moves the pointer if no other push did, then updates the plain files. A
process killed before it moved the pointer leaves the old configuration in force. One killed after
that leaves the new configuration in force, with outdated plain files that the pointer records; the
next push finishes them first.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from polynya.model.bundle import Pointer, encode, revision_of, unseen_edits
from polynya.model.error_catalogue.cluster import (
    CONFIGURATION_EDITS_UNSEEN,
    CONFIGURATION_MISSING,
    CONFIGURATION_PUSH_OVERTAKEN,
)
from polynya.model.errors import ConflictError
from polynya.store.configuration import (
    POINTER,
    BucketReader,
    BucketState,
    ConfigurationSnapshot,
    bundle_path,
    identity_of,
    plain_path,
)
from polynya.store.object_store import LocalObjectStore, ObjectStore

_GIT_TIMEOUT_SECONDS: Final = 10


def commit_of(folder: Path) -> str | None:
    """The commit of the folder's work tree, with `+` if the folder has changes.

    None when it is in no work tree, or there is no Git.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain", "--", ".")
    return commit + ("+" if changes is None or changes else "")


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            # No hook or file system monitor that a configuration in the folder names is started.
            ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


#: It belongs to one copy of the folder, so that version control should leave it out.
MEMORY_FILE: Final = ".polynya/bucket.json"

_Memory: Final = TypeAdapter(dict[str, dict[str, str]])


def recalled(folder: Path, bucket: str) -> Mapping[str, str] | None:
    """Hashes by path at the last push or pull, None when there was none."""
    return _read(folder).get(bucket)


def remember(folder: Path, bucket: str, hashes: Mapping[str, str]) -> None:
    """Keep the hashes; of other buckets everything stays."""
    memory = _read(folder) | {bucket: dict(sorted(hashes.items()))}
    LocalObjectStore(folder).put(MEMORY_FILE, _Memory.dump_json(memory, indent=1) + b"\n")


def _read(folder: Path) -> dict[str, dict[str, str]]:
    try:
        return _Memory.validate_json((folder / MEMORY_FILE).read_bytes())
    except (FileNotFoundError, ValidationError):
        # Without a memory more is protected, never less.
        return {}


class BucketSource:
    """A configuration bucket as a source of configuration."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        self._reader = BucketReader(store, name)

    def read(self) -> ConfigurationSnapshot:
        """The files in force. With nothing new it costs a listing and one small object.

        Raises:
            ConfigError: there is no configuration yet (POLYNYA-BKT-006).
            PolynyaError: what `BucketReader.read` raises.
        """
        return snapshot_of(self._reader.read(), self._reader.name)


def snapshot_of(reading: BucketState, name: str) -> ConfigurationSnapshot:
    """The files in force. Raises ConfigError when there are none (POLYNYA-BKT-006)."""
    bucket = reading.bucket
    if reading.pointer is None and not bucket.files:
        raise CONFIGURATION_MISSING(where=name)
    revision = reading.pointer.revision if reading.pointer else None
    identity, edited = identity_of(bucket.files), tuple(bucket.edits)
    return ConfigurationSnapshot(identity, bucket.files, revision, edited, reading.refused)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who pushes, when, and from which commit of Git (None: from none)."""

    who: str
    when: datetime
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did: `changed` is false when all was there already."""

    revision: str
    changed: bool
    before: str | None
    overwritten: tuple[str, ...] = ()


class ConfigBucket:
    """A configuration bucket to push into."""

    def __init__(
        self, store: ObjectStore, name: str, *, token: Callable[[], str] = lambda: uuid4().hex
    ) -> None:
        self._store = store
        self._reader = BucketReader(store, name)
        self._token = token
        self.name = name

    def read(self) -> BucketState:
        """The bucket as it is now. Raises what `BucketReader.read` raises."""
        return self._reader.read()

    def push(
        self,
        files: Mapping[str, bytes],
        origin: Origin,
        *,
        met: Mapping[str, str] | None = None,
        overwrite_edits: bool = False,
    ) -> Pushed:
        """Make these files the configuration in force.

        Args:
            files: all files of a valid project.
            origin: is written into the pointer.
            met: see `model/bundle.py`.
            overwrite_edits: overwrite edits by hand that nobody brought home.

        Raises:
            ConflictError: an edit by hand would be lost (POLYNYA-BKT-002); another push came first
                (POLYNYA-BKT-001).
            ConfigError: the project is too large (POLYNYA-BKT-005).
        """
        bundle = encode(files)
        revision = revision_of(bundle)
        found = self._reader.read()
        reading = self._finished(found)
        before = reading.pointer.revision if reading.pointer else None
        unseen = unseen_edits(files, reading.bucket, met)
        if unseen and not overwrite_edits:
            raise CONFIGURATION_EDITS_UNSEEN(where=self.name, files=", ".join(unseen))
        if before == revision and not (reading.bucket.edits or reading.bucket.left_over):
            return Pushed(revision, changed=False, before=before)
        self._store.put_if_absent(bundle_path(revision), bundle)
        pointer = Pointer(
            revision=revision,
            pushed_by=origin.who,
            pushed_at=origin.when,
            commit=origin.commit,
            token=self._token(),
            overtook=_unfinished(found, revision),
            replaces=_replaces(files, reading),
        )
        if not self._move(pointer, reading.version):
            raise self._overtaken()
        self._finished(self._reader.read())
        lost = tuple(path for path in unseen if path in pointer.replaces)
        return Pushed(revision, changed=True, before=before, overwritten=lost)

    def _finished(self, reading: BucketState) -> BucketState:
        """Write the plain files that a push has not come to write, this one or one before.

        Each is written only if it is still in the version that the push saw: an edit that came in
        between stays, as an edit.
        """
        pointer = reading.pointer
        if pointer is None or not pointer.replaces:
            return reading
        for path, version in pointer.replaces.items():
            now = reading.plain.get(path)
            if (now.version if now else None) == version:
                self._replace(path, version, reading.pushed.get(path))
        # Whoever finished it first, or pushed again, has done no less.
        self._move(pointer.settled(self._token()), reading.version)
        return self._reader.read()

    def _replace(self, path: str, version: str | None, content: bytes | None) -> None:
        where = plain_path(path)
        if content is None:
            if version is not None:
                self._store.delete_if_unchanged(where, version)
        elif version is None:
            self._store.put_if_absent(where, content)
        else:
            self._store.put_if_unchanged(where, content, version)

    def _move(self, pointer: Pointer, version: str | None) -> bool:
        if version is None:
            return self._store.put_if_absent(POINTER, pointer.encoded())
        return self._store.put_if_unchanged(POINTER, pointer.encoded(), version)

    def _overtaken(self) -> ConflictError:
        winner = self._reader.read().pointer
        text = (
            f"{winner.pushed_by} pushed {winner.revision[:12]} at {winner.pushed_at:%H:%M:%S} UTC"
            if winner
            else "somebody deleted `pushed.json`"
        )
        return CONFIGURATION_PUSH_OVERTAKEN(where=self.name, winner=text)


def _unfinished(found: BucketState, revision: str) -> str | None:
    """The push that may still be writing other files than this one."""
    pointer = found.pointer
    if pointer is None or not pointer.replaces or pointer.revision == revision:
        return None
    return pointer.revision


def _replaces(files: Mapping[str, bytes], reading: BucketState) -> dict[str, str | None]:
    """Versions of the plain files that are not what they have to be."""
    found = reading.plain
    return {
        path: found[path].version if path in found else None
        for path in sorted(files.keys() | found.keys())
        if path not in found or found[path].content != files.get(path)
    }
