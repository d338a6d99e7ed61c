"""What the engine must know of a dataset to write SQL about it: keys, columns, types, behaviour.

Pure: made from configuration and state, used by copy, fold, views. Holds no Spark object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from polynya.lake.state import CopyState
from polynya.model.datatypes import Array, DataType, MapType, Struct, storage_type
from polynya.model.headers import ALL_BUT
from polynya.model.identifiers import quote
from polynya.model.settings import DISCOVERING
from polynya.model.task import ResolvedDataset


@dataclass(frozen=True, slots=True)
class Shape:
    """Keys, data columns and behaviour of one dataset.

    `columns` maps every data column (keys included) to its type, in table order. `partial` names
    the columns that the source has ever left out of an update. `links` tells that a change of key
    once carried values over. `tells_operations`: the source says insert or update, not just upsert.
    `keeps_events`: applied events stay, so that the table can be derived from them anew.
    `unsent_texts`: see `unsent.py`.
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
    keeps_events: bool = False
    unsent_texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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

    def type_of(self, column: str) -> str:
        """Spark type of a data column as it is stored."""
        return str(storage_type(self.columns[column]))

    def key_list(self, alias: str = "") -> str:
        """Quoted key columns, comma separated, optionally behind a table alias."""
        prefix = f"{alias}." if alias else ""
        return ", ".join(prefix + quote(key) for key in self.keys)

    def key_match(self, left: str, right: str) -> str:
        """Condition that two relations hold the same record. Keys are never NULL here."""
        return " AND ".join(f"{left}.{quote(k)} = {right}.{quote(k)}" for k in self.keys)


def literal(value: str) -> str:
    """SQL string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def shape_of(
    dataset: ResolvedDataset,
    copy: CopyState,
    schema: Mapping[str, DataType],
    keys: tuple[str, ...],
) -> Shape:
    """Shape of a dataset with these source columns and keys; `copy` tells what has been met."""
    columns = data_columns(dataset, schema)
    append_only = dataset.mode == "append_only" or not keys
    return Shape(
        keys=keys,
        columns=columns,
        history=dataset.history and not append_only,
        soft_delete=dataset.delete_mode == "soft",
        append_only=append_only,
        tells_operations=dataset.format in DISCOVERING,
        partial=tuple(
            name
            for name in columns
            if (name in copy.unsent or ALL_BUT in copy.unsent) and name not in keys
        ),
        links=copy.has_old_keys,
        coalesce=dataset.coalesce_unchanged,
        tracked=_tracked_columns(dataset, tuple(columns)),
        keeps_events=dataset.changes_retention is not None and not append_only,
        unsent_texts={name: tuple(texts) for name, texts in copy.unsent_texts.items()},
    )


def data_columns(dataset: ResolvedDataset, schema: Mapping[str, DataType]) -> dict[str, DataType]:
    """Source columns that the table gets."""
    excluded = set(dataset.except_columns)
    return {name: datatype for name, datatype in schema.items() if name not in excluded}


def _tracked_columns(dataset: ResolvedDataset, columns: tuple[str, ...]) -> tuple[str, ...] | None:
    """Columns whose change makes a new line in a coalesced History; None for all."""
    if dataset.track_history_columns:
        return tuple(name for name in columns if name in dataset.track_history_columns)
    if dataset.track_history_except:
        return tuple(name for name in columns if name not in dataset.track_history_except)
    return None


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
