"""What the analysis of a statement says: incremental, and by which columns; or full, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from sqlglot import exp

from polynya.derived.blocks import Block
from polynya.derived.stability import Stability
from polynya.derived.statement import DerivedStatement
from polynya.derived.totals import Merge, NarrowedRelation


@dataclass(frozen=True, slots=True)
class FullPlan:
    """A statement that has to be computed as a whole, and the reason as a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class IncrementalPlan:
    """A statement of which only rows with affected keys are computed again.

    Attributes:
        statement: the statement.
        columns: the restriction columns, by their names in the result.
        keys: the query of the affected keys; its tables are named `STATE:TABLE`.
        block: the statement's own block.
        stability: of its blocks.
    """

    statement: DerivedStatement
    columns: tuple[str, ...]
    keys: exp.Query
    block: Block
    stability: Stability


@dataclass(frozen=True, slots=True)
class TotalPart:
    """One of the totals of a result: the query of its affected keys, and what they narrow.

    The keys are called `k0`, `k1` …; tables are named as in `IncrementalPlan.keys`.
    """

    statement: DerivedStatement
    keys: exp.Query
    relations: tuple[NarrowedRelation, ...]


@dataclass(frozen=True, slots=True)
class TotalsPlan:
    """A statement of one row, whose values follow by what changed rows add and take away.

    Attributes:
        statement: the statement.
        columns: the columns of the narrowed relations.
        merges: how each column of the result follows.
        parts: the totals that the row is made of.
    """

    statement: DerivedStatement
    columns: tuple[str, ...]
    merges: tuple[Merge, ...]
    parts: tuple[TotalPart, ...]


Plan: TypeAlias = IncrementalPlan | TotalsPlan | FullPlan

#: A query over a registered table without keys is not `strict`: each new version computes all.
OF_REGISTERED: Final = FullPlan("it reads a registered table without `keys`")
