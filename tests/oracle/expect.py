"""Expected rows of a case, taken from the fold, in the shape of the case's `out_cols`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.oracle.cases import Case
from tests.oracle.fold import Folded, Version

# Output columns that are a path into a column, as an SQL expression and as the same in Python.
PATHS: Mapping[str, Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Any]]]] = {
    "SPK2-N2": {"effective_value": ("value", lambda row: row["value"])},
    "SPK2-N4": {"effective_value": ("value", lambda row: row["value"])},
    "SPK2-40": {
        "a": ("vals[0].a", lambda row: row["vals"][0].get("a")),
        "c": ("vals[0].b.c", lambda row: row["vals"][0]["b"].get("c")),
        "d": ("vals[0].b.d", lambda row: row["vals"][0]["b"].get("d")),
    },
}
TIMES = {"start_at": "hdr__from_timestamp", "end_at": "hdr__to_timestamp"}


def current_rows(case: Case, folded: Folded) -> list[tuple[Any, ...]]:
    """Rows of the Current view."""
    return [_row(case, version) for version in folded.current().values()]


def history_rows(case: Case, folded: Folded) -> list[tuple[Any, ...]]:
    """Rows of the History view without delete versions, coalesced as the case says."""
    kept = [version for version in folded.coalesced(case.tracked) if not version.deleted]
    return [_row(case, version) for version in kept]


def select_list(case: Case) -> str:
    """The case's output columns as SQL over its view."""
    paths = PATHS.get(case.id, {})
    exprs = {
        name: paths[name][0] if name in paths else TIMES.get(name, f"`{name}`")
        for name in case.out_cols
    }
    return ", ".join(f"{expr} AS `{name}`" for name, expr in exprs.items())


def _row(case: Case, version: Version) -> tuple[Any, ...]:
    record = {
        **dict(zip(case.keys, version.key, strict=True)),
        **version.values,
        "start_at": version.from_ts,
        "end_at": version.to_ts,
    }
    paths = PATHS.get(case.id, {})
    return tuple(
        paths[name][1](record) if name in paths else record.get(name) for name in case.out_cols
    )
