"""What the files of a batch declare about columns: types, and where they contradict each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from polynya.formats.values.rows import ColumnTypes, Evolving
from polynya.model.config.evolution import SchemaEvolution
from polynya.model.datatypes import DataType, Void, unify, widen


@dataclass(slots=True)
class Observed:
    """Types that were declared so far.

    Attributes:
        types: by column, what holds the values of all schemas; the first where they contradict.
        conflicts: by column, the newest type that contradicts `types`.
        columns: names in the newest schema, None as long as none was declared.
    """

    types: dict[str, DataType] = field(default_factory=dict)
    conflicts: dict[str, DataType] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None

    def learn(self, types: Mapping[str, DataType], *, in_place: bool = False) -> None:
        """Take the schema of one more file; `in_place` joins types only as a table could."""
        if not types:
            return
        join = widen if in_place else unify
        for name, kind in types.items():
            joined = join(self.types.get(name, Void()), kind)
            if joined is None:
                self.conflicts[name] = kind
            else:
                self.types[name] = joined
        self.columns = tuple(types)

    def column_types(
        self,
        known: Mapping[str, DataType],
        declared: Mapping[str, DataType],
        policies: SchemaEvolution,
        *,
        excluded: Collection[str] = (),
    ) -> ColumnTypes:
        """What typing the records needs.

        `declared` are the types of the configuration, `excluded` the columns that it leaves out.
        """
        evolving = Evolving(
            policies, frozenset(declared), self.conflicts, self.columns, frozenset(excluded)
        )
        return ColumnTypes(known, declared, self.types, evolving)
