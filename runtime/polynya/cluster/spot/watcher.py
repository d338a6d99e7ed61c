"""Asks the instance metadata service every few seconds, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from polynya.cluster.spot.advice import Advice, Said, advise
from polynya.cluster.spot.imds import Imds
from polynya.model.errors import PolynyaError

#: AWS recommends to look for a notice every five seconds.
EVERY_SECONDS: Final = 5.0


class SpotWatcher:
    """Tells each advice once, and once why the service cannot be asked, as long as that lasts.

    `advised` and `unheard` are called on the thread of the watcher.
    """

    def __init__(
        self,
        imds: Imds,
        advised: Callable[[Advice], None],
        unheard: Callable[[PolynyaError], None],
    ) -> None:
        self._imds, self._advised, self._unheard = imds, advised, unheard
        self._before: Advice | None = None
        self._silent: str | None = None

    def start(self, every_seconds: float = EVERY_SECONDS) -> None:
        """Look from now on, until the process ends."""

        def watch() -> None:
            pause = threading.Event()
            while not pause.wait(every_seconds):
                self.look()

        threading.Thread(target=watch, name="spot", daemon=True).start()

    def look(self) -> None:
        """Ask once, and tell what is new."""
        try:
            advice = advise(self._said())
        except PolynyaError as error:
            if str(error) != self._silent:
                self._silent = str(error)
                self._unheard(error)
            return
        self._silent = None
        before, self._before = self._before, advice
        if advice is not None and advice != before:
            self._advised(advice)

    def _said(self) -> Said:
        action = self._imds.get("spot/instance-action")
        if action is not None:
            # Nothing else matters, and whatever else is asked could fail.
            return Said(action=action)
        return Said(
            recommendation=self._imds.get("events/recommendations/rebalance"),
            lifecycle=self._imds.get("autoscaling/target-lifecycle-state"),
        )


def is_on_demand(imds: Imds | None) -> bool:
    """Whether this instance is one that AWS does not take back; also where there is no instance.

    Without an answer it counts as Spot: then nothing is put on it because it lasts.
    """
    if imds is None:
        return True
    try:
        return imds.get("instance-life-cycle") == "on-demand"
    except PolynyaError:
        return False
