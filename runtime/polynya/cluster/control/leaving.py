"""A node that AWS recommends to leave: its work goes to others as soon as there are any.

The recommendation says that an interruption is more likely, not that one comes. So the node asks
for a drain of itself, as a person would, and lives on; alone it just goes on working.
"""

from __future__ import annotations

from contextlib import suppress

from polynya.cluster.control.wishes import Wishes
from polynya.cluster.coordination.standing import Standing
from polynya.model.errors import PolynyaError


class Leaving:
    """Asks for the drain of one node, with wishes that are its own.

    Called before each turn of the member, on the member's thread; what the store refuses is tried
    again before the next one.
    """

    def __init__(self, wishes: Wishes, node: str) -> None:
        self._wishes, self._node = wishes, node
        self._reason: str | None = None
        self._is_back = False

    def prefer(self, reason: str) -> None:
        """Leave when another node is ready. Usable from any thread."""
        self._reason = reason

    def __call__(self, standing: Standing) -> None:
        """Write or withdraw the wish."""
        with suppress(PolynyaError, OSError):
            if not self._is_back:
                # The instance that was to be left is gone, or was spared.
                self._wishes.undrain(self._node, own=True)
                self._is_back = True
            reason = self._reason
            if reason is not None and _has_heir(standing, self._node):
                self._wishes.drain(self._node, reason)
                self._reason = None


def _has_heir(standing: Standing, node: str) -> bool:
    return any(
        one.node != node and one.state == "ready" and not one.dead and one.drained_by is None
        for one in standing.nodes.values()
    )
