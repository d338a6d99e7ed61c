"""What declared types do to columns that a table has with other types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from polynya.engine.plan.change import Change
from polynya.lake.table.copy_state import CopyState
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.datatypes import DataType, parse_type, widen
from polynya.model.datatypes.rewriting import is_rewritable
from polynya.observe.events import counted


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The rows of a table in its files, with those that are deleted and not yet removed."""

    rows: int
    size_bytes: int
    files: int


def rewritten(dataset: ResolvedDataset, copy: CopyState) -> dict[str, DataType]:
    """Columns that get their declared type only by writing every row again."""
    fixed = {*copy.columns.keys, *dataset.events.sequence_by, *dataset.events.except_columns}
    return {
        name: declared
        for name, (known, declared) in _declared(dataset, copy).items()
        if name not in fixed and is_rewritable(known, declared)
    }


def type_changes(
    dataset: ResolvedDataset, copy: CopyState, stored: StoredRows | None
) -> Iterator[Change]:
    """Declared types that the columns of the table do not have, and cannot get in place."""
    again = rewritten(dataset, copy)
    recorded: Mapping[str, str] = copy.settings.get("columns", {})
    for name, (known, declared) in _declared(dataset, copy).items():
        what = f"columns: {name} is {known}, {declared} is declared"
        if name in again:
            yield Change("type_rewritten", what, _rewrite(declared, stored), "apply")
        elif widen(known, declared) is None and recorded.get(name) != str(declared):
            yield Change(
                "type_out_of_reach",
                what,
                f"a table cannot change {known} to {declared}: {name} stays {known}, and values "
                "that do not fit go to quarantine. Take the declaration back, or give the dataset "
                "a new `name`, which reads all that has landed with the declared types",
                "decide",
            )


def _declared(dataset: ResolvedDataset, copy: CopyState) -> dict[str, tuple[DataType, DataType]]:
    """Columns of the table with the type that they have and the one that is declared."""
    return {
        name: (parse_type(copy.columns.schema[name]), declared)
        for name, declared in dataset.events.columns.items()
        if name in copy.columns.schema
    }


def _rewrite(declared: DataType, stored: StoredRows | None) -> str:
    much = "every row"
    if stored is not None:
        rows, files = counted(stored.rows, "row"), counted(stored.files, "file")
        much = f"{rows} in {files} ({stored.size_bytes / 2**20:,.1f} MiB)"
    return (
        f"writes {much} again with {declared}, in one commit; refused (POLYNYA-LAKE-024) if a "
        "value would not stay the same; earlier snapshots keep the old column. Then `polynya "
        "quarantine replay` reads again what did not fit"
    )
