"""What AWS says about the end of this instance, as messages to the agent."""

from __future__ import annotations

from polynya.cluster.messages import DrainAsked, Inbox, LeaveAdvised, Noticed
from polynya.cluster.spot.advice import Advice, Wish
from polynya.cluster.spot.imds import Imds
from polynya.cluster.spot.watcher import SpotWatcher
from polynya.model.errors import PolynyaError
from polynya.observe.sharing import SpotAdvised, SpotUnheard


def watch_spot(imds: Imds, node: str, inbox: Inbox) -> None:
    """Ask for notices from now on."""

    def advised(advice: Advice) -> None:
        inbox.put(Noticed(SpotAdvised(subject=node, wish=advice.wish, reason=advice.reason)))
        if advice.wish is Wish.DRAIN:
            inbox.put(DrainAsked(advice.reason, advice.within_seconds))
        else:
            inbox.put(LeaveAdvised(advice.reason))

    def unheard(error: PolynyaError) -> None:
        inbox.put(Noticed(SpotUnheard(subject=node, error=error)))

    SpotWatcher(imds, advised, unheard).start()
