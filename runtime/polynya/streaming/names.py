"""Which topics or streams a task takes, and which landed table each of them goes to."""

from __future__ import annotations

from collections.abc import Iterable

from polynya.model.config.streaming.kafka import WILDCARD, matches
from polynya.model.config.streaming.landing import Into, landed_table
from polynya.model.contract.identifiers import shown
from polynya.model.errors import ConfigError


def taken(patterns: Iterable[str], streams: Iterable[str]) -> tuple[str, ...]:
    """The streams that any of the patterns takes, in name order."""
    wanted = tuple(patterns)
    return tuple(
        sorted(one for one in set(streams) if any(matches(pattern, one) for pattern in wanted))
    )


def named(patterns: Iterable[str]) -> tuple[str, ...]:
    """The streams that are named, not only met by a wildcard."""
    return tuple(one for one in patterns if WILDCARD not in one)


def by_table(
    into: Into, streams: Iterable[str], where: str
) -> tuple[dict[str, tuple[str, ...]], list[ConfigError]]:
    """The streams of each landed table, and an error for each stream that has none.

    When two of them want one table, the first in name order keeps it.
    """
    if into.table is not None:
        taken_by_it = tuple(sorted(streams))
        return ({into.table: taken_by_it} if taken_by_it else {}), []
    tables: dict[str, tuple[str, ...]] = {}
    errors = []
    for stream in sorted(streams):
        table = landed_table(stream)
        owner = tables.setdefault(table, (stream,))[0]
        if owner != stream:
            errors.append(_contested(owner, stream, table, where))
    return tables, errors


def _contested(owner: str, stream: str, table: str, where: str) -> ConfigError:
    return ConfigError(
        "POLYNYA-STR-012",
        f"{shown(owner)} and {shown(stream)} both want the landed table `{table}`",
        where=where,
        state=f"{shown(stream)} is not landed, {shown(owner)} is; the source keeps it",
        fix="land one of them by a task of its own, or both in one table: `into: {table: NAME}`",
    )
