"""Long tests are run in parts, each short enough to be run before a change is called done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

_Test = TypeVar("_Test")


def part_of(tests: Sequence[_Test], shard: str) -> list[_Test]:
    """The tests of one part: every N-th, so that the long ones of a file are in different parts.

    Args:
        tests: all of them, in an order that is the same in each process.
        shard: `K/N`, the K-th of N parts.

    Raises:
        ValueError: `shard` names no part.
    """
    number, _, count = shard.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(f"{shard!r} is not K/N with 1 <= K <= N, as in 3/8")
    return list(tests[int(number) - 1 :: int(count)])
