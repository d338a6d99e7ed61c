"""Give a table the layout that its dataset asks for: partition spec, sort order, size of files.

Only metadata change. Files that are there keep the spec that they were written with.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polynya.lake.iceberg.gateway import IcebergTable
from polynya.lake.iceberg.parting.specs import Spec
from polynya.model.config.dataset import Layout
from polynya.model.config.layout.settings import RowRetention
from polynya.model.config.layout.terms import PartitionTerm, SortTerm, age_refusal
from polynya.model.contract.headers import PARTITION
from polynya.model.datatypes import DataType, Void
from polynya.model.errors import ConfigError

log = logging.getLogger(__name__)

#: A name that no column of a source has: one that came later would break the table.
_PREFIX: Final = "hdr__by_"
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FILE_SIZE: Final = "write.target-file-size-bytes"
DEFAULT_FILE_BYTES: Final = 128 * 2**20


@dataclass(frozen=True, slots=True)
class SpecChange:
    """Partition fields that a table gets, by their names, and names of those that it loses."""

    add: Mapping[str, PartitionTerm]
    remove: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


def spec_change(
    wanted: Sequence[PartitionTerm],
    newest: Spec,
    ids: Mapping[str, int],
    known: Mapping[str, DataType],
) -> SpecChange:
    """What the newest spec of a table lacks of the wanted terms, and has beside them.

    `ids` are those of the columns of the table, `known` the types of the source's columns. A column
    that is not there, or of which only NULLs were seen, has no field yet; nothing is taken away
    before all have.
    """
    there = [one for one in wanted if one.column in ids]
    there = [one for one in there if not isinstance(known.get(one.column, Void()), Void)]
    own = [one for one in newest.fields if one.name != PARTITION]
    have = {(one.source, one.transform) for one in own}
    asked = {(ids[one.column], one.iceberg) for one in there}
    names = {one.name for one in newest.fields}
    add: dict[str, PartitionTerm] = {}
    for term in there:
        if (ids[term.column], term.iceberg) not in have:
            add[_name(term, ids[term.column], names | set(add))] = term
    whole = len(there) == len(wanted)
    remove = [one.name for one in own if (one.source, one.transform) not in asked]
    return SpecChange(add, remove if whole else [])


def lay_out(table: IcebergTable, layout: Layout, known: Mapping[str, DataType]) -> None:
    """Bring a table in line with a layout; `known` are the types of the columns of its source.

    Raises ConfigError when a column has a type that the layout has no use for.
    """
    refuse_types(layout, known, table.name)
    ids = {one["name"]: one["id"] for one in table.columns()}
    change = spec_change(layout.partition_by, table.java_files().newest, ids, known)
    if change:
        log.info("the files of %s are parted by %s from now on", table.name, layout.partition_by)
        change_spec(table, change)
    change_sort_order(table, layout.sort_by, known)
    change_file_size(table, layout.file_bytes)


def lacks(table: IcebergTable, layout: Layout, known: Mapping[str, DataType]) -> bool:
    """Whether `lay_out` would give the table another partition spec or sort order."""
    ids = {one["name"]: one["id"] for one in table.columns()}
    change = spec_change(layout.partition_by, table.java_files().newest, ids, known)
    return bool(change) or _lacks_order(table, _plain(layout.sort_by), known)


def refuse_types(layout: Layout, known: Mapping[str, DataType], name: str) -> None:
    """Raise ConfigError when a column has a type that the layout has no use for."""
    terms: list[tuple[str, PartitionTerm | SortTerm, str]] = [
        ("partition_by", one, one.column) for one in layout.partition_by
    ]
    terms += [("sort_by", one, column) for one in layout.sort_by for column in one.columns]
    for setting, term, column in terms:
        kind = known.get(column)
        if kind is None or isinstance(kind, Void):
            continue
        if why := term.refusal(kind):
            raise ConfigError(
                "POLYNYA-CFG-042",
                f"`{setting}` of {name} names `{column}`: {why}",
                where=name,
                state="nothing of this batch was copied; its files stay where they are",
                fix=f"take `{term}` out of `{setting}`, or declare the column under `columns`",
            )


def refuse_age(retention: RowRetention | None, known: Mapping[str, DataType], name: str) -> None:
    """Raise ConfigError when rows are to leave by a column that says no age."""
    kind = None if retention is None else known.get(retention.column)
    if retention is None or kind is None or isinstance(kind, Void):
        return
    if why := age_refusal(kind):
        raise ConfigError(
            "POLYNYA-CFG-043",
            f"`retention` of {name} names `{retention.column}`: {why}",
            where=name,
            state="nothing of this batch was copied; its files stay where they are",
            fix="name another column, or declare this one under `columns`",
        )


def columns_in_use(table: IcebergTable) -> set[str]:
    """Names of columns that files are parted or sorted by, also by an older spec or order.

    Iceberg cannot read a file whose partition comes from a column that is gone.
    """
    made = table.iceberg
    specs = [
        Spec.of(str(made.PartitionSpecParser.toJson(one))) for one in table.java.specs().values()
    ]
    orders = [
        json.loads(made.SortOrderParser.toJson(one)) for one in table.java.sortOrders().values()
    ]
    used = {one.source for spec in specs for one in spec.fields}
    used |= {one["source-id"] for order in orders for one in order["fields"]}
    return {one["name"] for one in table.columns() if one["id"] in used}


def change_spec(table: IcebergTable, change: SpecChange) -> None:
    """Make the change, as evolution of the spec."""
    update = table.java.updateSpec()
    for name in change.remove:
        update.removeField(name)
    for name, term in change.add.items():
        update.addField(name, _expression(table, term))
    table.commit_change(update)


def change_sort_order(
    table: IcebergTable, wanted: Sequence[SortTerm], known: Mapping[str, DataType]
) -> bool:
    """Give the table the sort order, if it has another; whether it had.

    It waits for the types of all its columns: one of which only NULLs were seen is replaced by the
    first value. Iceberg knows no Z-order: such a table has none.
    """
    terms = _plain(wanted)
    if not _lacks_order(table, terms, known):
        return False
    update, nulls = table.java.replaceSortOrder(), table.iceberg.NullOrder
    for one in terms:
        term = table.iceberg.expressions.Expressions.ref(one.columns[0])
        if one.order == "asc":
            update.asc(term, nulls.NULLS_FIRST)
        else:
            update.desc(term, nulls.NULLS_LAST)
    table.commit_change(update)
    return True


def _plain(wanted: Sequence[SortTerm]) -> list[SortTerm]:
    return [one for one in wanted if one.order != "zorder"]


def _lacks_order(
    table: IcebergTable, terms: Sequence[SortTerm], known: Mapping[str, DataType]
) -> bool:
    """Whether a table has another sort order, and all columns of this one with their types."""
    names = table.column_names()
    columns = [one.columns[0] for one in terms]
    there = all(one in names and not isinstance(known.get(one, Void()), Void) for one in columns)
    return there and not table.java_files().order.is_by(table.columns(), terms)


def change_file_size(table: IcebergTable, wanted: int | None) -> bool:
    """Give the table's files this size from now on, if they have another; whether they had."""
    size = str(wanted or DEFAULT_FILE_BYTES)
    if str(table.java.properties().get(_FILE_SIZE)) == size:
        return False
    table.commit_change(table.java.updateProperties().set(_FILE_SIZE, size))
    return True


def _name(term: PartitionTerm, number: int, taken: set[str]) -> str:
    """The name of a field: from that of its column, where it is plain and free."""
    ending = "" if term.transform == "identity" else f"_{term.transform}"
    if term.width is not None:
        ending += f"_{term.width}"
    name = f"{_PREFIX}{term.column}{ending}"
    if _PLAIN.fullmatch(term.column) and name not in taken:
        return name
    return f"{_PREFIX}{number}{ending}"


def _expression(table: IcebergTable, term: PartitionTerm) -> Any:
    """The term as Iceberg's Java side writes it."""
    made = table.iceberg.expressions.Expressions
    if term.transform == "identity":
        return made.ref(term.column)
    transform = getattr(made, term.transform)
    return transform(term.column) if term.width is None else transform(term.column, term.width)
