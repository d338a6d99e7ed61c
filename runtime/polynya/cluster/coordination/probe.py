"""Whether a store enforces the conditions of writes. Without them nobody can own anything."""

from __future__ import annotations

from contextlib import suppress

from polynya.cluster.coordination.paths import PROBES, element
from polynya.cluster.coordination.register import STORE_ERRORS
from polynya.model.errors import DependencyError, OperationError
from polynya.store.object_store import ObjectStore


def probe(store: ObjectStore, cluster: str, token: str) -> None:
    """Try the conditions with an object of our own: create it twice, write over a stale version.

    A clear yes to what must be refused is the proof of a broken store; a lost answer to what must
    succeed proves nothing, so it is looked at and not believed.

    Raises:
        OperationError: a condition is not enforced (POLYNYA-AGT-010).
        DependencyError: what the store raises.
    """
    path = probe_path(cluster, token)
    try:
        _try_conditions(store, path)
    finally:
        # What stays is small, and has the name of nobody else. Deletes have to compare, too: a
        # bucket may be set up to refuse others here.
        with suppress(*STORE_ERRORS):
            store.delete_if_unchanged(path, store.read(path, 64).version)


def probe_path(cluster: str, token: str) -> str:
    """The object with which a store is tried."""
    return f"{element(cluster)}/{PROBES}/{token}"


def _try_conditions(store: ObjectStore, path: str) -> None:
    store.put_if_absent(path, b"created")
    first = store.read(path, 64)
    if store.put_if_absent(path, b"created twice") or store.read(path, 64) != first:
        raise _unsafe(path, "an object was created although there was one")
    store.put_if_unchanged(path, b"replaced", first.version)
    second = store.read(path, 64)
    if second.data != b"replaced":
        # That proves no broken store: it may have refused for a moment.
        raise DependencyError(
            "POLYNYA-AGT-014",
            "the coordination place refused a write whose condition held",
            where=path,
            state="this node takes no work yet; it tries again in its next turn",
            fix="wait; if it lasts, use a store with conditional writes, such as Amazon S3",
        )
    if store.put_if_unchanged(path, b"stale", first.version) or store.read(path, 64) != second:
        raise _unsafe(path, "an object was replaced although it had changed")


def _unsafe(path: str, why: str) -> OperationError:
    return OperationError(
        "POLYNYA-AGT-010",
        "the coordination place does not enforce the conditions of writes",
        where=path,
        state="this node takes no work; no table was touched",
        fix="use a store with conditional writes, such as Amazon S3",
        why=why,
    )
