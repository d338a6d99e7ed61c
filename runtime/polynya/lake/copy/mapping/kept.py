"""Columns of the source that no mapping takes: as they are, or structs as a column a field."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.copy.mapping.elements import Typed, one_array
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.contract.headers import RESERVED_PREFIX
from polynya.model.contract.identifiers import folded, shown
from polynya.model.datatypes import DataType, Struct, Void
from polynya.model.errors import ConfigError
from polynya.transform.expressions import path_of
from polynya.transform.mapping import Mapped


@dataclass(frozen=True, slots=True)
class Kept:
    """A column, and the one of the source that it is, or that its field is of."""

    column: Typed
    source: str


def kept_columns(
    rows: pa.Table, schema: Mapping[str, DataType], mapped: Mapped, dataset: ResolvedDataset
) -> dict[str, Kept]:
    """What is kept of the columns of records, by the name that it has in the table.

    Not those that are excepted, header columns, an array whose elements are rows, and what a mapped
    column only gives another name. Raises ConfigError POLYNYA-MAP-006 for two of one name.
    """
    renamed = _renamed(mapped)
    taken = {folded(name) for name in mapped.columns}
    excepted = set(dataset.events.except_columns)
    found: dict[str, Kept] = {}
    for name, kind in schema.items():
        if name in excepted or folded(name).startswith(RESERVED_PREFIX):
            continue
        column = Typed(one_array(rows.column(name)), kind)
        if dataset.mapping.nested == "expand":
            _expand((name,), column, renamed, taken, found)
        elif (name,) not in renamed and folded(name) not in taken:
            found[name] = Kept(column, name)
    return found


def _renamed(mapped: Mapped) -> set[tuple[str, ...]]:
    """Paths of columns and fields that are in the table under another name, or as rows."""
    plain = (path_of(flat.text) for flat in mapped.columns.values() if not flat.paths)
    paths = {path for path in plain if path is not None}
    return paths if mapped.array is None else {*paths, mapped.array.steps[0]}


def _expand(
    path: tuple[str, ...],
    column: Typed,
    renamed: Collection[tuple[str, ...]],
    taken: Collection[str],
    found: dict[str, Kept],
) -> None:
    """Take a column, or all fields of a struct; of a type that nobody has met nothing yet."""
    if path in renamed or isinstance(column.kind, Void):
        return
    if isinstance(column.kind, Struct):
        for index, (field, kind) in enumerate(column.kind.fields):
            inner = Typed(pc.struct_field(column.array, [index]), kind)
            _expand((*path, field), inner, renamed, taken, found)
        return
    name = "_".join(path)
    if folded(name) in taken:
        return
    if folded(name) in set(map(folded, found)):
        raise _clash(name, path)
    found[name] = Kept(column, path[0])


def _clash(name: str, path: tuple[str, ...]) -> ConfigError:
    return ConfigError(
        "POLYNYA-MAP-006",
        f"`nested: expand` makes two columns {shown(name)}",
        where=".".join(path),
        state="nothing of this batch was copied; its files stay where they are",
        fix="give one of the two a name of its own in the list of `columns`",
    )
