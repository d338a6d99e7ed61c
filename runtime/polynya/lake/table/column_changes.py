"""Rename and drop columns of an internal table in place, by id: no row is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from polynya.lake.fold.unsent import after_renames
from polynya.lake.table.dataset import DatasetTable


def change_columns(
    target: DatasetTable,
    renames: Mapping[str, str],
    drops: Collection[str],
    *,
    of_empty: bool = False,
) -> None:
    """Rename columns (old name → new name), drop others, and commit the state that knows of it.

    A crash in between leaves columns that the state knows by their old names: done again, the part
    that was done is left out. None of the columns to drop is one that files are parted or sorted by
    (`columns_in_use`), unless the table is empty, which `of_empty` says.
    """
    target.refuse_beside_apply()
    if of_empty:
        target.take_layout_back()
    stored = target.table.column_names()
    update = target.table.java.updateSchema()
    for old, new in renames.items():
        if old in stored and new not in stored:
            update.renameColumn(old, new)
    for name in drops:
        if name in stored:
            update.deleteColumn(name)
    target.table.commit_change(update)
    before = target.state.copy.columns
    columns = replace(
        before,
        schema={renames.get(n, n): kind for n, kind in before.schema.items() if n not in drops},
        keys=[renames.get(name, name) for name in before.keys],
        unsent=sorted(renames.get(name, name) for name in before.unsent if name not in drops),
        unsent_texts=after_renames(before.unsent_texts, renames),
        declared=[renames.get(name, name) for name in before.declared if name not in drops],
        former={renames.get(n, n): kinds for n, kinds in before.former.items() if n not in drops},
        source=before.source
        and {renames.get(n, n): kind for n, kind in before.source.items() if n not in drops},
    )
    target.commit_copy_state(replace(target.state.copy, columns=columns), "schema")
