"""Whether a cluster has more nodes than there is to share. The leader says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from polynya.cluster.coordination.standing import NodeSeen

#: Nodes that are replaced run beside those that replace them for some minutes.
_LASTING_SECONDS: Final = 900.0


class IdleNodes:
    """Says it when it lasts; `now` in monotonic seconds."""

    def __init__(self) -> None:
        self._since: float | None = None

    def trouble(self, nodes: Mapping[str, NodeSeen], units: int, now: float) -> str | None:
        """What is wrong with `units` of work for these nodes, None when nothing is."""
        ready = sum(
            not one.dead and one.state == "ready" and one.drained_by is None
            for one in nodes.values()
        )
        if ready <= max(units, 1):
            self._since = None
            return None
        if self._since is None:
            self._since = now
        if now - self._since < _LASTING_SECONDS:
            return None
        return (
            f"POLYNYA-AGT-050: {units} units of work for {ready} nodes, and one node at a time "
            "works on a unit: the others idle. Nothing is wrong with the data. fix: lower the "
            "`maximum` of the cluster, or its `minimum`"
        )
