"""Whether a run of faults is good enough, and whether it proves anything: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.cluster_faults.figures import Spread

NOTICE: Final = "notice or SIGTERM until all units are released"
COMMIT: Final = "release until the successor's first commit"
CRASH: Final = "crash until a unit has an owner"


@dataclass(frozen=True, slots=True)
class Limit:
    """Of the 99th percentile: so many leases for the protocol, and seconds for the work itself.

    A short lease makes the protocol fast, and no step of Spark.
    """

    leases: float
    seconds: float

    def of(self, lease: float) -> float:
        """In seconds."""
        return self.leases * lease + self.seconds


#: With the lease of the product, 30 s: 60 s, 15 s and 60 s.
LIMITS: Final[Mapping[str, Limit]] = {
    NOTICE: Limit(1.0, 30.0),
    COMMIT: Limit(0.25, 7.5),
    CRASH: Limit(2.0, 0.0),
}

#: For each fault at least so many of these have to be counted.
_LEAST: Final = {"claims": 0.4, "batches": 1.0, "rows": 15.0}
_SOME: Final = ("claims", "batches", "rows", "requests: applied, answer lost")
#: With so many faults each kind strikes a node that has something to lose.
_MANY: Final = 100


def too_late(spreads: Mapping[str, Spread | None], lease: float) -> tuple[str, ...]:
    """What took longer than it may."""
    return tuple(
        f"too late: {what}: p99 {spread.p99:.1f} s, at most {limit.of(lease):.1f} s"
        for what, limit in LIMITS.items()
        if (spread := spreads[what]) is not None and spread.p99 > limit.of(lease)
    )


def vacuous(
    counts: Mapping[str, int], spreads: Mapping[str, Spread | None], faults: int
) -> tuple[str, ...]:
    """Why a run that was to have so many faults proves nothing: what hardly happened in it."""
    found = []
    if counts.get("faults", 0) < faults:
        found.append(f"{counts.get('faults', 0)} of {faults} faults struck")
    for what in _SOME:
        least = max(1.0, _LEAST.get(what, 0.0) * faults)
        if counts.get(what, 0) < least:
            found.append(f"{what}: {counts.get(what, 0)}, at least {least:.0f}")
    if faults >= _MANY:
        found += [f"never measured: {what}" for what in LIMITS if spreads[what] is None]
    return tuple(f"it proves nothing: {why}" for why in found)
