"""The truncates of a dataset.

They are kept in the apply state for ever, because events older than them may still come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polynya.model.contract.identifiers import literal


@dataclass(frozen=True, slots=True)
class Truncate:
    """One truncate: its place in the order of events, and its time in epoch microseconds."""

    change_identifier: str
    tail: str | None
    micros: int

    @property
    def sequence(self) -> str:
        """Its sequence."""
        return self.change_identifier + (self.tail or "")


def merged(known: Iterable[Truncate], new: Iterable[Truncate]) -> list[Truncate]:
    """All truncates in ascending order; of several with one sequence the earliest time counts."""
    by_sequence: dict[str, Truncate] = {}
    for item in sorted([*known, *new], key=lambda one: (one.sequence, one.micros)):
        by_sequence.setdefault(item.sequence, item)
    return list(by_sequence.values())


def as_sql(truncates: Sequence[Truncate]) -> str | None:
    """SQL array of struct<seq, ci, tail, ts>, None when there is no truncate."""
    if not truncates:
        return None
    items = []
    for item in truncates:
        tail = literal(item.tail) if item.tail else "CAST(NULL AS STRING)"
        items.append(
            f"named_struct('seq', {literal(item.sequence)}, "
            f"'ci', {literal(item.change_identifier)}, "
            f"'tail', {tail}, 'ts', timestamp_micros({item.micros}L))"
        )
    return f"array({', '.join(items)})"
