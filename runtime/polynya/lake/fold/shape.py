"""The shape of a dataset: the keys, columns, types and behaviour that its SQL depends on.

Pure values, made from configuration and state. Copy, fold and views use them; no Spark object is in
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from polynya.model.names import quote
from polynya.model.promotion import storage_type
from polynya.model.types import Array, DataType, MapType, Struct


@dataclass(frozen=True, slots=True)
class Shape:
    """Keys, data columns and behaviour of one dataset.

    `columns` maps every data column (keys included) to its type, in table order. `partial` names
    the columns that the source has ever left out of an update. `links` tells that a change of key
    once carried values over. `tells_operations`: the source says insert or update, not just upsert.
    `looks`: a source says at which place in the order of events it read a row, and history keeps
    what such a look shows to be new (`sql.py`).
    `keeps_events`: applied events stay, so that the table can be rebuilt from them.
    `hidden` names columns that are excluded by now and still stored: what they hold stays, later
    events hold NULL in them.
    `unsent_texts` are the texts by which `hdr__unsent` lists columns (`sql.py`).
    `holds_deletes`: deletes were soft at a time, so that Current may hold deleted records also
    where they are hard now. `expired` is the column by which rows leave, and the time before which
    they have left.
    `replaced_within` are the key columns of a record whose elements are rows, where a newer record
    deletes the elements that it lacks. Each such record then is an event of its own, without the
    keys of an element (`is_record`).
    `former` has the types that rewritten columns had before, the oldest first. `bridged` are
    columns that are about to be rewritten: the views show them in the types of this shape, whatever
    the table has (`sql.bridged`).
    """

    keys: tuple[str, ...]
    columns: Mapping[str, DataType]
    history: bool = False
    soft_delete: bool = False
    append_only: bool = False
    tells_operations: bool = False
    partial: tuple[str, ...] = ()
    links: bool = False
    coalesce: bool = False
    tracked: tuple[str, ...] | None = None
    looks: bool = False
    keeps_events: bool = False
    hidden: frozenset[str] = frozenset()
    holds_deletes: bool = False
    unsent_texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    former: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bridged: frozenset[str] = frozenset()
    expired: tuple[str, datetime] | None = None
    replaced_within: tuple[str, ...] = ()

    @property
    def data(self) -> tuple[str, ...]:
        """All data columns in table order."""
        return tuple(self.columns)

    @property
    def values(self) -> tuple[str, ...]:
        """Data columns that are not keys."""
        return tuple(name for name in self.columns if name not in self.keys)

    @property
    def fills_deletes(self) -> bool:
        """Whether a delete must show the values that the record had before."""
        return self.history or self.soft_delete or bool(self.partial) or self.links

    def is_expired(self) -> str | None:
        """Condition that a row is so old that it has left; None where none has."""
        if self.expired is None:
            return None
        column, before = self.expired
        time = before.astimezone(UTC).isoformat(sep=" ")
        return f"coalesce(CAST({quote(column)} AS TIMESTAMP) < TIMESTAMP '{time}', false)"

    def type_of(self, column: str) -> str:
        """Spark type of a data column as it is stored."""
        return str(storage_type(self.columns[column]))

    @property
    def touching(self) -> tuple[str, ...]:
        """Key columns of the rows that one event can change: events of one key, or of a record."""
        return self.replaced_within or self.keys

    @property
    def element_keys(self) -> tuple[str, ...]:
        """Key columns that tell the elements of one record apart, where a record replaces them."""
        return tuple(k for k in self.keys if k not in self.replaced_within) if self.replaces else ()

    @property
    def replaces(self) -> bool:
        """Whether a newer record deletes the elements that it lacks."""
        return bool(self.replaced_within)

    def is_record(self, alias: str = "") -> str:
        """Condition that a row is a record that replaces its elements, and not one of these."""
        prefix = f"{alias}." if alias else ""
        return joined_keys(f"{prefix}{quote(key)} IS NULL" for key in self.element_keys)

    def key_list(self, alias: str = "") -> str:
        """Quoted key columns, comma separated, optionally with a table alias."""
        return _listed(self.keys, alias)

    def touching_list(self, alias: str = "") -> str:
        """The same of the key columns `touching`."""
        return _listed(self.touching, alias)

    def key_match(self, left: str, right: str) -> str:
        """Condition that two relations hold the same record.

        Keys are never NULL here, but for those of an element that a record has none of.
        """
        pairs = ((left + "." + quote(k), right + "." + quote(k), k) for k in self.keys)
        nullable = self.element_keys
        return joined_keys(f"{a} {'<=>' if k in nullable else '='} {b}" for a, b, k in pairs)

    def touching_match(self, left: str, right: str) -> str:
        """Condition that an event of one relation can change the rows of the other."""
        return joined_keys(f"{left}.{quote(k)} = {right}.{quote(k)}" for k in self.touching)


def _listed(keys: Iterable[str], alias: str) -> str:
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + quote(key) for key in keys)


def joined_keys(conditions: Iterable[str]) -> str:
    """Conditions on keys, of which there are few, joined by AND."""
    return " AND ".join(conditions)


def comparable(expression: str, datatype: DataType) -> str:
    """SQL that can be compared with `<=>`: Spark cannot compare maps, their JSON it can."""
    return f"to_json({expression})" if holds_map(datatype) else expression


def holds_map(datatype: DataType) -> bool:
    """Whether a map hides anywhere inside a type."""
    match datatype:
        case MapType():
            return True
        case Array(element):
            return holds_map(element)
        case Struct(members):
            return any(holds_map(member) for _, member in members)
        case _:
            return False
