"""Bugs in how what people ask of units is carried out, told and deleted."""

from __future__ import annotations

from collections.abc import Mapping

from polynya.cluster.control.requests import FinishedRequest, PendingRequest, Requests, UnitRequests
from polynya.cluster.coordination import store
from polynya.cluster.coordination.documents import UnitOutcome, UnitRequest
from polynya.cluster.coordination.store import STORE_ERRORS, DocumentStore, StoredDocument
from polynya.cluster.unit import JobKey
from tests.cluster.simulation.planted.bug import Bug, Patch


def deleted_first(self: UnitRequests) -> None:
    """A wish is deleted, then it is written what became of it."""
    while self._settled:
        one = self._settled[0]
        self._withdraw(one.unit, one.request.nonce)
        if not self._write(one):
            return
        self._settled.popleft()


def told_once(self: UnitRequests) -> None:
    """What cannot be told at once is not told."""
    while self._settled:
        one = self._settled.popleft()
        try:
            if self._write(one):
                self._withdraw(one.unit, one.request.nonce)
        except STORE_ERRORS:
            continue


def listed_is_asked(
    self: UnitRequests, grants: Mapping[JobKey, int]
) -> Mapping[JobKey, PendingRequest]:
    """As it was: what was listed before a unit was ours is taken for what is asked."""
    return {unit: asked for unit, asked in self._pending_requests().items() if unit in grants}


def never_done(self: UnitRequests, unit: JobKey, found: StoredDocument[UnitRequest]) -> bool:
    """Nobody looks whether the owner before said what came of it."""
    return False


def whoever_spoke(self: UnitRequests, one: FinishedRequest) -> bool:
    """An owner before has the last word."""
    document_store = self._document_store
    read = document_store.read

    class Deaf(DocumentStore):
        def __init__(self) -> None:
            vars(self).update(vars(document_store))

        def read(self, kind, path):  # type: ignore[no-untyped-def]
            found = read(kind, path)
            if found is None or not isinstance(found.document, UnitOutcome):
                return found
            return StoredDocument(found.document.model_copy(update={"epoch": 0}), found.version)

    self._document_store = Deaf()
    try:
        return _write(self, one)
    finally:
        self._document_store = document_store


_write = UnitRequests._write


def whatever_is_asked(self: UnitRequests, unit: JobKey, request: str) -> None:
    """The wish that is there by now is deleted, whichever it is."""
    found = self._document_store.read(UnitRequest, store.request_path(unit))
    if found is not None:
        self._document_store.delete(store.request_path(unit), found.version)


def written_over(self: Requests, unit: JobKey, request: UnitRequest) -> str:
    """Who asks last is heard."""
    self._write(store.request_path(unit), request.model_copy(update={"by": self._by}))
    return ""


REQUESTS = (
    Bug(
        "a wish is deleted before it is said what became of it",
        "-",
        lambda: (Patch(UnitRequests, "_write_outcomes", deleted_first),),
    ),
    Bug(
        "what became of a wish is told once, whatever the store answers",
        "-",
        lambda: (Patch(UnitRequests, "_write_outcomes", told_once),),
    ),
    Bug(
        "a wish that the owner before carried out is done again",
        "-",
        lambda: (Patch(UnitRequests, "_is_done", never_done),),
    ),
    Bug(
        "a new owner does what it had listed before it was the owner",
        "this project, found by the simulator",
        lambda: (Patch(UnitRequests, "confirmed", listed_is_asked),),
    ),
    Bug(
        "an owner before has the last word on a wish",
        "KIP-1251",
        lambda: (Patch(UnitRequests, "_write", whoever_spoke),),
    ),
    Bug(
        "the next wish is deleted with the one that was done",
        "-",
        lambda: (Patch(UnitRequests, "_withdraw", whatever_is_asked),),
    ),
    Bug(
        "a second wish is written over the first",
        "-",
        lambda: (Patch(Requests, "ask", written_over),),
    ),
)
