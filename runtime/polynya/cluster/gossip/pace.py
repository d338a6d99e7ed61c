"""How often a node tells and asks: pure decisions, each with its reason.

A shard of Kinesis answers five reads a second, of all readers together, with 2 MB a second (AWS,
"Quotas and limits" of Kinesis Data Streams). All nodes read all shards, so they share that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Half of what a shard answers: the other half is for whoever else reads it, and for restarts.
READS_PER_SECOND: Final = 2.5
BYTES_PER_SECOND: Final = 1_000_000.0
#: Least time between two reads of a shard.
READ_SECONDS: Final = 2.0
#: Longest, before it is spread: an iterator of Kinesis is good for five minutes.
LONGEST_READ_SECONDS: Final = 220.0
#: Least and longest time between two heartbeats.
BEAT_SECONDS: Final = 10.0
LONGEST_BEAT_SECONDS: Final = 300.0
#: Longest pause after failures.
LONGEST_PAUSE_SECONDS: Final = 60.0
#: A pause is spread by so much of itself, so that nodes do not ask in step.
_SPREAD: Final = 0.25


@dataclass(frozen=True, slots=True)
class Wait:
    """How many seconds to wait, and why."""

    seconds: float
    reason: str


def read_wait(nodes: int, refusals: int, draw: float) -> Wait:
    """Time between two reads of one shard.

    Args:
        nodes: those that read the shard, this one included.
        refusals: how often in a row the stream refused or failed.
        draw: in [0, 1), spreads the pause.
    """
    share = max(nodes, 1) / READS_PER_SECOND
    usual = min(max(share, READ_SECONDS), LONGEST_READ_SECONDS)
    # What is drawn only lengthens the wait: all nodes together stay below their share.
    spread = 1 + _SPREAD * draw
    if refusals:
        longest = max(usual, LONGEST_PAUSE_SECONDS)
        pause = min(usual * 2 ** min(refusals, 16), longest)
        return Wait(pause * spread, f"refused {refusals} times")
    return Wait(usual * spread, f"{nodes} nodes share {READS_PER_SECOND:g} reads a second")


def beat_wait(nodes: int, shards: int, size_bytes: int, refusals: int, draw: float) -> Wait:
    """Time between two heartbeats.

    Args:
        nodes: those that tell and read, this one included.
        shards: those of the stream.
        size_bytes: of the last heartbeat.
        refusals: how often in a row the stream refused or failed.
        draw: in [0, 1), spreads the pause.
    """
    spread = 1 + _SPREAD * draw
    # Each heartbeat is read by each node.
    share = max(nodes, 1) ** 2 * size_bytes / (BYTES_PER_SECOND * max(shards, 1))
    usual = min(max(share, BEAT_SECONDS), LONGEST_BEAT_SECONDS)
    if refusals:
        longest = max(usual, LONGEST_PAUSE_SECONDS)
        pause = min(usual * 2 ** min(refusals, 16), longest)
        return Wait(pause * spread, f"refused {refusals} times")
    return Wait(usual * spread, f"{nodes} nodes read {size_bytes} bytes of each")
