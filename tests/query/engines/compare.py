"""Compare what an engine shows with what Spark shows: names, types and rows in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.query.engines.differences import adapted
from tests.query.engines.engines import Engine, View

_SHOWN_ROWS = 5


@dataclass(frozen=True)
class Compared:
    """What differs from Spark, and the views that the engine leaves to Spark by name."""

    different: list[str]
    refused: set[str]


def compared(engine: Engine, project: Path, wanted: Mapping[View, pa.Table]) -> Compared:
    """Read each view, and compare it with what Spark shows but for the known differences."""
    result = Compared([], set())
    with engine.open(project) as read:
        for view, table in wanted.items():
            if view.is_stored and not engine.reads_stored_views:
                continue
            shown, name = read(view), f"{view.schema}.{view.name}"
            if shown is None:
                result.refused.add(name)
                continue
            texts = difference(adapted(engine.name, view, table), shown)
            result.different.extend(f"{engine.name}, {name}: {text}" for text in texts)
    return result


def difference(wanted: pa.Table, found: pa.Table) -> list[str]:
    """Columns by name and type, else rows of one side only."""
    columns = [
        [f"{one.name} {_plain(one.type)}" for one in table.schema] for table in (wanted, found)
    ]
    if columns[0] != columns[1]:
        missing, more = ([c for c in a if c not in b] for a, b in (columns, columns[::-1]))
        what = f"columns {more} instead of {missing}"
        return [what if missing or more else "another order of columns"]
    left, right = (Counter(_rows(table)) for table in (wanted, found))
    missing, more = (list((a - b).elements()) for a, b in ((left, right), (right, left)))
    texts = [f"lacks {row}" for row in missing] + [f"has {row}" for row in more]
    return texts[:_SHOWN_ROWS] + ([f"and {len(texts)} in all"] if len(texts) > _SHOWN_ROWS else [])


def _rows(table: pa.Table) -> Sequence[str]:
    kinds = [one.type for one in table.schema]
    # By number: a column may have any name.
    columns = [table.column(at).to_pylist() for at in range(table.num_columns)]
    return [
        repr([_comparable(value, kind) for value, kind in zip(row, kinds, strict=True)])
        for row in zip(*columns, strict=True)
    ]


def _comparable(value: Any, kind: pa.DataType) -> Any:
    """Maps come in any order."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return sorted(
            (repr(_comparable(key, kind.key_type)), repr(_comparable(one, kind.item_type)))
            for key, one in value
        )
    if _is_list(kind):
        return [_comparable(one, kind.value_type) for one in value]
    if pa.types.is_struct(kind):
        return {one.name: _comparable(value[one.name], one.type) for one in kind}
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC)
    return value


def _plain(kind: pa.DataType) -> str:
    """The type, without how Arrow lays its values out in memory and what its fields are called."""
    if _is_list(kind):
        return f"list<{_plain(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_plain(kind.key_type)}, {_plain(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{one.name}: {_plain(one.type)}' for one in kind)}>"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}{', zone' if kind.tz else ''}]"
    return str(kind).removeprefix("large_").removesuffix("_view")


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)
