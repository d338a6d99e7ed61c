"""Which units a leader plans, and which nodes do not know one of them, by what the nodes tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field

from polynya.cluster.coordination.documents import Difference, Wanted, keys_of
from polynya.cluster.coordination.paths import (
    DIFFERENCES,
    WANTED,
    WANTED_UNITS,
    difference_path,
    name_of,
    node_of,
)
from polynya.cluster.coordination.register import Register
from polynya.cluster.coordination.shelf import GoOn, Shelf
from polynya.cluster.coordination.standing import Together
from polynya.cluster.unit import JobKey


@dataclass(frozen=True, slots=True)
class Known:
    """The units that some living node knows; of those that not all know, who does not."""

    units: frozenset[JobKey]
    unknown_to: Mapping[JobKey, frozenset[str]] = field(default_factory=dict)


def known(
    units: frozenset[JobKey], living: Collection[str], told: Mapping[str, Difference]
) -> Known:
    """What is known where.

    Args:
        units: that the leader knows.
        living: all incarnations that live.
        told: how they differ; who tells nothing knows what the leader knows.
    """
    having: dict[JobKey, set[str]] = {}
    lacking: dict[JobKey, set[str]] = {}
    for one in sorted(told.keys() & set(living)):
        for unit in keys_of(told[one].more) - units:
            having.setdefault(unit, set()).add(one)
        for unit in keys_of(told[one].less) & units:
            lacking.setdefault(unit, set()).add(one)
    # Few different sets, of many units.
    made: dict[frozenset[str], frozenset[str]] = {}
    everybody = frozenset(living)
    unknown_to = {unit: frozenset(nodes) for unit, nodes in lacking.items()}
    for unit, nodes in having.items():
        who = frozenset(nodes)
        unknown_to[unit] = made.setdefault(who, everybody - who)
    # The same set as long as nobody knows more: who compares it does not look at each unit.
    return Known(units | having.keys() if having else units, unknown_to)


class Knowledge:
    """What nodes tell of the units that they know; tells them what the leader knows."""

    def __init__(self, register: Register, together: Together) -> None:
        self._register = register
        self._wanted = Shelf(register, Wanted, WANTED, together)
        self._differences = Shelf(register, Difference, DIFFERENCES, together)

    @property
    def troubles(self) -> tuple[str, ...]:
        """What cannot be understood, and which nodes differ."""
        differ = [
            f"POLYNYA-AGT-055: {node_of(one)} has another configuration than the leader: it knows "
            f"{len(told.more)} units more and lacks {len(told.less)}"
            for one, told in sorted(self._told().items())
        ]
        return (*self._wanted.troubles, *self._differences.troubles, *differ)

    def refresh(self, go_on: GoOn) -> bool:
        """Read what changed. True when everything is read. Raises what the store raises."""
        return all([self._wanted.refresh(go_on), self._differences.refresh(go_on)])

    def publish(self, units: frozenset[JobKey], configuration: str) -> None:
        """Let all nodes know which units the leader knows. Raises what the store raises."""
        if self._wanted.newer(WANTED_UNITS):
            return
        found = self._wanted.documents.get(WANTED_UNITS)
        if found is not None and found.document.configuration == configuration:
            return
        before = found.document if found is not None else Wanted(configuration="")
        update = {"configuration": configuration, "units": tuple(sorted(units))}
        wanted = before.model_copy(update=update)
        # What somebody destroyed is written over: it is the leader's own.
        version = found.version if found is not None else self._wanted.damaged(WANTED_UNITS)
        if self._register.write(WANTED_UNITS, wanted, version):
            self._wanted.wrote(WANTED_UNITS, wanted)

    def known(self, units: frozenset[JobKey], living: Collection[str]) -> Known:
        """What is known where; see `known`."""
        return known(units, living, self._told())

    def tidy(self, listed: Set[str]) -> list[tuple[str, str]]:
        """What processes without a lease told: each object with its version."""
        here = {difference_path(one) for one in listed}
        documents = self._differences.documents.items()
        return [(path, found.version) for path, found in documents if path not in here]

    def _told(self) -> dict[str, Difference]:
        return {
            name_of(path.removeprefix(f"{DIFFERENCES}/")): found.document
            for path, found in self._differences.documents.items()
        }
