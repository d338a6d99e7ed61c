"""Masks of a task's tables, made when a schema is first met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polynya.gateway.masking import Masked, masked
from polynya.gateway.masks import mask_of
from polynya.gateway.source import SourceTable


@dataclass(slots=True)
class TableMasks:
    """What is masked in which table.

    Attributes:
        given: masks by table and column, as the settings have them.
        keys: columns of the primary key by table.
    """

    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _made: dict[tuple[str, int], tuple[Mapping[str, Any], Masked]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, given: Mapping[str, Mapping[str, Any]], tables: Mapping[str, SourceTable]
    ) -> TableMasks:
        """Masks of the tables that there are now."""
        return cls(given, {name: table.key for name, table in tables.items()})

    def of_table(self, table: str, shape: Mapping[str, Any]) -> Masked | None:
        """The masks of a table under a schema; None: it has none.

        Raises:
            OperationError: POLYNYA-GTW-080 or -081, they do not fit the table.
        """
        given = self.given.get(table)
        if not given:
            return None
        known = self._made.get((table, id(shape)))
        if known is None:
            masks = {column: mask_of(one) for column, one in given.items()}
            made = masked(table, shape, masks, key=self.keys.get(table, ()))
            # The schema is kept: its identity must not become another's.
            known = self._made[table, id(shape)] = (shape, made)
        return known[1]
