"""What people ask and what became of it, in words: pure functions of what was read."""

from __future__ import annotations

from collections.abc import Collection

from polynya.cluster.control.reading import Reading
from polynya.cluster.coordination.documents import DrainWish, Freeze, MoveWish, TaskWish
from polynya.cluster.unit import JobKey


def asked(reading: Reading, alive: Collection[str]) -> tuple[str, ...]:
    """All that is asked, with what it waits for; `alive` are the incarnations that live."""
    return tuple(
        f"{unit.task}/{unit.name}: {in_words(reading, unit, alive)}"
        for unit in sorted(reading.wishes)
    )


def in_words(reading: Reading, unit: JobKey, alive: Collection[str]) -> str:
    """What is asked of a unit of which something is asked, and what it waits for."""
    wish = reading.wishes[unit]
    of = f" of {wish.dataset}" if wish.dataset is not None else ""
    why = f" ({wish.reason})" if wish.reason else ""
    return (
        f"{wish.kind}{of} asked by {wish.by}{why}, {wish.since:%Y-%m-%d %H:%M:%S} UTC, "
        f"{_waits(reading, unit, alive)}"
    )


def outcome_of(reading: Reading, unit: JobKey) -> str | None:
    """What became of what was asked of a unit last, None when nothing ever was."""
    one = reading.outcomes.get(unit)
    if one is None:
        return None
    how = "done" if one.done else "not done"
    return (
        f"last {one.kind}, asked by {one.by}: {how} on {one.node}, "
        f"{one.ended:%Y-%m-%d %H:%M:%S} UTC: {one.text}"
    )


def place_of(reading: Reading, unit: JobKey) -> str | None:
    """Where somebody wants a unit to be, None when that is left to the leader."""
    wish = reading.moves.get(unit)
    return None if wish is None else f"to be on {wish.to}, asked by {by_whom(wish)}"


def by_whom(wish: DrainWish | Freeze | MoveWish | TaskWish) -> str:
    """Who wished something, since when and why."""
    why = f": {wish.reason}" if wish.reason else ""
    return f"{wish.by} since {wish.since:%Y-%m-%d %H:%M:%S} UTC{why}"


def _waits(reading: Reading, unit: JobKey, alive: Collection[str]) -> str:
    stopped = reading.tasks.get(unit.task)
    record = reading.units.get(unit)
    if not alive:
        return "waits: no node lives"
    if stopped is not None and stopped.state == "stopped":
        return f"waits: {unit.task} was stopped by {stopped.by}"
    if reading.freeze is not None:
        return f"waits: the cluster was frozen by {reading.freeze.by}"
    if record is None or record.owner not in alive:
        return "waits: no node has the unit"
    return f"{record.node} does it, or does so after its step"
