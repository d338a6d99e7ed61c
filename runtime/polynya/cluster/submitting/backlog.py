"""The backlog of a job whose work is submitted, as its tables and landing zone show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from polynya.cluster.submitting.submission import Submission
from polynya.engine.verbs.unread import Unread
from polynya.engine.work.backlog import Backlog
from polynya.store.clock import Clock

#: Time between two looks, in seconds, and how many times as long as a look took.
_EVERY: Final = 60.0
_REST: Final = 20.0


class SeenBacklog:
    """Looks now and then, on the thread of the job, and tells the backlog.

    What cannot be looked at stays as it was seen last: figures are no reason for work to end.
    """

    def __init__(self, submission: Submission, backlog: Backlog, clock: Clock) -> None:
        self._submission, self._backlog, self._clock = submission, backlog, clock
        self._due = self._asked_due = float("-inf")
        self._known: set[str] = set()

    def look(self, *, active: bool, more: Callable[[], bool]) -> None:
        """Look if it is time.

        `active`: a run is under way, or may be. `more`: whether files landed since the last one
        began, so that there will be another. What such a run left unread brings none.
        """
        now = self._clock.monotonic()
        if self._submission.away and (active or now >= self._asked_due):
            self._backlog.elsewhere(wanted=active or more())
            self._asked_due = now + _EVERY
        if self._submission.unread is not None and now >= self._due:
            self._due = now + _EVERY
            self._look(self._submission.unread, active=active)

    def _look(self, unread: Callable[[], Unread], *, active: bool) -> None:
        began = self._clock.monotonic()
        try:
            found = unread()
        except Exception:  # noqa: BLE001 - whatever is wrong, the run itself will say
            return
        now = self._clock.monotonic()
        if not active:
            # Between two runs nobody works: that is no measure of the speed.
            self._backlog.resume(now)
        for subject in self._known - found.keys():
            self._backlog.found(subject, (), now)
        for subject, parts in found.items():
            self._backlog.found(subject, parts, now)
        self._known |= found.keys()
        self._due = now + max(_EVERY, _REST * (now - began))

    def ended(self) -> None:
        """A run has ended: what it left is looked at next."""
        if self._submission.away:
            self._backlog.elsewhere(wanted=False)
        self._due = self._asked_due = float("-inf")
