"""Gossip as a port: how the rest of an agent tells and hears."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from polynya.cluster.gossip.messages import HintKind, Picture, Report


class Gossip(Protocol):
    """What a node tells the others and hears of them. Usable from many threads; nothing waits."""

    def tell(self, report: Report) -> None:
        """Tell this from now on, with every heartbeat."""
        ...

    def hint(self, kind: HintKind, to: Iterable[str] = ()) -> None:
        """Let these incarnations look at the store soon; all of them when none is named."""
        ...

    def heard(self) -> Picture:
        """What is known of the others now."""
        ...

    def stop(self) -> None:
        """Tell and hear nothing from now on."""
        ...


class Silence:
    """A node without a stream: nobody hears what it tells."""

    def tell(self, report: Report) -> None:
        """See `Gossip`."""

    def hint(self, kind: HintKind, to: Iterable[str] = ()) -> None:
        """See `Gossip`."""

    def heard(self) -> Picture:
        """Nothing."""
        return Picture()

    def stop(self) -> None:
        """See `Gossip`."""
