"""The affected keys of a step: which rows of a result may differ from the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from polynya.model.names import quote


@dataclass(frozen=True)
class AffectedKeys:
    """The values of some columns of a result in all rows that may differ from Current.

    `named` makes a view of them, which has each once or oftener as `columns`. Without columns every
    row of the result is affected, and the view has a row. `ranges` are conditions that all values
    of a column meet, which is `{}` there; `nullable` are the columns with NULL among their values.
    """

    columns: tuple[str, ...]
    named: Callable[[], str]
    ranges: Mapping[str, str] = field(default_factory=dict)
    nullable: frozenset[str] = frozenset()

    @cached_property
    def relation(self) -> str:
        """The quoted name of a view of the values."""
        return self.named()

    def match(self, alias: str, columns: Mapping[str, str] | None = None) -> str:
        """Condition that a row `alias` has the keys `k`, both as SQL.

        `columns` has the name of a column of the row -> that of the keys; None: they are the same.
        """
        pairs = {name: name for name in self.columns} if columns is None else columns
        # Where NULL is none of the keys, `=` finds the same rows, by a hash of the bare number.
        same = [
            f"{alias}.{quote(row)} {'<=>' if key in self.nullable else '='} k.{quote(key)}"
            for row, key in pairs.items()
        ]
        # So that Spark skips files and row groups which hold none of them.
        within = [
            self.ranges[key].format(f"{alias}.{quote(row)}")
            for row, key in pairs.items()
            if key in self.ranges
        ]
        return " AND ".join([*same, *within]) or "true"

    def join(self, alias: str) -> str:
        """Semi join of rows `alias` with the keys, as SQL."""
        return f"LEFT SEMI JOIN {self.relation} k ON {self.match(alias)}"
