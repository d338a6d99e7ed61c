"""A document that the leader writes when it changes, for the functions beside the cluster."""

from __future__ import annotations

from contextlib import suppress
from typing import Generic, TypeVar

from polynya.cluster.coordination.documents import Document
from polynya.cluster.coordination.member_state import MemberState
from polynya.cluster.coordination.store import STORE_ERRORS, DocumentStore
from polynya.store.clock import Clock

D = TypeVar("D", bound=Document)


class LeaderDocumentWriter(Generic[D]):
    """Writes a document while this node leads.

    Args:
        document_store: of the cluster.
        clock: only differences count.
        kind: of the document.
        path: where it lies.
        every_seconds: least time between two tries to write.
    """

    def __init__(
        self,
        document_store: DocumentStore,
        clock: Clock,
        kind: type[D],
        path: str,
        *,
        every_seconds: float = 10.0,
    ) -> None:
        self._document_store, self._clock = document_store, clock
        self._kind, self._path, self._every_seconds = kind, path, every_seconds
        self._known: D | None = None
        self._written: D | None = None
        self._tried_at = float("-inf")

    def know(self, document: D | None) -> None:
        """Write this from now on. Usable from any thread."""
        self._known = document

    def __call__(self, member_state: MemberState) -> None:
        """Write what changed; if the store does not answer, a later turn tries again."""
        if not member_state.leading:
            # Another leader may write something else.
            self._written = None
            return
        known, now = self._known, self._clock.monotonic()
        if known is None or known == self._written or now - self._tried_at < self._every_seconds:
            return
        self._tried_at = now
        # Until then the functions go by what was written before, or take everything for ours.
        with suppress(*STORE_ERRORS):
            if self._write(known):
                self._written = known

    def _write(self, known: D) -> bool:
        found = self._document_store.read(self._kind, self._path)
        if found is not None and self._content(found.document) == self._content(known):
            return True
        return self._document_store.overwrite(self._path, known, found)

    def _content(self, document: D) -> dict[str, object]:
        """What this version writes, without what a later version added."""
        return document.model_dump(include=self._kind.model_fields.keys() - {"v", "nonce"})
