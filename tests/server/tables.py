"""Internal tables of a project as the engine would leave them, made without a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from polynya.lake.table.state import ApplyState, CopyState, SourceColumns
from polynya.model import headers as h
from polynya.model.headers import Partition
from tests.lake.warehouse.tables import catalog_in

_TIME = pa.timestamp("us", "UTC")
_HEADERS = pa.schema(
    [
        pa.field(h.PARTITION, pa.string()),
        pa.field(h.KEY_HASH, pa.binary()),
        *(
            pa.field(name, _TIME if name.endswith("timestamp") else pa.string())
            for name in h.HEADER_NAMES
            if name not in {h.PARTITION, h.KEY_HASH, h.QUARANTINE}
        ),
    ]
)
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """A moment."""
    return START + timedelta(seconds=seconds)


def event(
    sequence: str, operation: str, source: float, copied: float, **values: Any
) -> dict[str, Any]:
    """A pending event; times are seconds."""
    return {
        h.PARTITION: str(Partition.CHANGES),
        h.CHANGE_IDENTIFIER: sequence,
        h.OPERATION: operation,
        h.TIMESTAMP: at(source),
        h.INSERTED_TIMESTAMP: at(copied),
        **values,
    }


def kept(event: Mapping[str, Any], applied: float) -> dict[str, Any]:
    """An event that was applied and is kept."""
    return {**event, h.PARTITION: str(Partition.RETAINED), h.WAS_CURRENT_FROM: at(applied)}


def current(
    sequence: str, operation: str, begin: float, applied: float, **values: Any
) -> dict[str, Any]:
    """The newest version of a record."""
    return {
        h.PARTITION: str(Partition.CURRENT),
        h.CHANGE_IDENTIFIER: sequence,
        h.OPERATION: operation,
        h.FROM_TIMESTAMP: at(begin),
        h.INSERTED_TIMESTAMP: at(applied),
        h.MODIFIED_TIMESTAMP: at(applied),
        **values,
    }


def prior(
    sequence: str,
    operation: str,
    valid: tuple[float, float | None],
    shown: tuple[float, float],
    **values: Any,
) -> dict[str, Any]:
    """An older version of a record, or its delete."""
    return {
        h.PARTITION: str(Partition.PRIOR),
        h.CHANGE_IDENTIFIER: sequence,
        h.OPERATION: operation,
        h.FROM_TIMESTAMP: at(valid[0]),
        h.TO_TIMESTAMP: None if valid[1] is None else at(valid[1]),
        h.WAS_CURRENT_FROM: at(shown[0]),
        h.WAS_CURRENT_TO: at(shown[1]),
        **values,
    }


def write_table(
    folder: Path,
    name: str,
    columns: Mapping[str, tuple[str, pa.DataType]],
    keys: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    copy: CopyState | None = None,
) -> None:
    """An internal table `schema.table`; each column has its type in Spark and in Arrow."""
    (folder / "warehouse").mkdir(exist_ok=True)
    catalog = catalog_in(folder)
    schema, _, table = name.partition(".")
    catalog.create_namespace_if_not_exists(schema)
    arrow = pa.schema(
        [*_HEADERS, *(pa.field(column, kind) for column, (_, kind) in columns.items())]
    )
    place = folder / "warehouse" / schema / table
    made = catalog.create_table((schema, table), arrow, location=str(place))
    with made.update_spec() as spec:
        spec.add_identity(h.PARTITION)
    known = SourceColumns(
        schema={column: kind for column, (kind, _) in columns.items()}, keys=list(keys)
    )
    state = copy or CopyState(columns=known)
    states = [
        {h.COPY_CHANGE_IDENTIFIER: "1", h.STATE: state.to_json()},
        {h.APPLY_CHANGE_IDENTIFIER: "1", h.STATE: ApplyState().to_json()},
    ]
    whole = [{h.PARTITION: str(Partition.ASSET_STATE), **one} for one in states]
    made.append(pa.Table.from_pylist([*whole, *map(dict, rows)], schema=arrow))
