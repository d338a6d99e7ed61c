"""Since when a lease was not renewed, by this machine's monotonic clock alone. Pure.

A lease is dead when its version has not changed for the time to live since it was first seen here.
No clock of another machine is ever looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class _Sighting:
    """`counted_to`: the moment up to which `silent` was counted."""

    version: str
    counted_to: float
    silent: float = 0.0


class Sightings:
    """What was seen of leases, look after look.

    Args:
        longest_gap: seconds between two looks that count as silence at most. While the store could
            not be seen, by this node or by anybody, no owner could be seen to renew either: after
            an outage nobody is dead at once.
    """

    def __init__(self, longest_gap: float) -> None:
        self._longest_gap = longest_gap
        self._seen: dict[str, _Sighting] = {}

    def look(self, versions: Mapping[str, str], *, asked: float, answered: float) -> None:
        """Take note of all leases that there are, by their versions.

        What is in an answer was written before it came; what is the same in a later answer was the
        same when that one was asked for. So silence counts from an answer to the last question.
        """
        seen: dict[str, _Sighting] = {}
        for path, version in versions.items():
            sighting = self._seen.get(path)
            if sighting is None:
                sighting = _Sighting(version, counted_to=answered)
            elif sighting.version != version:
                sighting.version, sighting.counted_to, sighting.silent = version, answered, 0.0
            elif asked > sighting.counted_to:
                sighting.silent += min(asked - sighting.counted_to, self._longest_gap)
                sighting.counted_to = asked
            seen[path] = sighting
        self._seen = seen

    def silent(self, path: str) -> float | None:
        """Seconds of silence of a lease, None when there is none."""
        sighting = self._seen.get(path)
        return None if sighting is None else sighting.silent
