"""Which version of the network agent is wanted: an object at the root of the coordination place.

Its name and that of a package have no folder, so no version takes them for a cluster.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from polynya.cluster.coordination.documents import MAX_DOCUMENT_BYTES, Document, Text, parse
from polynya.model.errors import ConflictError
from polynya.store.object_store import ObjectStore

PIN: Final = "network-agent-version"
#: Largest package, in bytes; the code has two million.
MAX_PACKAGE_BYTES: Final = 64 * 2**20
#: Somebody else pinning at the same moment is rare.
_TRIES: Final = 5


class Pin(Document):
    """`network-agent-version`: the code that network agents are to run, and who wants that.

    Attributes:
        sha256: of the package, lower-case hex.
        size: of the package, in bytes.
    """

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(gt=0, le=MAX_PACKAGE_BYTES, strict=True)]
    by: Text
    reason: Text = ""
    since: datetime


def package_path(sha256: str) -> str:
    """Where the package with this digest is."""
    return f"network-agent-{sha256}.tar"


def wanted(store: ObjectStore) -> Pin | None:
    """The pin, None when the installed version is wanted.

    Raises:
        OperationError: it cannot be understood (POLYNYA-AGT-012).
        DependencyError: what the store raises.
    """
    try:
        return parse(Pin, store.read(PIN, MAX_DOCUMENT_BYTES).data, PIN)
    except FileNotFoundError:
        return None


def put_pin(
    store: ObjectStore, package: bytes, *, by: str, reason: str, now: datetime, token: str
) -> Pin:
    """Let network agents run this package; `token` is one that nobody else has.

    The package is there before the pin is, so whoever reads the pin finds it.

    Raises:
        ConflictError: others pin all the time (POLYNYA-AGT-022).
        DependencyError: what the store raises.
    """
    sha256 = hashlib.sha256(package).hexdigest()
    pin = Pin(nonce=token, sha256=sha256, size=len(package), by=by, reason=reason, since=now)
    store.put_if_absent(package_path(sha256), package)
    for _ in range(_TRIES):
        version, unknown = _before(store)
        data = pin.model_copy(update=unknown).encoded()
        if version is None:
            written = store.put_if_absent(PIN, data)
        else:
            written = store.put_if_unchanged(PIN, data, version)
        found = wanted(store)
        if written or (found is not None and found.nonce == token):
            return pin
    raise ConflictError(
        "POLYNYA-AGT-022",
        "somebody else changes the same object of the cluster all the time",
        where=PIN,
        state="the pin of the others is in force",
        fix="see who pins, then try again",
    )


def take_pin_back(store: ObjectStore) -> bool:
    """Let network agents run the version that is installed. False: they were to do so already."""
    for _ in range(_TRIES):
        version, _ = _before(store)
        if version is None:
            return False
        if store.delete_if_unchanged(PIN, version):
            return True
    return False


def _before(store: ObjectStore) -> tuple[str | None, dict[str, object]]:
    """Version of the pin that is there, and what it has that this version does not know."""
    try:
        found = store.read(PIN, MAX_DOCUMENT_BYTES)
    except FileNotFoundError:
        return None, {}
    return found.version, dict(parse(Pin, found.data, PIN).model_extra or {})
