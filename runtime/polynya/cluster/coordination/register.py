"""Documents under compare-and-swap: read, write if unchanged, and know whether a write was ours.

A write whose answer was lost may have happened, and an SDK that tries again then reports it as lost
to somebody else. So each write has a nonce, and after every answer but a clear yes the object is
read again: what holds our nonce is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final, Generic, TypeAlias, TypeVar

from polynya.cluster.coordination.documents import MAX_DOCUMENT_BYTES, D, Document, parse
from polynya.cluster.coordination.paths import element
from polynya.model.errors import PolynyaError
from polynya.store.object_store import ObjectInfo, ObjectStore

T = TypeVar("T")
Doc = TypeVar("Doc", bound=Document)

#: What a request may fail with, besides FileNotFoundError: a folder raises the errors of its disk.
STORE_ERRORS: Final = (PolynyaError, OSError)
StoreError: TypeAlias = PolynyaError | OSError

_TOKEN_BITS: Final = 128


@dataclass(frozen=True, slots=True)
class Found(Generic[Doc]):
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


class Register:
    """The documents of one cluster."""

    def __init__(self, store: ObjectStore, cluster: str, random: Random) -> None:
        self._store, self._random = store, random
        self._root = f"{element(cluster)}/"

    def token(self) -> str:
        """Hex digits that nobody else has."""
        return f"{self._random.getrandbits(_TOKEN_BITS):0{_TOKEN_BITS // 4}x}"

    def list(self, folder: str) -> dict[str, ObjectInfo]:
        """The objects below a folder, by their paths. Raises what the store raises."""
        return {
            info.path.removeprefix(self._root): info
            for info in self._store.list(f"{self._root}{folder}")
        }

    def read(self, kind: type[D], path: str, known: Found[D] | None = None) -> Found[D] | None:
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
        return Found(parse(kind, content.data, path), content.version)

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

    def delete(self, path: str, version: str) -> bool:
        """Delete the object if it is still in `version`. True when it is gone."""
        return self._store.delete_if_unchanged(f"{self._root}{path}", version)
