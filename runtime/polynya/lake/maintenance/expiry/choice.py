"""Which snapshots expire, decided from the metadata of a table alone.

A snapshot is in use until another one takes its place. So its age counts from then on, and not from
when it was made: of a table that nobody wrote to for a week, a query reads a snapshot that is a
week old. A query that is shorter than `Keep.age` needs nothing else to be safe.

Every commit writes the entries of all snapshots again, so of a table with a commit every two
seconds not all of `Keep.age` stays: no more than `Keep.at_most`, but what was current within
`LEAST_AGE` in any case. There is no thinning out: Iceberg forgets which snapshot was current when
before one that is missing in between, so that older ones could be read by their ids only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from polynya.lake.warehouse.readers import SKEW, Reading

#: What was current within this time stays, however many snapshots there are: a query of ours says
#: that it reads after a quarter of an hour (`readers.py`), and Athena ends one after half an hour.
LEAST_AGE: Final = timedelta(minutes=30)
_MAIN: Final = "main"
#: Settings by which a branch keeps its own number of snapshots; Iceberg puts them above ours.
_OWN_RULES: Final = ("min-snapshots-to-keep", "max-snapshot-age-ms")


@dataclass(frozen=True, slots=True)
class Keep:
    """Snapshots that stay: `age` after another one followed, and the newest `at_least` of them.

    By their age no more than the newest `at_most` stay, but those of `least_age` in any case.
    """

    age: timedelta = timedelta(hours=2)
    at_least: int = 10
    at_most: int = 1000

    @property
    def least_age(self) -> timedelta:
        """The time after another one followed for which a snapshot stays whatever else there is."""
        return min(self.age, LEAST_AGE)


@dataclass(frozen=True, slots=True)
class Choice:
    """What to ask Iceberg for, and why.

    `older_than_ms` is when the oldest snapshot was made that stays (epoch milliseconds), `newest`
    the number of snapshots of the main branch that stay, `expired` how many go; 0 for none.
    """

    why: str
    expired: int = 0
    older_than_ms: int = 0
    newest: int = 1


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """One snapshot. Times in epoch milliseconds; `left_ms` None for the current one.

    `place` counts back from the current snapshot; None off the main branch.
    """

    number: int
    made_ms: int
    left_ms: int | None
    place: int | None

    def is_among(self, newest: int, *, off_main: bool = False) -> bool:
        """Whether it is one of so many newest of the main branch; off it `off_main`."""
        return off_main if self.place is None else self.place < newest


def choose(
    metadata: Mapping[str, Any],
    keep: Keep,
    *,
    now: datetime,
    held: Collection[int] = (),
    readers: Iterable[Reading] = (),
) -> Choice:
    """Choose what expires. `metadata` is the JSON that Iceberg's specification gives a table.

    `held` are ids of snapshots that this process works on. They stay, with all that came later: a
    commit is validated against each snapshot since the one that it was computed from.
    """
    refs = metadata.get("refs", {})
    if str(metadata.get("properties", {}).get("gc.enabled", "true")).lower() == "false":
        return Choice("`gc.enabled` of the table is false: its files may belong to other tables")
    if any(name in refs.get(_MAIN, {}) for name in _OWN_RULES):
        return Choice("the main branch has a retention of its own, which is left to who set it")
    known = _snapshots(metadata)
    readers = list(readers)
    if any(reader.since is None for reader in readers):
        return Choice("a reader may read any snapshot of the past")
    read_since = [reader.since - SKEW for reader in readers if reader.since is not None]
    before = min([now - keep.age, *read_since])
    surely = min([now - keep.least_age, *read_since])
    held_since = min((one.made_ms for one in known if one.number in held), default=None)
    stays = [
        one
        for one in known
        if one.left_ms is None
        or one.left_ms >= _ms(surely)
        or (one.left_ms >= _ms(before) and one.is_among(keep.at_most, off_main=True))
        or one.is_among(keep.at_least)
        or (held_since is not None and one.made_ms >= held_since)
    ]
    if not stays:
        return Choice("there is no snapshot")
    cutoff = min(one.made_ms for one in stays)
    newest = 1 + max((one.place for one in stays if one.place is not None), default=0)
    named = {ref["snapshot-id"] for ref in refs.values()}
    gone = [
        one
        for one in known
        if one.made_ms < cutoff
        and (one.place is None or one.place >= newest)
        and one.number not in named
    ]
    if not gone:
        return Choice(_why_none(known, keep, before, now))
    crowded = any(one.left_ms is not None and one.left_ms >= _ms(before) for one in gone)
    since, newer = (surely, keep.at_most) if crowded else (before, keep.at_least)
    return Choice(
        f"{len(gone):,} of {len(known):,} snapshots were followed by another before "
        f"{since:%Y-%m-%d %H:%M} UTC and are not among the newest {newer:,}",
        expired=len(gone),
        older_than_ms=cutoff,
        newest=newest,
    )


def _why_none(known: Sequence[_Snapshot], keep: Keep, before: datetime, now: datetime) -> str:
    if len(known) <= keep.at_least:
        return f"there are {len(known)} snapshots, and {keep.at_least} always stay"
    if before < now - keep.age:
        return f"a reader is at work since {before + SKEW:%H:%M} UTC"
    return f"no snapshot is older than {keep.age} and free"


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _snapshots(metadata: Mapping[str, Any]) -> list[_Snapshot]:
    """Every snapshot, with the time at which it stopped being the current one."""
    made = {one["snapshot-id"]: int(one["timestamp-ms"]) for one in metadata.get("snapshots", ())}
    parents = {
        one["snapshot-id"]: one.get("parent-snapshot-id") for one in metadata.get("snapshots", ())
    }
    places: dict[int, int] = {}
    left: dict[int, int | None] = {}
    at: int | None = metadata.get("current-snapshot-id")
    following: int | None = None
    while at is not None and at in made and at not in places:
        places[at] = len(places)
        left[at] = following
        following, at = made[at], parents[at]
    # The log knows of a rollback, which the line of parents does not show.
    log = metadata.get("snapshot-log", ())
    for entry, later in pairwise(log):
        number, until = entry["snapshot-id"], int(later["timestamp-ms"])
        if places.get(number) != 0:
            left[number] = max(until, left.get(number) or 0)
    return [
        _Snapshot(number, time, left.get(number, time), places.get(number))
        for number, time in made.items()
    ]
