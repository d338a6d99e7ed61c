"""Reading a configuration bucket: pointer, bundle and plain files of one moment.

A reading that finds the pointer as it was before it began saw no push in the middle: a push moves
the pointer first and writes plain files then. Objects are fetched only when their version changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from polynya.model.bucket.bundle import MAX_BUNDLE_BYTES, MAX_BYTES, MAX_FILES, damaged, decode
from polynya.model.bucket.in_force import InForce, Plain, in_force
from polynya.model.bucket.pointer import MAX_POINTER_BYTES, Pointer, parse_pointer
from polynya.model.contract.identifiers import shown
from polynya.model.contract.paths import relative_path_problem
from polynya.model.documents.yaml_reader import MAX_FILE_BYTES
from polynya.model.errors import ConfigError, ConflictError, PolynyaError
from polynya.model.reading.connections import CONNECTION_FOLDER, is_certificate
from polynya.model.reading.document import is_document
from polynya.model.reading.loader import PROJECT_FILES, TASK_FOLDER
from polynya.model.reading.task_test_loader import TEST_FOLDER
from polynya.store.object_store import Content, ObjectInfo, ObjectStore

#: The folders of a project whose files make its configuration.
_FOLDERS: Final = frozenset({TASK_FOLDER, CONNECTION_FOLDER, TEST_FOLDER})
POINTER: Final = "pushed.json"
CURRENT: Final = "current"
#: So many objects below `current/` are looked at.
MAX_LISTED: Final = 10_000

_ATTEMPTS: Final = 5
#: Refused objects that are named one by one; the others are only counted.
_NAMED: Final = 20


def bundle_path(revision: str) -> str:
    """Where the bundle of a revision lies."""
    return f"bundles/{revision}.json"


def plain_path(path: str) -> str:
    """Where the plain file lies."""
    return f"{CURRENT}/{path}"


@dataclass(frozen=True, slots=True)
class Reading:
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

    def read(self) -> Reading:
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
                return Reading(pointer, _version(before), pushed, overtaken, plain, tuple(refused))
        raise ConflictError(
            "POLYNYA-BKT-001",
            "the configuration was pushed again and again while it was read",
            where=self.name,
            state="the configuration that was read last stays in force",
            fix="try again in a moment",
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
            raise damaged(f"the bundle {revision[:12]} is not there any more") from None
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
            for info in islice(self.store.list(CURRENT), MAX_LISTED + 1)
        ]
        versions = {info.path: info.version for info in objects if is_project_file(info.path)}
        refused += _strangers(info.path for info in objects if info.path not in versions)
        if len(objects) > MAX_LISTED:
            last = objects[-1].path
            what = f"more than {MAX_LISTED} objects; none after {shown(last)} was looked at"
            refused.append(_refused(CURRENT, what))
            # Nobody can say whether those are edited.
            versions |= {path: "?" for path in pushed if path > last}
        added = sorted(path for path in versions if path not in pushed)
        if excess := added[max(0, MAX_FILES - len(pushed)) :]:
            refused.append(_refused(plain_path(excess[0]), f"more than {MAX_FILES} files"))
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
            refused.append(_refused(plain_path(path), f"more than {MAX_BYTES} bytes together"))
            return Plain(version, None)
        try:
            # One byte more than a file may have: who reads it says that it is too large.
            content = self.store.read(plain_path(path), MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            refused.append(_refused(plain_path(path), f"it cannot be read: {error.strerror}"))
            return Plain(version, None)
        except PolynyaError as error:
            # One object may be encrypted with a key of its own. That all of AWS does not answer
            # says nothing about this one.
            if error.code not in {"POLYNYA-AWS-002", "POLYNYA-STO-001"}:
                raise
            refused.append(error)
            return Plain(version, None)
        return Plain(content.version, content.data)


def is_project_file(path: str) -> bool:
    """Whether a path is that of a file which a project is made of."""
    folder, _, name = path.rpartition("/")
    if relative_path_problem(path) is not None:
        return False
    if folder == CONNECTION_FOLDER and is_certificate(name):
        return True
    return path in PROJECT_FILES or (folder in _FOLDERS and is_document(name))


def _strangers(paths: Iterable[str]) -> Iterator[ConfigError]:
    strangers = list(paths)
    for path in strangers[:_NAMED]:
        problem = relative_path_problem(path) or "no file of a project has this name"
        yield _refused(shown(plain_path(path), limit=200).strip("`"), problem)
    if rest := strangers[_NAMED:]:
        yield _refused(CURRENT, f"{len(rest)} more objects that are no files of a project")


def _refused(where: str, problem: str) -> ConfigError:
    return ConfigError(
        "POLYNYA-BKT-005",
        problem,
        where=where,
        state="it is not used; what else is there is",
        fix="remove it from the bucket",
    )


def _version(content: Content | None) -> str | None:
    return content.version if content else None
