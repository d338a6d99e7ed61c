"""Bugs in who takes and gives up units, and with which epoch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from polynya.cluster.coordination import ownership, store
from polynya.cluster.coordination.documents import D, Document, UnitOwnership
from polynya.cluster.coordination.member import Member
from polynya.cluster.coordination.member_state import MemberState, NodeFacts
from polynya.cluster.coordination.ownership import Claim, Decision, OwnedUnits, decide
from polynya.cluster.coordination.store import GoOn
from tests.cluster.simulation.drill import Under
from tests.cluster.simulation.planted.bug import Bug, Patch
from tests.cluster.simulation.planted.leases import paced


def claims(epoch: Callable[[UnitOwnership | None, Claim], int]) -> Callable[..., Decision]:
    """Decide as usual, and claim in another epoch."""

    def decided(record: UnitOwnership | None, **facts: Any) -> Decision:
        found = decide(record, **facts)
        return replace(found, epoch=epoch(record, found)) if isinstance(found, Claim) else found

    return decided


def same_epoch(record: UnitOwnership | None, claim: Claim) -> int:
    """The one of the owner before."""
    return claim.epoch if record is None else record.epoch


def first_epoch_again(record: UnitOwnership | None, claim: Claim) -> int:
    """A unit that was released begins from 1."""
    return 1 if record is not None and record.owner is None else claim.epoch


class Impatient(Member):
    """Releases what it is told to, while it works on it."""

    def turn(self, seen: NodeFacts) -> MemberState:
        """Claims that nothing works."""
        return super().turn(replace(seen, working=frozenset()))


class Deaf(Member):
    """Does not hear that its tables are of another epoch."""

    def turn(self, seen: NodeFacts) -> MemberState:
        """Drops what was fenced."""
        return super().turn(replace(seen, fenced={}))


class Greedy(Member):
    """Works on what is planned for it, without a record that says so."""

    def turn(self, seen: NodeFacts) -> MemberState:
        """Grants all of the plan."""
        member_state = super().turn(seen)
        planned = {unit: 1 for unit in self._plan.units if unit in (seen.wanted or ())}
        return replace(member_state, grants={**planned, **member_state.grants})


def forgetful(self: Document) -> bytes:
    """Writes only the fields that this version knows."""
    known = self.model_dump(include=set(type(self).model_fields), mode="json")
    return json.dumps(known).encode()


def parsed_anyway(kind: type[D], data: bytes, where: str) -> D:
    """Whatever the version is."""
    del where
    return kind.model_validate_json(data.replace(b'"v": 2', b'"v": 1'))


def doubtless(self: OwnedUnits) -> None:
    """After its lease had run out a node goes on with what it had."""


def unchecked(self: OwnedUnits, go_on: GoOn) -> None:
    """Nobody ever looks whether a record still says what it said."""


OWNING = (
    Bug(
        "a new owner has the epoch of the last one",
        "KIP-1251",
        lambda: (Patch(ownership, "decide", claims(same_epoch)),),
    ),
    Bug(
        "epochs begin again after a release",
        "a job id that changes: iceberg#14090",
        lambda: (Patch(ownership, "decide", claims(first_epoch_again)),),
    ),
    Bug(
        "a unit is claimed before its owner released it",
        "Kafka before KIP-429",
        under=Under(member=paced(hand_off=0.0)),
    ),
    Bug(
        "an owner that never releases is waited for without end",
        "KCL#1718, #1729, #1743, #1765",
        under=Under(member=paced(hand_off=1e9)),
    ),
    Bug(
        "a unit is released while its job works",
        "stop not awaited: iceberg#14395",
        under=Under(member=Impatient),
    ),
    Bug(
        "a fenced unit keeps its epoch",
        "-",
        under=Under(member=Deaf),
    ),
    Bug(
        "a node works on its plan without owning it",
        "two coordinators: iceberg#17637",
        under=Under(member=Greedy),
    ),
    Bug(
        "records are not read again after a lease ran out",
        "KIP-848 without KIP-1251",
        lambda: (Patch(OwnedUnits, "doubt", doubtless), Patch(OwnedUnits, "check", unchecked)),
    ),
    Bug(
        "fields of a later version are lost",
        "rolling upgrades",
        lambda: (Patch(Document, "encoded", forgetful),),
    ),
    Bug(
        "a record of a later version is written over",
        "rolling upgrades",
        lambda: (Patch(store, "parse", parsed_anyway),),
    ),
)
