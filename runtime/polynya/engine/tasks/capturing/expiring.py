"""Landed batches of a capture that are older than the task keeps them."""

from __future__ import annotations

from datetime import datetime

from polynya.gateway.landing.log import CaptureLog
from polynya.store.object_store import ObjectStore
from polynya.streaming.landing.retention import Numbered


class CapturedBatches:
    """The batches of one capture, for what removes old ones."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        self._store, self._log = store, CaptureLog(store, folder)

    def newest(self) -> Numbered | None:
        """See `Batches`."""
        return self._log.newest()

    def numbers(self) -> list[int]:
        """See `Batches`."""
        return self._log.numbers()

    def written_at(self, number: int) -> datetime | None:
        """See `Batches`. Raises OperationError for a batch that cannot be read."""
        try:
            self._store.size(self._log.path(number))
        except FileNotFoundError:
            return None
        return self._log.header(number).written_at

    def delete(self, number: int) -> None:
        """See `Batches`."""
        self._store.delete(self._log.path(number))
