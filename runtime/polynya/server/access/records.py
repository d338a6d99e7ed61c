"""Small JSON objects of the server in the state of its target: one for each token and session.

They lie below `.polynya/access` of the warehouse, hold no secret, and are read at most every few
seconds, so that what another process revokes is refused soon.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

#: Below the warehouse of the target.
FOLDER: Final = ".polynya/access"
#: For so many seconds a record that was read is used without another look.
FRESH_SECONDS: Final = 5.0
_MAX_BYTES: Final = 64 * 1024
_MAX_CACHED: Final = 10_000
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")


class AccessRecord(BaseModel):
    """Base of the records; a field of a newer version is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


R = TypeVar("R", bound=AccessRecord)


def digest(secret: str) -> str:
    """The hash under which a random secret of 256 bits is kept: SHA-256, in hex.

    A slow hash would protect guessable passwords; these cannot be guessed.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


class RecordFolder(Generic[R]):
    """The records of one kind, by key. Usable from many threads."""

    def __init__(self, store: ObjectStore, name: str, model: type[R], clock: Clock) -> None:
        self._store, self._model, self._clock = store, model, clock
        self._folder = f"{FOLDER}/{name}"
        self._known: dict[str, tuple[float, R | None]] = {}
        self._lock = threading.Lock()

    def get(self, key: str, *, fresh: bool = False) -> R | None:
        """The record of a key, None if there is none; at most `FRESH_SECONDS` old.

        With `fresh` it is read in any case. A damaged one counts as missing.
        """
        if not _KEY.fullmatch(key):
            return None
        now = self._clock.monotonic()
        with self._lock:
            read, record = self._known.get(key, (-FRESH_SECONDS, None))
        if not fresh and record is not None and now - read < FRESH_SECONDS:
            return record
        record = self._read(key)
        self._remember(key, record)
        return record

    def put(self, key: str, record: R) -> None:
        """Write a record."""
        self._store.put(self._path(key), record.model_dump_json().encode())
        self._remember(key, record)

    def create(self, key: str, record: R) -> None:
        """Write a new record. Raises FileExistsError."""
        if not self._store.put_if_absent(self._path(key), record.model_dump_json().encode()):
            raise FileExistsError(key)
        self._remember(key, record)

    def update(self, key: str, record: R) -> bool:
        """Write a record that still exists; one that was deleted meanwhile stays deleted."""
        try:
            version = self._store.read(self._path(key), _MAX_BYTES).version
        except FileNotFoundError:
            self._remember(key, None)
            return False
        data = record.model_dump_json().encode()
        written = self._store.put_if_unchanged(self._path(key), data, version)
        self._remember(key, record if written else None)
        return written

    def delete(self, key: str) -> None:
        """Remove a record; a missing one is ignored."""
        if _KEY.fullmatch(key):
            self._store.delete(self._path(key))
            self._remember(key, None)

    def all(self) -> Iterator[tuple[str, R]]:
        """All records with their keys, in the order of the keys, as they are now."""
        for info in self._store.list(self._folder):
            key = info.path.rpartition("/")[2].removesuffix(".json")
            if _KEY.fullmatch(key) and (record := self._read(key)) is not None:
                yield key, record

    def _path(self, key: str) -> str:
        if not _KEY.fullmatch(key):
            raise ValueError(key)
        return f"{self._folder}/{key}.json"

    def _read(self, key: str) -> R | None:
        try:
            data = self._store.read(self._path(key), _MAX_BYTES).data
            return self._model.model_validate_json(data)
        except (FileNotFoundError, ValidationError):
            return None

    def _remember(self, key: str, record: R | None) -> None:
        with self._lock:
            if record is None:
                self._known.pop(key, None)
                return
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            self._known[key] = self._clock.monotonic(), record
