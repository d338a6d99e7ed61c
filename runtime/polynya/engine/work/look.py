"""What has landed for a task whose datasets share one folder, listed once for all of them.

Five hundred datasets that each list the whole folder every two seconds would do nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from polynya.engine.work.turns.unit import Turn
from polynya.formats.files.discovery import Landed
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectInfo

#: A list that is younger, in seconds, is taken by the next dataset too.
_FRESH_SECONDS: Final = 1.0


class SharedLook:
    """The newest list of files.

    It only ever gets newer: a position that forgot a file because it left never sees it again.
    """

    def __init__(self, list_files: Callable[[], list[ObjectInfo]], clock: Clock) -> None:
        self._list = list_files
        self._clock = clock
        self._lock = threading.Lock()
        self._files = Landed()
        self._at: float | None = None

    def files(self, turn: Turn) -> Landed:
        """All that has landed; a moment ago unless the turn is to copy all at once."""
        with self._lock:
            now = self._clock.monotonic()
            if turn.at_once or self._at is None or now - self._at >= _FRESH_SECONDS:
                self._files, self._at = Landed(self._list()), now
            return self._files

    def paths(self) -> frozenset[str]:
        """Every file of the newest list."""
        with self._lock:
            return self._files.paths
