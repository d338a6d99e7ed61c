"""What a source says of the columns of its events, said of the columns that they are mapped to.

Keys, former keys and columns that were not sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from polynya.formats.batch import OLD_KEY_FIELD, DatasetBatch
from polynya.formats.values.arrow_types import arrow_type
from polynya.formats.values.table import no_old_keys
from polynya.lake.copy.mapping.elements import Elements, one_array
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.contract.headers import ALL_BUT, READ
from polynya.model.contract.identifiers import shown
from polynya.model.datatypes import DataType
from polynya.model.errors import ConfigError


def keys_of(batch: DatasetBatch, dataset: ResolvedDataset) -> tuple[str, ...]:
    """The key columns of the table: those of the settings, else what the source's are called there.

    Raises ConfigError POLYNYA-MAP-007 when a key of the source is not in the table.
    """
    if dataset.events.keys:
        return dataset.events.keys
    found = []
    for source in batch.keys:
        name = dataset.mapping.of_table(source)
        if name is None or name in dataset.events.except_columns:
            raise ConfigError(
                "POLYNYA-MAP-007",
                f"the key of the source has the column {shown(source)}, which the table would lack",
                where=dataset.relations.current,
                state="nothing of this batch was copied; its files stay where they are",
                fix=f"give the column of that name another one, and map {shown(source)} as it is",
            )
        found.append(name)
    return tuple(found)


def former_keys(
    batch: DatasetBatch,
    dataset: ResolvedDataset,
    elements: Elements,
    keys: Sequence[str],
    schema: Mapping[str, DataType],
) -> pa.Array:
    """The column `__old` in the names and types of the table."""
    column = one_array(batch.rows.column(OLD_KEY_FIELD))
    sources = dataset.mapping.of_source(keys)
    nothing = no_old_keys(keys, schema, len(elements.of(column))).array
    if column.null_count == len(column) or len(sources) != len(keys):
        return nothing
    fields = [
        pc.struct_field(column, [column.type.get_field_index(source)]).cast(arrow_type(schema[key]))
        for key, source in zip(keys, sources, strict=True)
    ]
    mask = pc.is_null(column)
    made = pa.StructArray.from_arrays(fields, fields=list(nothing.type), mask=mask)
    return elements.of(made)


def unsent_columns(
    unsent: pa.Array, reads: Mapping[str, frozenset[str]], *, also: frozenset[str]
) -> tuple[pa.Array, dict[int, frozenset[str]]]:
    """The column `__unsent` in the names of the table, and columns of the source not sent, by row.

    `reads` has the columns of the source that each column of the table is made of: it was not sent
    when one of them was not. Where a source says what it sent, so does the result. `also` are other
    columns of the source that somebody asks for.
    """
    if unsent.null_count == len(unsent):
        return unsent, {}
    known = also.union(*reads.values())
    made: dict[tuple[str, ...], list[str]] = {}
    missing: dict[int, frozenset[str]] = {}
    lists: list[list[str] | None] = []
    for row, names in enumerate(unsent.to_pylist()):
        if not names:
            lists.append(names)
            continue
        lacking = _lacking(names, known)
        missing[row] = lacking
        if tuple(names) not in made:
            made[tuple(names)] = _said(names, lacking, reads)
        lists.append(made[tuple(names)] or None)
    return pa.array(lists, unsent.type), missing


def _lacking(names: Collection[str], known: frozenset[str]) -> frozenset[str]:
    return known - set(names) if ALL_BUT in names else frozenset(names)


def _said(
    names: Collection[str], lacking: frozenset[str], reads: Mapping[str, frozenset[str]]
) -> list[str]:
    sent = [name for name, sources in reads.items() if not sources & lacking]
    if ALL_BUT in names:
        return [ALL_BUT, *sent]
    mark = [READ] if READ in names else []
    return [*mark, *(name for name in reads if name not in sent)]
