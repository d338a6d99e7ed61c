"""The state of a connection of the network agent, which changes once and not with each try."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from polynya.cluster.network.documents import Outage

#: One failed request is not an outage.
_OUTAGE_AFTER: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Link:
    """The state of a connection.

    Attributes:
        connected: as it is reported.
        since: of the state.
        reason: of the newest trouble, empty when there is none.
        failing_since: when the first of the failures came that last until now.
        outage: the last one that is over.
        fresh: never connected yet, so that what comes to an end then was no outage.
    """

    connected: bool
    since: datetime
    reason: str = ""
    failing_since: datetime | None = None
    outage: Outage | None = None
    fresh: bool = False

    @staticmethod
    def at_start(now: datetime) -> Link:
        """Before the first look."""
        return Link(connected=False, since=now, reason="it has just started", fresh=True)

    def after(self, trouble: str | None, now: datetime) -> Link:
        """The state after a look that met this trouble, None for none."""
        if trouble is None:
            if self.connected:
                return replace(self, reason="", failing_since=None)
            if self.fresh:
                return Link(connected=True, since=now)
            outage = Outage(since=self.since, until=now, reason=self.reason)
            return Link(connected=True, since=now, outage=outage)
        failing = self.failing_since or now
        if self.connected and now - failing >= _OUTAGE_AFTER:
            return Link(
                connected=False,
                since=failing,
                reason=trouble,
                failing_since=failing,
                outage=self.outage,
            )
        return replace(self, reason=trouble, failing_since=failing)
