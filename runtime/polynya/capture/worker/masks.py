"""What becomes of events of a task's tables before they land, made when a schema is first met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polynya.capture.lists import guarded
from polynya.capture.lobs import EventRewriter, Limit, limited
from polynya.capture.masks import mask_of, masked
from polynya.capture.source import SourceTable
from polynya.formats.debezium.envelope import Unsent


@dataclass(slots=True)
class TableMasks:
    """What is masked in which table, and how long a value may be.

    Attributes:
        given: masks by table and column, as the settings have them.
        keys: columns of the primary key by table.
        limit: of all tables; None: values are captured as they are.
        unsent: the text that says that a column was not sent; empty where all are.
        guards_lists: the events may have lists that are not those of the database.
        cut: table and column of values that were too long.
    """

    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limit: Limit | None = None
    unsent: str = ""
    guards_lists: bool = False
    cut: set[tuple[str, str]] = field(default_factory=set)
    _made: dict[tuple[str, int], tuple[Mapping[str, Any], EventRewriter | None]] = field(
        default_factory=dict
    )

    @classmethod
    def of(
        cls,
        masks: Mapping[str, Mapping[str, Any]],
        tables: Mapping[str, SourceTable],
        limit: Limit | None,
        *,
        unsent: str = "",
        guards_lists: bool = False,
    ) -> TableMasks:
        """Masks and limits of the tables that there are now."""
        keys = {name: table.key for name, table in tables.items()}
        return cls(masks, keys, limit, unsent, guards_lists)

    @property
    def is_empty(self) -> bool:
        """Whether all events land as they are."""
        return not self.given and self.limit is None and not self.guards_lists

    @property
    def notes(self) -> list[str]:
        """What an operator should know: columns whose values were too long."""
        if self.limit is None:
            return []
        rule = self.limit.description
        return [f"values of {table}.{column} that are {rule}" for table, column in sorted(self.cut)]

    def of_table(self, table: str, shape: Mapping[str, Any]) -> EventRewriter | None:
        """What becomes of the events of a table under a schema; None: they land as they are.

        Raises:
            OperationError: POLYNYA-GTW-080 or -081, the masks do not fit the table.
        """
        given = self.given.get(table)
        if not given and self.limit is None and not self.guards_lists:
            return None
        kept = self._made.get((table, id(shape)))
        if kept is None:
            # The schema is kept: its identity must not become another's.
            kept = self._made[table, id(shape)] = (shape, self._shown(table, shape, given or {}))
        return kept[1]

    def _shown(
        self, table: str, shape: Mapping[str, Any], given: Mapping[str, Any]
    ) -> EventRewriter | None:
        made: EventRewriter | None = None
        if given:
            masks = {column: mask_of(setting) for column, setting in given.items()}
            unsent = Unsent(self.unsent)
            made = masked(table, shape, masks, key=self.keys.get(table, ()), unsent=unsent)
        if self.limit is not None:
            made = limited(table, shape, self.limit, made, self.cut)
        return guarded(table, shape, made) if self.guards_lists else made
