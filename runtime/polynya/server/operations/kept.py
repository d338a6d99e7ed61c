"""Operations in the state of the target: they survive the machine of their server.

Each operation has an object below `.polynya/operations/TARGET` of the warehouse, written before it
is started, when a process may have been started, and at its end. One server at a time has the
lease beside them, and with it the right to start operations. The next one restores what it does not
know into its own folder, where it is taken up as after a restart.

A lease counts as dead when its version has not changed for `DEAD_SECONDS` by the clock of the
server that looks; no two clocks are compared. Its owner stops earlier.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

from polynya.model.errors import PolynyaError
from polynya.server.operations.records import (
    KEPT,
    OperationFolder,
    OperationRequest,
    OperationResult,
    OperationStore,
    is_note,
    request_of,
)
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

#: Below the warehouse of the target; the name of the target follows.
FOLDER: Final = ".polynya/operations"
RENEW_SECONDS: Final = 30.0
#: Without a renewal for so long an owner starts nothing more, and after so long another takes over.
LOST_SECONDS: Final = 75.0
DEAD_SECONDS: Final = 120.0
_LEASE: Final = "lease"
#: Of the output of an operation, its end: what a person looks for is there.
_KEPT_OUTPUT: Final = 1024 * 1024
_MOST_BYTES: Final = 64 * 1024 * 1024


class OperationLease:
    """The lease of the server that starts the operations of a target.

    `owner` is the machine: a server that comes back on it needs not wait for itself.
    """

    def __init__(self, store: ObjectStore, folder: str, owner: str, clock: Clock) -> None:
        self._store, self._path = store, f"{folder}/{_LEASE}"
        self._owner, self._clock = owner, clock
        self._version: str | None = None
        self._renewed = -math.inf
        self._seen: tuple[str, float] = ("", 0.0)
        self._count = 0

    @property
    def held(self) -> bool:
        """Whether this server may start operations now."""
        fresh = self._clock.monotonic() - self._renewed < LOST_SECONDS
        return self._version is not None and fresh

    def step(self) -> None:
        """Renew the lease, or take it if it is free or dead. A store that fails is asked again."""
        now = self._clock.monotonic()
        try:
            if not (self.held and self._put(self._version, now)):
                self._version = None
                self._take(now)
        except (OSError, PolynyaError):
            # Until `LOST_SECONDS` the next step may renew it still.
            return

    def release(self) -> None:
        """Give it back, so that the next server need not wait."""
        version, self._version = self._version, None
        if version is not None:
            try:
                self._store.delete_if_unchanged(self._path, version)
            except (OSError, PolynyaError):
                return

    def _take(self, now: float) -> None:
        try:
            found = self._store.read(self._path, _MOST_BYTES)
        except FileNotFoundError:
            self._put(None, now)
            return
        if self._seen[0] != found.version:
            self._seen = found.version, now
        own = found.data.partition(b"\n")[0].decode("utf-8", "replace") == self._owner
        if own or now - self._seen[1] >= DEAD_SECONDS:
            self._put(found.version, now)

    def _put(self, version: str | None, now: float) -> bool:
        self._count += 1
        # Each renewal differs, also where a version is a hash of the content.
        data = f"{self._owner}\n{self._clock.now().isoformat()} {self._count}\n".encode()
        if version is None:
            written = self._store.put_if_absent(self._path, data)
        else:
            written = self._store.put_if_unchanged(self._path, data, version)
        if written:
            found = self._store.read(self._path, _MOST_BYTES)
            # What another server has put there since is not ours to renew.
            written = found.data == data
        if written:
            self._version, self._renewed = found.version, now
        return written


@dataclass(frozen=True, slots=True)
class KeptOperation:
    """An operation as the object has it; `output` is the end of its output, once it has ended.

    `notes` are the files that others wrote beside it, by name.
    """

    request: OperationRequest
    begun: bool
    result: OperationResult | None
    output: str
    notes: Mapping[str, str]

    def data(self) -> bytes:
        """The object."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, data: bytes) -> KeptOperation:
        """The operation of an object.

        Raises ValueError, KeyError, TypeError or AttributeError for any other content.
        """
        read = json.loads(data)
        result = None if read["result"] is None else OperationResult(**read["result"])
        request = request_of(read["request"])
        notes = {str(name): str(text) for name, text in read["notes"].items() if is_note(name)}
        return cls(request, bool(read["begun"]), result, str(read["output"]), notes)


class KeptOperations:
    """The operations of a target, and the lease of the server that starts them.

    `changed` is called when the lease was taken (True) or lost (False).
    """

    def __init__(
        self,
        store: ObjectStore,
        target: str,
        owner: str,
        clock: Clock,
        changed: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._store, self._clock, self.changed = store, clock, changed
        self.folder = f"{FOLDER}/{target}"
        self.lease = OperationLease(store, self.folder, owner, clock)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="operation lease", daemon=True)

    def start(self) -> None:
        """Take the lease when it is free, and renew it, by a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Give the lease back."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(LOST_SECONDS)
        self.lease.release()

    def put(self, folder: OperationFolder) -> None:
        """Keep an operation as it is now. Raises PolynyaError or OSError."""
        result = folder.result()
        output = "" if result is None else folder.end_of_output(_KEPT_OUTPUT)
        kept = KeptOperation(folder.request(), folder.begun, result, output, folder.notes())
        self._store.put(self._path(kept.request.id), kept.data())

    def forget(self, names: Iterable[str]) -> None:
        """Remove operations that are kept no longer."""
        for name in names:
            self._store.delete(self._path(name))

    def restore(self, into: OperationStore, now: datetime) -> list[str]:
        """Write the operations that a folder does not have into it; returns their ids.

        Those that ended too long ago are removed. Raises PolynyaError or OSError.
        """
        have = {folder.path.name for folder in into.all()}
        restored: list[str] = []
        for info in self._store.list(self.folder):
            name = info.path.rpartition("/")[2].removesuffix(".json")
            if not info.path.endswith(".json") or name in have:
                continue
            try:
                kept = KeptOperation.of(self._store.read(info.path, _MOST_BYTES).data)
            except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
                # Another version wrote it, or somebody changed it: the others are restored.
                continue
            if kept.request.id != name or not into.is_name(name):
                continue
            if _age(kept, now) > KEPT:
                self._store.delete(info.path)
                continue
            into.restore(
                kept.request,
                begun=kept.begun,
                result=kept.result,
                output=kept.output,
                notes=kept.notes,
            )
            restored.append(name)
        return restored

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}.json"

    def _keep(self) -> None:
        held = False
        while True:
            self.lease.step()
            if self.lease.held != held:
                held = not held
                self.changed(held)
            if self._stop.wait(RENEW_SECONDS):
                return


def _age(kept: KeptOperation, now: datetime) -> timedelta:
    ended = kept.request.created if kept.result is None else kept.result.ended
    return now - datetime.fromisoformat(ended)
