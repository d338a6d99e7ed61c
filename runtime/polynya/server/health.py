"""The health of a dataset in one word: that of its worst part, with all parts and their reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from polynya.lake.read.inspect import DatasetStatus
from polynya.observe.events import counted

#: Health of a table, of 100, below which it is worth a look.
_POOR_HEALTH: Final = 50


class HealthWord(StrEnum):
    """From the best to the worst."""

    HEALTHY = "healthy"
    NEW = "new"
    WARNING = "warning"
    SUSPENDED = "suspended"
    UNKNOWN = "unknown"


_ORDER: Final = list(HealthWord)


@dataclass(frozen=True, slots=True)
class HealthPart:
    """One thing that decides the health of a dataset: its name, its word, and why."""

    part: str
    word: HealthWord
    says: str


def worst(parts: Sequence[HealthPart]) -> HealthWord:
    """The word of the worst part; healthy without any."""
    return max((one.word for one in parts), key=_ORDER.index, default=HealthWord.HEALTHY)


def parts_of(status: DatasetStatus, waits: str | None, table_score: int) -> list[HealthPart]:
    """What is not as it should be.

    `waits` says why copies wait for an apply, and `table_score` is the health of the table's files,
    of 100.
    """
    return list(_parts(status, waits, table_score))


def _parts(status: DatasetStatus, waits: str | None, table_score: int) -> Iterator[HealthPart]:
    if status.suspended is not None:
        where = f" ({status.suspended_where})" if status.suspended_where else ""
        yield HealthPart("run", HealthWord.SUSPENDED, f"{status.suspended}{where}")
    if waits is not None:
        yield HealthPart("apply", HealthWord.WARNING, f"copies wait for the apply: {waits}")
    if status.rows_quarantined:
        yield HealthPart(
            "quarantine",
            HealthWord.WARNING,
            f"{counted(status.rows_quarantined, 'record')} rejected",
        )
    if status.lost_batches:
        yield HealthPart(
            "source", HealthWord.WARNING, f"{status.lost_batches:,} of the landed batches were lost"
        )
    yield from (
        HealthPart("expectation", HealthWord.WARNING, f"{name} failed: {one.says}")
        for name, one in status.failures.items()
    )
    if table_score < _POOR_HEALTH:
        yield HealthPart("table", HealthWord.WARNING, f"its files are {table_score} of 100")


def counts(words: Sequence[HealthWord]) -> Mapping[str, int]:
    """How many datasets have each word."""
    return {str(word): words.count(word) for word in HealthWord}
