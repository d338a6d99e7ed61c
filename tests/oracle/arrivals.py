"""The ways the same events arrive: as given, reversed, shuffled, one at a time, redelivered."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Batches = list[list[T]]


def given(batches: Sequence[Sequence[Any]]) -> Batches[Any]:
    """As the case lists them."""
    return [list(batch) for batch in batches]


def backwards(batches: Sequence[Sequence[Any]]) -> Batches[Any]:
    """Last batch first, last row first."""
    return [list(reversed(batch)) for batch in reversed(batches)]


def shuffled(batches: Sequence[Sequence[Any]], seed: int = 7) -> Batches[Any]:
    """All rows in random order, over as many batches (two at least)."""
    rows = [row for batch in batches for row in batch]
    return split(rows, max(2, len(batches)), random.Random(seed), redelivered=0.0)


def one_at_a_time(batches: Sequence[Sequence[Any]]) -> Batches[Any]:
    """One event per batch, in the given order."""
    return [[row] for batch in batches for row in batch]


VARIATIONS: Mapping[str, Callable[[Sequence[Sequence[Any]]], Batches[Any]]] = {
    "given": given,
    "reversed": backwards,
    "shuffled": shuffled,
    "single": one_at_a_time,
}


def split(
    rows: Sequence[T], count: int, chance: random.Random, *, redelivered: float = 0.1
) -> Batches[T]:
    """Rows in random order over `count` batches; a part of them is delivered twice, exactly."""
    again = [row for row in rows if chance.random() < redelivered]
    batches: Batches[T] = [[] for _ in range(count)]
    for row in chance.sample([*rows, *again], len(rows) + len(again)):
        batches[chance.randrange(count)].append(row)
    return batches
