"""Whether a run of faults is good enough, and whether it proves anything: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.cluster_faults import figures
from tests.cluster_faults.faults import Struck
from tests.cluster_faults.figures import Said, Spread
from tests.cluster_faults.versions import AGAIN, BY_LATER

#: How long each took, by its name; None where it was never measured.
Spreads: TypeAlias = Mapping[str, Spread | None]

NOTICE: Final = "notice or SIGTERM until all units are released"
COMMIT: Final = "release until the successor's first commit"
CRASH: Final = "crash until a unit has an owner"


@dataclass(frozen=True, slots=True)
class Limit:
    """So many leases for the protocol, and seconds for the work itself.

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
_SOME: Final = ("claims", "batches", "rows", BY_LATER, AGAIN)
#: What only faults that overlap do.
_OF_STORE: Final = "requests: applied, answer lost"
#: With so many overlapping faults each kind strikes a node that has something to lose.
_MANY: Final = 100
#: With so many that strike alone each kind strikes at least once.
_EACH: Final = 4


def by_phase(
    said: Sequence[Said], struck: Sequence[Struck], alone: int, lease: float
) -> tuple[Spreads, Spreads]:
    """The figures of the first `alone` faults, and of those that overlapped after them."""
    overlap = struck[alone].at if len(struck) > alone else None
    first = [one for one in said if overlap is None or figures.moment(one) < overlap]
    # Who owned what when the second phase began was said in the first.
    return (
        _measured(first, first, struck[:alone], lease),
        _measured(said, said[len(first) :], struck[alone:], lease),
    )


def _measured(
    said: Sequence[Said], moves: Sequence[Said], struck: Sequence[Struck], lease: float
) -> Spreads:
    return {
        NOTICE: Spread.of(list(figures.notice_to_released(said, struck))),
        COMMIT: Spread.of(list(figures.release_to_commit(moves))),
        CRASH: Spread.of(list(figures.crash_to_claimed(said, struck, lease))),
    }


def too_late(alone: Spreads, overlapping: Spreads, lease: float) -> tuple[str, ...]:
    """What took longer than it may: the 99th percentile of faults that struck one at a time.

    Of overlapping faults it is the median, since the next one often strikes the successor, too.
    """
    found = []
    for what, limit in LIMITS.items():
        most = limit.of(lease)
        if (one := alone[what]) is not None and one.p99 > most:
            found.append(f"too late: {what}: p99 {one.p99:.1f} s, at most {most:.1f} s")
        if (one := overlapping[what]) is not None and one.median > most:
            found.append(f"too late: {what}: median {one.median:.1f} s, at most {most:.1f} s")
    return tuple(found)


def vacuous(
    counts: Mapping[str, int], alone: Spreads, overlapping: Spreads, *, faults: Mapping[str, int]
) -> tuple[str, ...]:
    """Why a run proves nothing: what hardly happened in it.

    `faults` is how many were to strike `alone` and `overlapping`.
    """
    wanted = sum(faults.values())
    found = []
    if counts.get("faults", 0) < wanted:
        found.append(f"{counts.get('faults', 0)} of {wanted} faults struck")
    for what in (*_SOME, *([_OF_STORE] if faults["overlapping"] else [])):
        least = max(1.0, _LEAST.get(what, 0.0) * wanted)
        if counts.get(what, 0) < least:
            found.append(f"{what}: {counts.get(what, 0)}, at least {least:.0f}")
    if faults["alone"] >= _EACH:
        found += [f"never measured alone: {what}" for what in LIMITS if alone[what] is None]
    if faults["overlapping"] >= _MANY:
        found += [f"never measured: {what}" for what in LIMITS if overlapping[what] is None]
    return tuple(f"it proves nothing: {why}" for why in found)
