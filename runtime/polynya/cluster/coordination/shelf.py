"""A folder of documents, kept as it was read last: only what changed is read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from polynya.cluster.coordination.documents import Document, NewerDocumentError
from polynya.cluster.coordination.register import Found, Register, attempted
from polynya.cluster.coordination.standing import Together
from polynya.model.errors import OperationError, PolynyaError

Doc = TypeVar("Doc", bound=Document)

#: Asked between two batches of requests: whether there is time for another one.
GoOn: TypeAlias = Callable[[], bool]

#: Requests that are done together; between two batches the session is renewed.
BATCH: Final = 64


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """What is no document that this Polynya knows: `newer`, or else damaged."""

    version: str
    why: str
    newer: bool


class Shelf(Generic[Doc]):
    """The documents of one kind in one folder, by their paths.

    `troubles` says what cannot be understood, as long as it is there.
    """

    def __init__(
        self, register: Register, kind: type[Doc], folder: str, together: Together
    ) -> None:
        self._register, self._kind, self._folder = register, kind, folder
        self._together = together
        self._known: dict[str, Found[Doc]] = {}
        self._unreadable: dict[str, _Unreadable] = {}
        #: Another one after each change of what is known.
        self.edition = 0

    @property
    def documents(self) -> Mapping[str, Found[Doc]]:
        """What could be read, by its path."""
        return self._known

    @property
    def troubles(self) -> tuple[str, ...]:
        """What could not be understood, and why."""
        return tuple(one.why for one in self._unreadable.values())

    def newer(self, path: str) -> bool:
        """Whether there is a document of a version that this Polynya does not know."""
        found = self._unreadable.get(path)
        return found is not None and found.newer

    def damaged(self, path: str) -> str | None:
        """The version of what is there and is no document at all."""
        found = self._unreadable.get(path)
        return None if found is None or found.newer else found.version

    def refresh(self, go_on: GoOn) -> bool:
        """Read what changed. True when everything is read. Raises what the store raises."""
        versions = {path: info.version for path, info in self._register.list(self._folder).items()}
        for path in [path for path in self._known if path not in versions]:
            self.deleted(path)
        self._unreadable = {
            path: one for path, one in self._unreadable.items() if versions.get(path) == one.version
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
        self._know(path, Found(document, ""))

    def doubt(self, path: str) -> None:
        """Read it again, even if it seems to be as it was."""
        if (found := self._known.get(path)) is not None:
            self._know(path, Found(found.document, ""))

    def deleted(self, path: str) -> None:
        """It is no longer there."""
        self._know(path, None)

    def _know(self, path: str, found: Found[Doc] | None) -> None:
        self.edition += 1
        if found is None:
            self._known.pop(path, None)
        else:
            self._known[path] = found

    def _version(self, path: str) -> str | None:
        found = self._known.get(path)
        return None if found is None else found.version

    def _read(self, paths: list[str], versions: Mapping[str, str]) -> None:
        calls = [attempted(partial(self._register.read, self._kind, path)) for path in paths]
        for path, result in zip(paths, self._together(calls), strict=True):
            if isinstance(result, OperationError):
                self._know(path, None)
                newer = isinstance(result, NewerDocumentError)
                self._unreadable[path] = _Unreadable(versions[path], told(result), newer)
            elif isinstance(result, Exception):
                raise result
            else:
                self._know(path, result)


def told(error: Exception) -> str:
    """What went wrong, in one line with the error's code if it has one."""
    if isinstance(error, PolynyaError):
        why = f": {error.why}" if error.why else ""
        return f"{error.code}: {error}{why}"
    return f"{type(error).__name__}: {error}"
