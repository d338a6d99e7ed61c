"""Claims of the units that the leader wants this node to have: so many in a turn, each in order."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from polynya.cluster.coordination.census import Census, Verdict
from polynya.cluster.coordination.documents import Ownership
from polynya.cluster.coordination.owning.decide import Claim, decide
from polynya.cluster.coordination.owning.holdings import Holdings
from polynya.cluster.coordination.owning.pacing import Allowance, allowance
from polynya.cluster.coordination.owning.records import Read, Records, Write
from polynya.cluster.coordination.register import Found
from polynya.cluster.coordination.shelf import GoOn, told
from polynya.cluster.coordination.standing import Me
from polynya.cluster.unit import JobKey
from polynya.store.clock import Clock


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
        self, records: Records, census: Census, holdings: Holdings, *, me: Me, clock: Clock
    ) -> None:
        self._records, self._census, self._holdings = records, census, holdings
        self._me, self._clock, self._pace = me, clock, census.pace
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
        open_ = set(planned) - self._holdings.units
        self._waiting = {unit: one for unit, one in self._waiting.items() if unit in open_}
        allowed = allowance(self._pace, self._census.renewing())
        self._refill(allowed)
        # What nobody is known to have comes first, then what was looked at longest ago.
        fresh = sorted(open_ - self._waiting.keys())
        stale = sorted(self._waiting, key=lambda unit: (self._waiting[unit].looked, unit))
        fresh_now = fresh[: min(int(self._allowed), self._pace.most)]
        looked = [*fresh_now, *stale][: self._pace.most]
        for batch in self._records.read(looked, go_on):
            self._claim(batch)
        self._settle([unit for unit in self._unsure if unit not in open_], go_on)
        return allowed.hurries and len(fresh) > len(fresh_now)

    def _settle(self, units: list[JobKey], go_on: GoOn) -> None:
        """See what became of claims that got no answer, of units that are planned elsewhere now.

        One that was made after all is ours, and it is released as all that others are to have.
        """
        for batch in self._records.read(units[: self._pace.most], go_on):
            for unit, read in batch.items():
                if isinstance(read, Exception):
                    continue
                self._forget_settled(unit, read)
                held = unit in self._holdings.units
                if read is not None and read.document.owner == self._holdings.me and not held:
                    # One more that comes late only raises the epoch.
                    reason = "a claim that got no answer was made"
                    self._holdings.take(unit, read.document.epoch, reason)

    def _forget_settled(self, unit: JobKey, read: Found[Ownership] | None) -> None:
        """Forget a claim that cannot be made any more: only over the version that it replaces."""
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
        owners = {read.document.owner for read in batch.values() if isinstance(read, Found)}
        others = {one for one in owners if one is not None and one != self._holdings.me}
        verdicts = self._census.verdicts(others)
        writes: dict[JobKey, Write] = {}
        for unit, read in batch.items():
            if isinstance(read, Exception):
                self._holdings.troubles.append(told(read))
                continue
            self._forget_settled(unit, read)
            since = self._since(unit, read, now)
            record = None if read is None else read.document
            decision = decide(
                record,
                me=self._holdings.me,
                owner=_verdict(record, verdicts),
                waited=now - since,
                hand_off=self._pace.hand_off,
                floor=self._holdings.floors.get(unit, 0),
            )
            if isinstance(decision, Claim) and self._allowed >= 1:
                self._allowed -= 1
                writes[unit] = (self._ours(record, decision), read.version if read else None)
            elif read is not None:
                self._waiting[unit] = _Waiting(read.version, since, now, decision.reason)
        self._write(writes)

    def _since(self, unit: JobKey, read: Found[Ownership] | None, now: float) -> float:
        """When this record was seen first, in its version."""
        waiting = self._waiting.get(unit)
        same = waiting is not None and read is not None and waiting.version == read.version
        return waiting.since if waiting is not None and same else now

    def _ours(self, record: Ownership | None, claim: Claim) -> Ownership:
        now = self._clock.now()
        update = {
            "owner": self._holdings.me,
            "node": self._me.node,
            "epoch": claim.epoch,
            "since": now,
            "reason": claim.reason,
        }
        return (record or Ownership(epoch=0, since=now)).model_copy(update=update)

    def _write(self, writes: Mapping[JobKey, Write]) -> None:
        for unit, result in self._records.write(writes).items():
            record = writes[unit][0]
            if result is True:
                self._unsure.pop(unit, None)
                self._waiting.pop(unit, None)
                self._holdings.take(unit, record.epoch, record.reason)
                continue
            # Whatever the store said, it may be written after all: the record will tell.
            self._unsure[unit] = writes[unit][1]
            if isinstance(result, Exception):
                self._holdings.troubles.append(told(result))


def _verdict(record: Ownership | None, verdicts: Mapping[str, Verdict]) -> Verdict:
    if record is None or record.owner is None:
        return "gone"
    return verdicts.get(record.owner, "unknown")
