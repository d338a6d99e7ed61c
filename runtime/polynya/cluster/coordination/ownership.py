"""Ownership of units: records, the decision to claim one, and the pace of claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from polynya.cluster.coordination.documents import UnitOwnership
from polynya.cluster.coordination.leases import LeaseTable, Verdict
from polynya.cluster.coordination.member_state import (
    SHORTEST,
    CoordinationPace,
    MemberAction,
    NodeIdentity,
    Together,
)
from polynya.cluster.coordination.store import (
    BATCH,
    DocumentStore,
    GoOn,
    StoredDocument,
    StoreError,
    attempted,
    error_line,
    unit_path,
)
from polynya.cluster.unit import JobKey
from polynya.model.error_catalogue.cluster import OWNERSHIP_CONTRADICTS
from polynya.store.clock import Clock

#: A record as it is, None when there is none, or why it could not be read.
Read: TypeAlias = StoredDocument[UnitOwnership] | StoreError | None
#: A record to write, and the version that it replaces: None when there is none.
Write: TypeAlias = tuple[UnitOwnership, str | None]


class OwnershipRecords:
    """The records below `units/`."""

    def __init__(self, document_store: DocumentStore, together: Together) -> None:
        self._document_store, self._together = document_store, together

    def read(self, units: Sequence[JobKey], go_on: GoOn) -> Iterator[dict[JobKey, Read]]:
        """The records, batch after batch, for as long as there is time; the first in any case."""
        for start in range(0, len(units), BATCH):
            if start and not go_on():
                return
            batch = units[start : start + BATCH]
            calls = [
                attempted(partial(self._document_store.read, UnitOwnership, unit_path(unit)))
                for unit in batch
            ]
            yield dict(zip(batch, self._together(calls), strict=True))

    def write(self, writes: Mapping[JobKey, Write]) -> dict[JobKey, bool | StoreError]:
        """Write each if it is unchanged. True: written; an error: unknown."""
        calls = [
            attempted(partial(self._document_store.write, unit_path(unit), record, version))
            for unit, (record, version) in writes.items()
        ]
        return dict(zip(writes, self._together(calls), strict=True))


@dataclass(frozen=True, slots=True)
class Claim:
    """Take it, in this epoch."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class ClaimLater:
    """Leave it for now."""

    reason: str


Decision: TypeAlias = Claim | ClaimLater


def decide(
    record: UnitOwnership | None,
    *,
    me: str,
    owner: Verdict,
    waited: float,
    hand_off: float,
    floor: int,
) -> Decision:
    """Decide about a unit that the leader wants this node to have.

    Args:
        record: its ownership, None when it never had an owner.
        me: our incarnation.
        owner: what the process in the record is.
        waited: seconds since this node saw this very record first.
        hand_off: how long an owner that lives is waited for.
        floor: the highest epoch that was seen of this unit anywhere, such as in its table.
    """
    if record is None:
        return Claim(floor + 1, "it had no owner before")
    epoch = max(record.epoch, floor) + 1
    if record.owner is None:
        return Claim(epoch, "its last owner released it")
    name = record.node or record.owner
    if record.owner == me:
        # Claimed by a write whose answer was lost, or kept since before our lease ran out.
        return Claim(epoch, "the record says that it is ours")
    if owner in {"gone", "dead"}:
        how = "left" if owner == "gone" else "did not renew its lease"
        return Claim(epoch, f"{name} {how}")
    if waited >= hand_off:
        # Safe: each commit of the former owner is refused from our first one on.
        return Claim(epoch, f"{name} did not release it within {hand_off:.0f} s")
    return ClaimLater(f"{name} still has it")


#: A turn makes about five requests besides its claims: fewer claims than this do not
#: justify an early turn.
_WORTH_A_TURN: Final = 10.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a node may claim.

    Attributes:
        per_second: claims that it gains.
        saved: claims that it keeps at most, hence those of one turn.
        hurries: whether its next turn comes soon when it may claim no more in this one.
    """

    per_second: float
    saved: float
    hurries: bool


def allowance(pace: CoordinationPace, nodes: int) -> Allowance:
    """The share of one node among several.

    Units for all nodes can come at one moment. Then every node has saved all that it may, and all
    use it up within one turn. So the share is at most the gain from one turn to the next; more
    savings would be added to the gain since.
    """
    part = pace.claims_per_second / nodes
    hurries = part * pace.soon >= _WORTH_A_TURN
    between = pace.soon if hurries else SHORTEST * pace.turn
    return Allowance(
        per_second=min(pace.most / pace.turn, part),
        saved=max(1.0, min(float(pace.most), part * between)),
        hurries=hurries,
    )


@dataclass(frozen=True, slots=True)
class _Held:
    """A unit that is ours in `epoch`. `sure`: the record was read while our lease was trusted."""

    epoch: int
    sure: bool
    read_at: float


class OwnedUnits:
    """What an incarnation owns.

    Attributes:
        me: the incarnation.
        floors: of units that are not ours, the highest epoch that was seen of them anywhere.
        actions, troubles: of the current turn.
    """

    def __init__(self, records: OwnershipRecords, clock: Clock, pace: CoordinationPace) -> None:
        self._records, self._clock, self._pace = records, clock, pace
        self._held: dict[JobKey, _Held] = {}
        self.me = ""
        self.floors: dict[JobKey, int] = {}
        self.actions: list[MemberAction] = []
        self.troubles: list[str] = []

    @property
    def units(self) -> frozenset[JobKey]:
        """What is ours, as far as known."""
        return frozenset(self._held)

    def sure(self) -> dict[JobKey, int]:
        """What is ours for sure, with the epoch."""
        return {unit: held.epoch for unit, held in self._held.items() if held.sure}

    def begin(self, me: str) -> None:
        """Be another incarnation from now on, which owns nothing."""
        for unit in sorted(self._held):
            self._lose(unit, "this node lost its lease")
        self.me = me

    def doubt(self) -> None:
        """Our lease was not trusted for a while: reread each record."""
        self._held = {unit: replace(held, sure=False) for unit, held in self._held.items()}

    def take(self, unit: JobKey, epoch: int, reason: str) -> None:
        """Its record says that it is ours from now on."""
        self._held[unit] = _Held(epoch, sure=True, read_at=self._clock.monotonic())
        self.floors.pop(unit, None)
        self.actions.append(MemberAction("claimed", unit, reason, epoch))

    def check(self, go_on: GoOn) -> None:
        """Read the records of what is not sure, and those of some others in rotation."""
        doubtful = sorted(unit for unit, held in self._held.items() if not held.sure)
        others = sorted((held.read_at, unit) for unit, held in self._held.items() if held.sure)
        audited = [unit for _, unit in others[: self._pace.audits]]
        for batch in self._records.read([*doubtful, *audited], go_on):
            now = self._clock.monotonic()
            for unit in self._ours(batch):
                self._held[unit] = replace(self._held[unit], sure=True, read_at=now)

    def fenced(self, epochs: Mapping[JobKey, int], go_on: GoOn) -> None:
        """Tables have other epochs: raise the epoch of units that the records still give us."""
        raised = []
        for unit, epoch in sorted(epochs.items()):
            held = self._held.get(unit)
            if held is not None:
                # Whatever comes of it: first the record has to say that the unit is still ours.
                self._held[unit] = replace(held, sure=False)
            if held is None or held.epoch <= epoch:
                self.floors[unit] = max(epoch, self.floors.get(unit, 0))
                raised += [unit] if held is not None else []
        self._rewrite(raised, self._raise, self._raised, go_on)

    def release(self, units: Iterable[JobKey], reason: str, go_on: GoOn) -> None:
        """Release units: then they have no owner."""

        def freed(record: UnitOwnership, _: JobKey) -> UnitOwnership:
            update = {"owner": None, "node": None, "since": self._clock.now(), "reason": reason}
            return record.model_copy(update=update)

        def done(unit: JobKey, _: UnitOwnership) -> None:
            held = self._held.pop(unit)
            self.actions.append(MemberAction("released", unit, reason, held.epoch))

        self._rewrite(sorted(units)[: self._pace.most], freed, done, go_on)

    def _raise(self, record: UnitOwnership, unit: JobKey) -> UnitOwnership:
        epoch = max(record.epoch, self.floors[unit]) + 1
        reason = f"its table was in epoch {self.floors[unit]}"
        return record.model_copy(update={"epoch": epoch, "reason": reason})

    def _raised(self, unit: JobKey, record: UnitOwnership) -> None:
        now = self._clock.monotonic()
        self._held[unit] = _Held(record.epoch, sure=True, read_at=now)
        self.floors.pop(unit, None)
        self.actions.append(MemberAction("raised", unit, record.reason, record.epoch))

    def _rewrite(
        self,
        units: list[JobKey],
        change: Callable[[UnitOwnership, JobKey], UnitOwnership],
        done: Callable[[JobKey, UnitOwnership], None],
        go_on: GoOn,
    ) -> None:
        """Change records that are still ours; a lost race is seen in the next turn."""
        for batch in self._records.read(units, go_on):
            writes: dict[JobKey, Write] = {
                unit: (change(found.document, unit), found.version)
                for unit, found in self._ours(batch).items()
            }
            for unit, result in self._records.write(writes).items():
                if result is True:
                    done(unit, writes[unit][0])
                    continue
                self._held[unit] = replace(self._held[unit], sure=False)
                if isinstance(result, Exception):
                    self.troubles.append(error_line(result))

    def _ours(self, batch: Mapping[JobKey, Read]) -> dict[JobKey, StoredDocument[UnitOwnership]]:
        """The records of units that are ours; the others are lost."""
        ours = {}
        for unit, read in batch.items():
            if isinstance(read, Exception):
                self.troubles.append(error_line(read))
                continue
            held = self._held[unit]
            if read is None or read.document.epoch < held.epoch:
                self.floors[unit] = max(held.epoch, self.floors.get(unit, 0))
                now = "gone" if read is None else f"in epoch {read.document.epoch}"
                self._alarm(unit, held.epoch, f"its record is {now}, and was ours")
            elif read.document.owner == self.me:
                # In a higher epoch after a write of ours whose answer was lost.
                self._held[unit] = replace(held, epoch=read.document.epoch)
                ours[unit] = read
            elif read.document.epoch == held.epoch and read.document.owner is not None:
                self._alarm(unit, held.epoch, f"{read.document.owner} has it in our epoch")
            else:
                owner = read.document.node or "no node"
                self._lose(unit, f"{owner} has it in epoch {read.document.epoch}")
        return ours

    def _alarm(self, unit: JobKey, epoch: int, reason: str) -> None:
        self.actions.append(MemberAction("alarm", unit, reason, epoch))
        self.troubles.append(f"{OWNERSHIP_CONTRADICTS.code}: {unit.task}, {unit.name}: {reason}")
        self._lose(unit, reason)

    def _lose(self, unit: JobKey, reason: str) -> None:
        held = self._held.pop(unit)
        self.actions.append(MemberAction("lost", unit, reason, held.epoch))


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A unit of another owner, whose record is in this version since then."""

    version: str
    since: float
    looked: float
    reason: str


class Claims:
    """What this node claims. `waiting`: units that it does not get yet, each with why."""

    def __init__(
        self,
        records: OwnershipRecords,
        lease_table: LeaseTable,
        owned_units: OwnedUnits,
        *,
        me: NodeIdentity,
        clock: Clock,
    ) -> None:
        self._records, self._lease_table, self._owned_units = records, lease_table, owned_units
        self._me, self._clock, self._pace = me, clock, lease_table.pace
        self._waiting: dict[JobKey, _Waiting] = {}
        # Claims that may still be made late, each with the version of the record that it replaces.
        self._unsure: dict[JobKey, str | None] = {}
        self._allowed, self._allowed_at = 0.0, -math.inf

    @property
    def waiting(self) -> dict[JobKey, str]:
        """Units that are still of others, each with what it waits for."""
        return {unit: one.reason for unit, one in self._waiting.items()}

    def turn(self, planned: Collection[JobKey], go_on: GoOn) -> bool:
        """Claim what may be claimed. True when there is more, for a turn that comes soon."""
        open_ = set(planned) - self._owned_units.units
        self._waiting = {unit: one for unit, one in self._waiting.items() if unit in open_}
        allowed = allowance(self._pace, self._lease_table.renewing())
        self._refill(allowed)
        # Units without a known owner come first, then those that were examined longest ago.
        fresh = sorted(open_ - self._waiting.keys())
        stale = sorted(self._waiting, key=lambda unit: (self._waiting[unit].looked, unit))
        fresh_now = fresh[: min(int(self._allowed), self._pace.most)]
        looked = [*fresh_now, *stale][: self._pace.most]
        for batch in self._records.read(looked, go_on):
            self._claim(batch)
        self._settle([unit for unit in self._unsure if unit not in open_], go_on)
        return allowed.hurries and len(fresh) > len(fresh_now)

    def _settle(self, units: list[JobKey], go_on: GoOn) -> None:
        """Find the outcome of claims without an answer, for units that are planned elsewhere now.

        A claim that succeeded after all is ours, and is released like all units of other plans.
        """
        for batch in self._records.read(units[: self._pace.most], go_on):
            for unit, read in batch.items():
                if isinstance(read, Exception):
                    continue
                self._forget_settled(unit, read)
                held = unit in self._owned_units.units
                if read is not None and read.document.owner == self._owned_units.me and not held:
                    # One more that comes late only raises the epoch.
                    reason = "a claim that got no answer was made"
                    self._owned_units.take(unit, read.document.epoch, reason)

    def _forget_settled(self, unit: JobKey, read: StoredDocument[UnitOwnership] | None) -> None:
        """Forget a claim that can no longer succeed: it only replaces the version that it saw."""
        version = self._unsure.pop(unit, "")
        if version == (None if read is None else read.version):
            # Last in the order in which they are looked at.
            self._unsure[unit] = version

    def _refill(self, allowed: Allowance) -> None:
        now = self._clock.monotonic()
        gained = (now - self._allowed_at) * allowed.per_second
        self._allowed, self._allowed_at = min(self._allowed + gained, allowed.saved), now

    def _claim(self, batch: Mapping[JobKey, Read]) -> None:
        now = self._clock.monotonic()
        owners = {
            read.document.owner for read in batch.values() if isinstance(read, StoredDocument)
        }
        others = {one for one in owners if one is not None and one != self._owned_units.me}
        verdicts = self._lease_table.verdicts(others)
        writes: dict[JobKey, Write] = {}
        for unit, read in batch.items():
            if isinstance(read, Exception):
                self._owned_units.troubles.append(error_line(read))
                continue
            self._forget_settled(unit, read)
            since = self._since(unit, read, now)
            record = None if read is None else read.document
            decision = decide(
                record,
                me=self._owned_units.me,
                owner=_verdict(record, verdicts),
                waited=now - since,
                hand_off=self._pace.hand_off,
                floor=self._owned_units.floors.get(unit, 0),
            )
            if isinstance(decision, Claim) and self._allowed >= 1:
                self._allowed -= 1
                writes[unit] = (self._ours(record, decision), read.version if read else None)
            elif read is not None:
                self._waiting[unit] = _Waiting(read.version, since, now, decision.reason)
        self._write(writes)

    def _since(self, unit: JobKey, read: StoredDocument[UnitOwnership] | None, now: float) -> float:
        """When this record was seen first, in its version."""
        waiting = self._waiting.get(unit)
        same = waiting is not None and read is not None and waiting.version == read.version
        return waiting.since if waiting is not None and same else now

    def _ours(self, record: UnitOwnership | None, claim: Claim) -> UnitOwnership:
        now = self._clock.now()
        update = {
            "owner": self._owned_units.me,
            "node": self._me.node,
            "epoch": claim.epoch,
            "since": now,
            "reason": claim.reason,
        }
        return (record or UnitOwnership(epoch=0, since=now)).model_copy(update=update)

    def _write(self, writes: Mapping[JobKey, Write]) -> None:
        for unit, result in self._records.write(writes).items():
            record = writes[unit][0]
            if result is True:
                self._unsure.pop(unit, None)
                self._waiting.pop(unit, None)
                self._owned_units.take(unit, record.epoch, record.reason)
                continue
            # It may have been written after all, whatever the store answered: the record shows it.
            self._unsure[unit] = writes[unit][1]
            if isinstance(result, Exception):
                self._owned_units.troubles.append(error_line(result))


def _verdict(record: UnitOwnership | None, verdicts: Mapping[str, Verdict]) -> Verdict:
    if record is None or record.owner is None:
        return "gone"
    return verdicts.get(record.owner, "unknown")
