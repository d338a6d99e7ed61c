"""Where the units that this node knows are others than those that the leader knows.

The leader plans by its own configuration, and a node works by its own. Both read the same files,
seconds apart; but one may be unable to read them, or lack what the other has from before a file was
broken. What lasts is said: then the leader plans each unit where it is known.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Final

from polynya.cluster.coordination.documents import Difference, Wanted
from polynya.cluster.coordination.paths import DIFFERENCES, WANTED_UNITS, difference_path
from polynya.cluster.coordination.register import Register
from polynya.cluster.coordination.standing import Pace
from polynya.cluster.unit import JobKey
from polynya.model.errors import OperationError
from polynya.store.clock import Clock

_DIGITS: Final = 32


@lru_cache(maxsize=2)
def fingerprint(units: frozenset[JobKey]) -> str:
    """The same for the same units, in every process and version."""
    listed = json.dumps([[unit.task, unit.name] for unit in sorted(units)])
    return hashlib.sha256(listed.encode()).hexdigest()[:_DIGITS]


class Knowing:
    """What this process tells about the units that it knows."""

    def __init__(self, register: Register, clock: Clock, pace: Pace) -> None:
        self._register, self._clock, self._pace = register, clock, pace
        self._me = ""
        self._since: float | None = None
        self._told_at: float | None = None

    def turn(self, me: str, units: frozenset[JobKey], leaders: str) -> None:
        """Say how our units differ when they have for long; take it back when they do no more.

        Args:
            me: our incarnation.
            units: that we know.
            leaders: fingerprint of those that the leader knows, empty when nobody says so.

        Raises what the store raises.
        """
        if me != self._me:
            self._me, self._since, self._told_at = me, None, None
        if not leaders:
            return
        if fingerprint(units) == leaders:
            self._since = None
            self._take_back()
            return
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        if self._told_at is not None or now - self._since >= self._pace.learn:
            self._tell(units, leaders)

    def _tell(self, units: frozenset[JobKey], leaders: str) -> None:
        ours, path = fingerprint(units), difference_path(self._me)
        try:
            found = self._register.read(Difference, path)
            version = None if found is None else found.version
        except OperationError:
            # Somebody destroyed it; it is our own.
            found, version = None, self._version()
        if found and (found.document.configuration, found.document.base) == (ours, leaders):
            return
        wanted = self._register.read(Wanted, WANTED_UNITS)
        if wanted is None or wanted.document.configuration != leaders:
            # The leader is about to write it.
            return
        theirs = wanted.document.keys()
        update = {
            "configuration": ours,
            "base": leaders,
            "more": tuple(sorted(units - theirs)),
            "less": tuple(sorted(theirs - units)),
        }
        before = found.document if found else Difference(configuration=ours, base=leaders)
        self._told_at = self._clock.monotonic()
        self._register.write(path, before.model_copy(update=update), version)

    def _take_back(self) -> None:
        """Delete it, and once more if a write whose answer was lost is made late."""
        if self._told_at is None:
            return
        version = self._version()
        if version is not None:
            self._register.delete(difference_path(self._me), version)
        elif self._clock.monotonic() - self._told_at >= self._pace.learn:
            self._told_at = None

    def _version(self) -> str | None:
        info = self._register.list(DIFFERENCES).get(difference_path(self._me))
        return None if info is None else info.version
