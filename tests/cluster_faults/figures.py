"""How long moves took, from what agents said: pure. All in seconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

from tests.cluster_faults.faults import Kind, Struck

Said = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Spread:
    """Some durations."""

    count: int
    median: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """None of nothing."""
        if not values:
            return None
        ordered = sorted(values)
        p99 = ordered[ceil(0.99 * len(ordered)) - 1]
        return cls(len(ordered), ordered[len(ordered) // 2], p99, ordered[-1])


def notice_to_released(said: Sequence[Said], struck: Sequence[Struck]) -> Iterator[float]:
    """From each notice or SIGTERM until the last unit of the node was released."""
    for one in struck:
        if one.kind not in (Kind.SPOT, Kind.END):
            continue
        ends = next((moment(e) for e in said if e["type"] == "agent.stopped" and _is(e, one)), None)
        released = [
            moment(e)
            for e in said
            if e["type"] == "unit.released" and _is(e, one) and (ends is None or moment(e) <= ends)
        ]
        if released:
            yield (max(released) - one.at).total_seconds()


def release_to_commit(said: Sequence[Said]) -> Iterator[float]:
    """From each release until the successor's first commit of the unit's table.

    Of successors that kept the unit until then.
    """
    released: dict[str, datetime] = {}
    claimed: dict[str, tuple[datetime, str]] = {}
    for event in said:
        kind, unit = event["type"], event["subject"]
        if kind == "unit.released":
            released[unit] = moment(event)
            claimed.pop(unit, None)
        elif kind == "unit.claimed" and unit in released:
            claimed[unit] = (released.pop(unit), event["node"])
        elif kind == "unit.claimed" or kind == "unit.lost":
            claimed.pop(unit, None)
        elif kind == "batch.copied" and unit in claimed and claimed[unit][1] == event["node"]:
            since, _ = claimed.pop(unit)
            yield (moment(event) - since).total_seconds()


def crash_to_claimed(
    said: Sequence[Said], struck: Sequence[Struck], lease: float
) -> Iterator[float]:
    """From each crash until each unit of the node has an owner again.

    A process that stands still for longer than two leases counts as a crash.
    """
    for one in struck:
        lasting = one.kind is Kind.STOP and one.seconds > 1.5 * lease
        if one.kind is not Kind.KILL and not lasting:
            continue
        after = [e for e in said if e["type"] == "unit.claimed" and moment(e) > one.at]
        for unit in owned(said, one.node, one.at):
            claimed = next((moment(e) for e in after if e["subject"] == unit), None)
            if claimed is not None:
                yield (claimed - one.at).total_seconds()


def owned(said: Sequence[Said], node: str, at: datetime) -> set[str]:
    """Units that a node had at a moment."""
    owners: dict[str, str] = {}
    for event in said:
        if moment(event) > at:
            break
        if event["type"] in ("unit.claimed", "unit.raised"):
            owners[event["subject"]] = event["node"]
        elif event["type"] in ("unit.released", "unit.lost") and (
            owners.get(event["subject"]) == event["node"]
        ):
            del owners[event["subject"]]
    return {unit for unit, owner in owners.items() if owner == node}


def batches(said: Sequence[Said]) -> dict[str, int]:
    """Batches that each node copied."""
    found: dict[str, int] = defaultdict(int)
    for event in said:
        found[event["node"]] += event["type"] == "batch.copied"
    return dict(found)


def _is(event: Said, one: Struck) -> bool:
    return bool(event["node"] == one.node and moment(event) > one.at)


def moment(event: Said) -> datetime:
    """When it was said."""
    return datetime.fromisoformat(event["at"])
