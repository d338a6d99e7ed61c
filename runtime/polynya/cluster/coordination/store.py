"""Cluster documents in the object store: paths, compare-and-swap, a cache, a probe.

**Paths.** Only this module turns names into paths and back. A name is one element of a path: every
character except letters, digits and `_.-~` is percent-encoded as UTF-8, and so is a leading dot.

**Compare-and-swap** (`DocumentStore`). A write whose answer was lost may have happened; an SDK that
retries it then reports that another writer won. So each write has a nonce, and after every answer
except a clear success the object is read again: an object that holds our nonce is ours.

`DocumentCache` caches the documents of one folder by version. `probe` proves that a store enforces
the conditions of writes before a node relies on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final, Generic, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from polynya.cluster.coordination.documents import (
    MAX_DOCUMENT_BYTES,
    D,
    Document,
    NewerDocumentError,
    parse,
)
from polynya.cluster.coordination.member_state import Together
from polynya.cluster.unit import JobKey
from polynya.model.error_catalogue.cluster import CONDITIONAL_WRITE_REFUSED, UNCONDITIONAL_WRITES
from polynya.model.errors import OperationError, PolynyaError
from polynya.store.object_store import ObjectInfo, ObjectStore

NODES: Final = "nodes"
PLANS: Final = "plans"
WANTED: Final = "wanted"
DIFFERENCES: Final = "differences"
UNITS: Final = "units"
DRAINS: Final = "drains"
MOVES: Final = "moves"
TASKS: Final = "tasks"
REQUESTS: Final = "wishes"
OUTCOMES: Final = "outcomes"
PROBES: Final = "probes"
LEADER: Final = "leader"
FREEZE: Final = "freeze"
WANTED_UNITS: Final = f"{WANTED}/units"


def element(name: str) -> str:
    """The name as one element of a path. Raises ValueError when it is empty."""
    if not name:
        raise ValueError("an empty name has no path")
    encoded = quote(name, safe="")
    return f"%2E{encoded[1:]}" if encoded.startswith(".") else encoded


def name_of(encoded: str) -> str:
    """The name that `element` made an element of."""
    return unquote(encoded)


def node_path(incarnation: str) -> str:
    """The session lease of an incarnation."""
    return f"{NODES}/{element(incarnation)}"


def plan_path(incarnation: str) -> str:
    """The units that the leader plans for an incarnation."""
    return f"{PLANS}/{element(incarnation)}"


def difference_path(incarnation: str) -> str:
    """How the units that an incarnation knows differ from those that the leader knows."""
    return f"{DIFFERENCES}/{element(incarnation)}"


def unit_path(unit: JobKey) -> str:
    """The ownership of a unit."""
    return f"{UNITS}/{element(unit.task)}/{element(unit.name)}"


def drain_path(node: str) -> str:
    """An operator's request that a node has no units."""
    return f"{DRAINS}/{element(node)}"


def move_path(unit: JobKey) -> str:
    """An operator's request that a unit is on one node."""
    return f"{MOVES}/{element(unit.task)}/{element(unit.name)}"


def task_path(task: str) -> str:
    """An operator's request that a task is stopped or retried."""
    return f"{TASKS}/{element(task)}"


def request_path(unit: JobKey) -> str:
    """An operator's request for a unit."""
    return f"{REQUESTS}/{element(unit.task)}/{element(unit.name)}"


def outcome_path(unit: JobKey) -> str:
    """The outcome of the last request for a unit."""
    return f"{OUTCOMES}/{element(unit.task)}/{element(unit.name)}"


def unit_at(path: str) -> JobKey | None:
    """The unit whose object is at `path`, None when it is that of no unit."""
    parts = path.split("/")
    if len(parts) != 3 or parts[0] not in {UNITS, MOVES, REQUESTS, OUTCOMES}:
        return None
    return JobKey(name_of(parts[1]), name_of(parts[2]))


def incarnation_of(node: str, token: str) -> str:
    """A process on a node: its node id and a token that no other process has, of hex digits."""
    return f"{node}.{token}"


def node_of(incarnation: str) -> str:
    """The node id in an incarnation."""
    return incarnation.rpartition(".")[0]


T = TypeVar("T")
Doc = TypeVar("Doc", bound=Document)

#: Errors of a request, besides FileNotFoundError: a folder raises the errors of its disk.
STORE_ERRORS: Final = (PolynyaError, OSError)
StoreError: TypeAlias = PolynyaError | OSError

_TOKEN_BITS: Final = 128


@dataclass(frozen=True, slots=True)
class StoredDocument(Generic[Doc]):
    """A document, and the version of the object that it was read from."""

    document: Doc
    version: str


def attempted(call: Callable[[], T]) -> Callable[[], T | StoreError]:
    """The call, which now returns what it raised if the store failed."""

    def attempt() -> T | StoreError:
        try:
            return call()
        except STORE_ERRORS as error:
            return error

    return attempt


def below(listed: Mapping[str, ObjectInfo], folder: str) -> dict[str, ObjectInfo]:
    """The listed objects in a folder."""
    return {path: info for path, info in listed.items() if path.startswith(f"{folder}/")}


class DocumentStore:
    """The documents of one cluster."""

    def __init__(self, store: ObjectStore, cluster: str, random: Random) -> None:
        self._store, self._random = store, random
        self._root = f"{element(cluster)}/"

    def token(self) -> str:
        """Random hex digits, different with each call."""
        return f"{self._random.getrandbits(_TOKEN_BITS):0{_TOKEN_BITS // 4}x}"

    def list(self, folder: str) -> dict[str, ObjectInfo]:
        """The objects below a folder, by their paths. Raises what the store raises."""
        return {
            info.path.removeprefix(self._root): info
            for info in self._store.list(f"{self._root}{folder}")
        }

    def list_without_units(self) -> dict[str, ObjectInfo]:
        """All objects except the ownership records, by their paths. Raises what the store raises.

        S3 lists a thousand objects with a request, so that most clusters take two requests,
        whatever the number of their units. A list of each folder would take six.
        """
        found: dict[str, ObjectInfo] = {}
        units = f"{self._root}{UNITS}/"
        # "0" is the character behind "/".
        for after in ("", f"{self._root}{UNITS}0"):
            for info in self._store.beginning(self._root, after):
                if info.path.startswith(units):
                    break
                found[info.path.removeprefix(self._root)] = info
        return found

    def read(
        self, kind: type[D], path: str, known: StoredDocument[D] | None = None
    ) -> StoredDocument[D] | None:
        """The document at `path`, None when there is no object.

        What is still in the version of `known` is that very one; it is not parsed again.

        Raises:
            OperationError: it cannot be understood (POLYNYA-AGT-012).
            DependencyError: what the store raises.
        """
        try:
            content = self._store.read(f"{self._root}{path}", MAX_DOCUMENT_BYTES)
        except FileNotFoundError:
            return None
        if known is not None and known.version == content.version:
            return known
        return StoredDocument(parse(kind, content.data, path), content.version)

    def write(self, path: str, document: Document, version: str | None) -> bool:
        """Write if the object is still in `version`, None: if there is none. True: it was written.

        Raises:
            DependencyError: it is not known whether it was written.
        """
        nonce = self.token()
        data = document.model_copy(update={"nonce": nonce}).encoded()
        where = f"{self._root}{path}"
        with suppress(*STORE_ERRORS):
            if version is None:
                done = self._store.put_if_absent(where, data)
            else:
                done = self._store.put_if_unchanged(where, data, version)
            if done:
                return True
        found = self.read(Document, path)
        return found is not None and found.document.nonce == nonce

    def overwrite(self, path: str, document: D, found: StoredDocument[D] | None) -> bool:
        """Write over `found`, see `write`; its fields that this version does not know stay."""
        if found is None:
            return self.write(path, document, None)
        unknown = found.document.model_extra or {}
        return self.write(path, document.model_copy(update=unknown), found.version)

    def delete(self, path: str, version: str) -> bool:
        """Delete the object if it is still in `version`. True when it is gone."""
        return self._store.delete_if_unchanged(f"{self._root}{path}", version)


#: Called between two batches of requests: whether there is time for another one.
GoOn: TypeAlias = Callable[[], bool]

#: Requests that are done together; between two batches the session is renewed.
BATCH: Final = 64


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """An object that this version cannot read: of a `newer` version, or else damaged."""

    version: str
    why: str
    newer: bool


class DocumentCache(Generic[Doc]):
    """The documents of one kind in one folder, by their paths.

    `troubles` lists unreadable objects, as long as they exist.
    """

    def __init__(
        self, document_store: DocumentStore, kind: type[Doc], folder: str, together: Together
    ) -> None:
        self._document_store, self._kind, self._folder = document_store, kind, folder
        self._together = together
        self._known: dict[str, StoredDocument[Doc]] = {}
        self._unreadable: dict[str, _Unreadable] = {}
        #: Grows with each change.
        self.edition = 0

    @property
    def documents(self) -> Mapping[str, StoredDocument[Doc]]:
        """The readable documents, by path."""
        return self._known

    @property
    def troubles(self) -> tuple[str, ...]:
        """The unreadable ones, each with the reason."""
        return tuple(unreadable.why for unreadable in self._unreadable.values())

    def newer(self, path: str) -> bool:
        """Whether there is a document of a version that this Polynya does not know."""
        found = self._unreadable.get(path)
        return found is not None and found.newer

    def damaged(self, path: str) -> str | None:
        """The version of a damaged object, None when there is none."""
        found = self._unreadable.get(path)
        return None if found is None or found.newer else found.version

    def refresh(self, listed: Mapping[str, ObjectInfo], go_on: GoOn) -> bool:
        """Read what changed. True when everything is read. Raises what the store raises.

        `listed` are the objects of the cluster, those of other folders too.
        """
        versions = {path: info.version for path, info in below(listed, self._folder).items()}
        for path in [path for path in self._known if path not in versions]:
            self.deleted(path)
        self._unreadable = {
            path: unreadable
            for path, unreadable in self._unreadable.items()
            if versions.get(path) == unreadable.version
        }
        changed = [
            path
            for path, version in versions.items()
            if path not in self._unreadable and self._version(path) != version
        ]
        for start in range(0, len(changed), BATCH):
            if start and not go_on():
                return False
            self._read(changed[start : start + BATCH], versions)
        return True

    def wrote(self, path: str, document: Doc) -> None:
        """This is in `path` now, in a version that is not known yet."""
        self._unreadable.pop(path, None)
        self._know(path, StoredDocument(document, ""))

    def doubt(self, path: str) -> None:
        """Read it again, even if it seems to be as it was."""
        if (found := self._known.get(path)) is not None:
            self._know(path, StoredDocument(found.document, ""))

    def deleted(self, path: str) -> None:
        """It is no longer there."""
        self._know(path, None)

    def _know(self, path: str, found: StoredDocument[Doc] | None) -> None:
        self.edition += 1
        if found is None:
            self._known.pop(path, None)
        else:
            self._known[path] = found

    def _version(self, path: str) -> str | None:
        found = self._known.get(path)
        return None if found is None else found.version

    def _read(self, paths: list[str], versions: Mapping[str, str]) -> None:
        calls = [attempted(partial(self._document_store.read, self._kind, path)) for path in paths]
        for path, result in zip(paths, self._together(calls), strict=True):
            if isinstance(result, OperationError):
                self._know(path, None)
                newer = isinstance(result, NewerDocumentError)
                self._unreadable[path] = _Unreadable(versions[path], error_line(result), newer)
            elif isinstance(result, Exception):
                raise result
            else:
                self._know(path, result)


def error_line(error: Exception) -> str:
    """The error in one line, with its code if it has one."""
    if isinstance(error, PolynyaError):
        why = f": {error.why}" if error.why else ""
        return f"{error.code}: {error}{why}"
    return f"{type(error).__name__}: {error}"


def probe(store: ObjectStore, cluster: str, token: str) -> None:
    """Test conditional writes: create an object twice, and replace it by a stale version.

    A store that confirms a write which it had to refuse is broken. A refusal of a write that had to
    succeed proves nothing, because answers get lost: so the object is read again.

    Raises:
        OperationError: a condition is not enforced (POLYNYA-AGT-010).
        DependencyError: what the store raises.
    """
    path = probe_path(cluster, token)
    try:
        _try_conditions(store, path)
    finally:
        # An object that stays is small and never read. The delete has a condition, too: a bucket
        # may refuse deletes without one.
        with suppress(*STORE_ERRORS):
            store.delete_if_unchanged(path, store.read(path, 64).version)


def probe_path(cluster: str, token: str) -> str:
    """The object with which a store is tried."""
    return f"{element(cluster)}/{PROBES}/{token}"


def _try_conditions(store: ObjectStore, path: str) -> None:
    store.put_if_absent(path, b"created")
    first = store.read(path, 64)
    if store.put_if_absent(path, b"created twice") or store.read(path, 64) != first:
        raise UNCONDITIONAL_WRITES(where=path, why="an object was created although there was one")
    store.put_if_unchanged(path, b"replaced", first.version)
    second = store.read(path, 64)
    if second.data != b"replaced":
        # That proves no broken store: it may have refused for a moment.
        raise CONDITIONAL_WRITE_REFUSED(where=path)
    if store.put_if_unchanged(path, b"stale", first.version) or store.read(path, 64) != second:
        raise UNCONDITIONAL_WRITES(where=path, why="an object was replaced although it had changed")
