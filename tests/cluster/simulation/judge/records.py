"""What has to hold of each change of an object of the cluster, read without the code under test."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.cluster.simulation.judge.leases import Leases
from tests.cluster.simulation.parts.store import Write

Fields: TypeAlias = dict[str, Any]

TTL = 30.0
HAND_OFF = 90.0
FORGET = 3600.0
#: A turn lasts so long at most: who was dead when it began may be taken from in it.
TURN = 30.0
#: Clocks of the simulation drift by 2 % at most, and one that runs fast waits less.
DRIFT = 0.95
FOREIGN = "written-by-a-later-version"


class Records:
    """Checks changes; `fail` gets what is wrong.

    Attributes:
        owners: of each unit, the epochs that it was given and to whom.
        claims: how often a unit got an owner; `claimed_at` when, `claimed_by` when each did last.
        held: of each unit, from when on who owned it, by node id; None: nobody.
        lost_at: when an owner lost a unit, by both.
    """

    def __init__(self, now: Callable[[], float], fail: Callable[[str], None]) -> None:
        self._now, self._fail = now, fail
        self.leases = Leases()
        self.owners: dict[str, dict[int, str]] = {}
        self.claims = 0
        self.claimed_at: dict[str, list[float]] = {}
        self.claimed_by: dict[tuple[str, str], float] = {}
        self.held: dict[str, list[tuple[float, str | None]]] = {}
        self._written: dict[str, float] = {}
        self.lost_at: dict[tuple[str, str], float] = {}
        self._terms: dict[int, str] = {}
        self._planners: dict[int, str] = {}
        self._nonces: set[str] = set()

    def see(self, change: Write) -> None:
        """Check a change of an agent."""
        kind, _, rest = change.path.partition("/")[2].partition("/")
        if kind == "probes":
            return
        before = decoded(change.before)
        after = decoded(change.after)
        if before is not None and before.get("v") == 2:
            self._fail(f"{change.path} of a newer version was written over")
        if after is not None:
            self._check_body(change.path, before, after)
        if kind == "units":
            self._unit(change, rest, before, after)
        elif kind == "leader":
            self._leader(change, before, after)
        elif kind == "plans":
            self._plan(change, before, after)
        elif kind == "nodes":
            self._node(change, before, after)
        elif kind in {"freeze", "drains", "moves", "tasks"}:
            self._fail(f"an agent changed {change.path}, which is a person's")
        self._written[change.path] = self._now()

    def by_hand(self, change: Write) -> None:
        """Take note of a change that the simulation itself made."""
        self._written[change.path] = self._now()

    def _check_body(self, path: str, before: Fields | None, after: Fields) -> None:
        nonce = after.get("nonce")
        if not nonce or nonce in self._nonces:
            self._fail(f"{path} was written with nonce {nonce!r}, which is no new one")
        self._nonces.add(str(nonce))
        if before and FOREIGN in before and after.get(FOREIGN) != before[FOREIGN]:
            self._fail(f"{path} lost a field that it did not know")

    def _unit(self, change: Write, unit: str, before: Fields | None, after: Fields | None) -> None:
        if after is None:
            self._fail(f"the ownership of {unit} was deleted: its epochs begin again")
            return
        old = before or {"owner": None, "epoch": 0}
        if after["epoch"] < old["epoch"]:
            self._fail(f"the epoch of {unit} fell from {old['epoch']} to {after['epoch']}")
        owner = after["owner"]
        self.held.setdefault(unit, []).append((self._now(), after["node"]))
        if old["owner"] not in {None, owner}:
            self.lost_at[unit, str(old["owner"])] = self._now()
        self.lost_at.pop((unit, str(owner)), None)
        if owner is None:
            if after["epoch"] == old["epoch"] or old["owner"] is None:
                return
            self._fail(f"{unit} was released with another epoch")
            return
        known = self.owners.setdefault(unit, {}).setdefault(after["epoch"], owner)
        if known != owner:
            self._fail(f"epoch {after['epoch']} of {unit} was given to {known} and to {owner}")
        if owner != old["owner"]:
            self.claims += 1
            self.claimed_at.setdefault(unit, []).append(self._now())
            self.claimed_by[unit, str(owner)] = self._now()
            if old["owner"] is not None:
                self._taken(change.path, unit, str(old["owner"]), str(owner))

    def _taken(self, path: str, unit: str, old: str, new: str) -> None:
        """A unit was taken from an owner who had not released it."""
        lease = f"c/nodes/{old}"
        age = self._now() - self._written[path]
        if self._over(lease) or age >= HAND_OFF * DRIFT:
            return
        self._fail(f"{new} took {unit} from {old}, who lives and had it for {age:.1f} s only")

    def _over(self, lease: str) -> bool:
        """Whether its holder gave it up, or was silent for too long at a moment ago."""
        now = self._now()
        return self.leases.gone(lease) or self.leases.silence(lease, now - TURN, now) >= TTL * DRIFT

    def _leader(self, change: Write, before: Fields | None, after: Fields | None) -> None:
        if after is None:
            self._fail("the lease of the leader was deleted: its terms begin again")
            return
        old = before or {"incarnation": None, "term": 0}
        holder = after["incarnation"]
        if after["term"] < old["term"]:
            self._fail(f"the term fell from {old['term']} to {after['term']}")
        known = self._terms.setdefault(after["term"], holder) if holder else holder
        if holder and known != holder:
            self._fail(f"term {after['term']} had two leaders, {known} and {holder}")
        resigned = holder is None and self._planners.get(old["term"]) == change.process
        if old["incarnation"] not in {None, holder} and not resigned:
            over = self._over(change.path) or self._over(f"c/nodes/{old['incarnation']}")
            if not over:
                self._fail(f"{change.process} took the lead from {old['incarnation']}, who lives")
        if holder:
            self._planners[after["term"]] = change.process
        self.leases.renewed(change.path, change.sent, self._now(), holder)

    def _plan(self, change: Write, before: Fields | None, after: Fields | None) -> None:
        if after is None:
            return
        try:
            newest = (before or {}).get("term", 0), (before or {}).get("number", 0)
        except AttributeError:
            newest = 0, 0
        if self._planners.get(after["term"]) != change.process:
            self._fail(f"{change.process} planned in term {after['term']}, which is another's")
        if isinstance(newest[0], int) and after["term"] < newest[0]:
            self._fail(f"{change.path} of term {newest[0]} was replaced by one of {after['term']}")
        if (after["term"], after["number"]) == newest:
            self._fail(f"{change.path} was written twice as number {newest[1]} of its term")

    def _node(self, change: Write, before: Fields | None, after: Fields | None) -> None:
        if after is None:
            if before and before["state"] != "gone":
                self._fail(f"{change.path} was deleted while it said {before['state']}")
            if self._now() - self._written.get(change.path, 0.0) < FORGET * DRIFT:
                self._fail(f"{change.path} was deleted too early")
        elif before and before["state"] == "gone" and after["state"] != "gone":
            self._fail(f"{change.path} came back to life")
        state = None if after is None else str(after["state"])
        if state == "gone" or after is None:
            self.leases.state[change.path] = state
        else:
            self.leases.renewed(change.path, change.sent, self._now(), state)


def decoded(data: bytes | None) -> Fields | None:
    """The fields of a document, None when it is none."""
    if data is None:
        return None
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
