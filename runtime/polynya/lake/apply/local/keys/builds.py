"""Work beside the applies: one thread, and no more of it than a process can wait for at its end."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final

log = logging.getLogger(__name__)

#: What may wait: a process that ends finishes what it has begun, and that first.
MOST_NS: Final = 5_000_000_000
_NICER: Final = 10


class Builds:
    """Jobs with a name, one after the other."""

    def __init__(self, most_ns: int = MOST_NS) -> None:
        self._most_ns = most_ns
        self._pool = ThreadPoolExecutor(1, "key-index", initializer=_yield_to_others)
        self._waiting: dict[str, tuple[int, Future[None]]] = {}
        self._lock = threading.Lock()

    def offer(self, name: str, cost_ns: int, job: Callable[[], None]) -> bool:
        """Do a job later; False when it is there already, or too much is.

        A single job may cost more than what may wait.
        """
        with self._lock:
            waiting = sum(cost for cost, _ in self._waiting.values())
            if name in self._waiting or (waiting and waiting + cost_ns > self._most_ns):
                return False
            try:
                future = self._pool.submit(self._do, name, job)
            except RuntimeError:  # the process ends
                return False
            self._waiting[name] = (cost_ns, future)
            return True

    def wait(self) -> None:
        """Until all is done that was offered."""
        with self._lock:
            futures = [future for _, future in self._waiting.values()]
        for future in futures:
            future.result()

    def _do(self, name: str, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception:
            # A thread of its own has nobody to tell.
            log.exception("an index of keys was not built")
        finally:
            with self._lock:
                del self._waiting[name]


def _yield_to_others() -> None:
    """Let this thread work when the cores have nothing better to do, where threads have ranks."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICER)
