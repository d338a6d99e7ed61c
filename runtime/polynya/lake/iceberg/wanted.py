"""The layout that files of Current and Prior should have, and whether a file has it: pure.

Each Iceberg data file names the partition spec that it was written with, and the sort order of its
rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from polynya.lake.iceberg.partitions import LAID_OUT
from polynya.model.config.layout import SortTerm

#: Where NULL is in a sort order of ours: as Spark sorts.
_NULLS = {"asc": "nulls-first", "desc": "nulls-last"}


@dataclass(frozen=True, slots=True)
class SortOrder:
    """A sort order of a table: its id, and the ids of its columns with their direction.

    A field that none of our orders has is there as its text.
    """

    number: int
    fields: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """A sort order out of its JSON, as Iceberg's specification writes it."""
        return cls(document["order-id"], tuple(_field(field) for field in document["fields"]))

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The same, out of the text of the JSON."""
        return cls.of(json.loads(text))

    def is_by(self, columns: Sequence[Mapping[str, Any]], terms: Sequence[SortTerm]) -> bool:
        """Whether it is the order that these terms ask for; `columns` are those of the table."""
        ids = {column["name"]: column["id"] for column in columns}
        return self.fields == tuple((ids.get(term.columns[0]), term.order) for term in terms)


@dataclass(frozen=True, slots=True)
class TargetLayout:
    """The layout: id of the partition spec, and of the sort order, None where none is asked for."""

    spec: int
    order: int | None = None

    @classmethod
    def by(
        cls,
        spec: int,
        order: SortOrder,
        columns: Sequence[Mapping[str, Any]],
        terms: Sequence[SortTerm],
    ) -> Self:
        """The layout of a table that has this spec and order now, and is asked for these terms.

        Iceberg knows no Z-order, so that no file says whether it has it: nobody asks for one.
        """
        return cls(spec, order.number if terms and order.is_by(columns, terms) else None)

    @classmethod
    def of(cls, metadata: Mapping[str, Any], terms: Sequence[SortTerm]) -> Self:
        """The same, out of the metadata of a table in the JSON of Iceberg's specification."""
        order = _current_entry(metadata, "sort-orders", "order-id", "default-sort-order-id")
        schema = _current_entry(metadata, "schemas", "schema-id", "current-schema-id")
        return cls.by(metadata["default-spec-id"], SortOrder.of(order), schema["fields"], terms)

    def is_parted(self, partition: str, spec: int) -> bool:
        """Whether a file of this value of `PARTITION` has the spec."""
        return partition not in LAID_OUT or spec == self.spec

    def is_sorted(self, partition: str, order: int | None) -> bool:
        """Whether a file with this sort order, None for none, has the one that is asked for."""
        return self.order is None or partition not in LAID_OUT or order == self.order


def _current_entry(
    metadata: Mapping[str, Any], listed: str, name: str, current: str
) -> Mapping[str, Any]:
    match: Mapping[str, Any] = next(
        entry for entry in metadata[listed] if entry[name] == metadata[current]
    )
    return match


def _field(field: Mapping[str, Any]) -> tuple[int, str]:
    transform, direction, nulls = field["transform"], field["direction"], field["null-order"]
    if transform == "identity" and nulls == _NULLS.get(direction):
        return field["source-id"], direction
    return field["source-id"], f"{transform} {direction} {nulls}"
