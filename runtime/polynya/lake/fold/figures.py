"""What an apply counts, and the conditions by which Spark counts it over placed versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from polynya.lake.fold.shape import Shape
from polynya.model.contract.headers import Partition

#: A version that is not stored, one that no event made, one that is stored otherwise.
MISSING, SURPLUS, CHANGED = (
    "__write AND NOT __drop",
    "__drop AND NOT __write",
    "__write AND __drop",
)
_WRITTEN = {
    "current": f"__write AND __part = '{Partition.CURRENT}'",
    "prior": f"__write AND __part = '{Partition.PRIOR}'",
    "removed": "__drop",
}


@dataclass(frozen=True, slots=True)
class Figures:
    """Rows of one apply: `events` taken in, versions written to Current and Prior, and removed."""

    events: int
    current: int
    prior: int
    removed: int

    @classmethod
    def of(cls, counted: Mapping[str, Any]) -> Self:
        """The figures out of a row of aggregates, which may hold more."""
        return cls(**{one.name: int(counted[one.name]) for one in fields(cls)})

    @property
    def written(self) -> int:
        """Versions written."""
        return self.current + self.prior

    def counts(self) -> dict[str, int]:
        """Name → figure, as events and snapshots tell it and the state adds it up."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ApplyFigures(Figures):
    """Besides, how often events contradicted what is known, or came with a time that is raised."""

    raised: int
    insert_of_existing: int
    update_of_missing: int
    delete_of_missing: int


@dataclass(frozen=True, slots=True)
class RebuildFigures(Figures):
    """Besides, versions that were `restored`, `surplus` ones removed, others `corrected`."""

    restored: int
    surplus: int
    corrected: int


def apply_aggregates(shape: Shape) -> list[str]:
    """Aggregates of ApplyFigures."""
    return _counts(apply_conditions(shape))


def apply_conditions(shape: Shape) -> dict[str, str]:
    """Figure of ApplyFigures → condition of the versions that it counts.

    Only a source that tells inserts from updates can contradict itself.
    """
    told = "true" if shape.tells_operations else "false"
    fresh = "NOT __own AND NOT __trunc"
    first = "coalesce(__del_before, true)"
    return {
        "events": fresh,
        **_WRITTEN,
        "raised": "__raised AND __write AND NOT __own",
        "insert_of_existing": f"{told} AND {fresh} AND __op = 'I' AND NOT {first}",
        "update_of_missing": f"{told} AND {fresh} AND __op = 'U' AND {first}",
        "delete_of_missing": f"{fresh} AND __del AND {first}",
    }


def rebuild_aggregates() -> list[str]:
    """Aggregates of RebuildFigures but `events`: those are not among the rows."""
    found = {"restored": MISSING, "surplus": SURPLUS, "corrected": CHANGED}
    return _counts({**found, **_WRITTEN})


def _counts(conditions: Mapping[str, str]) -> list[str]:
    return [f"count_if({condition}) AS {name}" for name, condition in conditions.items()]
