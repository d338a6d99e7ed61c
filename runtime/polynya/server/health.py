"""The health of a dataset in one word: that of its worst part, with all parts and their reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from polynya.engine.errors import as_polynya
from polynya.lake.read.inspect import DatasetStatus
from polynya.model.error_catalogue.machine import UNEXPECTED_FAILURE
from polynya.model.error_catalogue.server import PLACE_UNREACHABLE
from polynya.model.errors import PolynyaError
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


def why_unknown(error: Exception) -> PolynyaError:
    """Why something cannot be shown; an error of the system says that its place cannot be read."""
    known = as_polynya(error)
    if known.code == UNEXPECTED_FAILURE.code and isinstance(error, OSError):
        return PLACE_UNREACHABLE(reason=str(error)[:500])
    return known


@dataclass(frozen=True, slots=True)
class HealthPart:
    """One thing that decides the health of a dataset: its name, its word, why, and what helps.

    `since` is when a look first found a table unknown.
    """

    part: str
    word: HealthWord
    says: str
    fix: str | None = None
    since: str | None = None


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
        yield HealthPart(
            "run",
            HealthWord.SUSPENDED,
            f"{status.suspended}{where}",
            "remove the cause, or accept the change once: `polynya dataset resume`",
        )
    if waits is not None:
        yield HealthPart(
            "apply",
            HealthWord.WARNING,
            f"copies wait for the apply: {waits}",
            "apply now: `polynya run --once --apply always`; if that returns, give the task more "
            "processors or lower the limits of `apply`",
        )
    if status.rows_quarantined:
        yield HealthPart(
            "quarantine",
            HealthWord.WARNING,
            f"{counted(status.rows_quarantined, 'record')} rejected",
            "look at their rules and errors: `polynya quarantine list`; correct the settings or "
            "the source, then `polynya quarantine replay`",
        )
    if status.lost_batches:
        yield HealthPart(
            "source",
            HealthWord.WARNING,
            f"{status.lost_batches:,} of the landed batches were lost",
            "load the table again: `polynya reload`; keep landed batches for longer than a run "
            "may stand still",
        )
    yield from (
        HealthPart(
            "expectation",
            HealthWord.WARNING,
            f"{name} failed: {one.says}",
            "correct the rows at their source, or the expectation in the file of the task",
        )
        for name, one in status.failures.items()
    )
    if table_score < _POOR_HEALTH:
        yield HealthPart(
            "table",
            HealthWord.WARNING,
            f"its files are {table_score} of 100",
            "maintain it now: `polynya maintain`",
        )


def counts(words: Sequence[HealthWord]) -> Mapping[str, int]:
    """How many datasets have each word."""
    return {str(word): words.count(word) for word in HealthWord}
