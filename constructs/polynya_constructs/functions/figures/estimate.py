"""What waits for a cluster that has no node: what its nodes left, and what landed since. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

FIRST_GUESS = 1_000_000.0
"""Bytes a second of a cluster whose nodes never measured their speed; the runtime's own guess."""


@dataclass(frozen=True, slots=True)
class Left:
    """What waited when nodes were heard last: seconds of work, and the age of the oldest file."""

    at: datetime
    seconds: float
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class Landed:
    """What landed since, and when the first of it did."""

    size_bytes: float
    since: datetime


IDLE_SECONDS = 60.0
"""A last node with less to do is ended when nothing lands: what it leaves wakes nobody."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What waits: seconds of one node's work, and how many seconds the oldest of it has.

    `needs_node` tells whether it is worth a node.
    """

    backlog_seconds: float
    oldest_seconds: float
    needs_node: bool = False


def estimate(
    now: datetime, left: Left | None, landed: Landed | None, bytes_per_second: float | None
) -> Figures:
    """The figures that a node would publish, as far as they can be known without one.

    What landed takes the time that nodes took for as much in the days before. That nobody reads
    an object is not known here: it counts, until a node has looked.
    """
    seconds, ages = 0.0, [0.0]
    if left is not None:
        seconds += left.seconds
        if left.oldest_seconds > 0:
            ages.append(left.oldest_seconds + (now - left.at).total_seconds())
    if landed is not None:
        seconds += landed.size_bytes / (bytes_per_second or FIRST_GUESS)
        ages.append((now - landed.since).total_seconds())
    needs_node = landed is not None or (left is not None and left.seconds >= IDLE_SECONDS)
    return Figures(round(seconds, 3), round(max(ages), 3), needs_node)
