"""Which topics a task takes, and which landed table each of them goes to."""

from __future__ import annotations

from collections.abc import Iterable

from polynya.model.config.streaming.kafka import WILDCARD, matches
from polynya.model.config.streaming.landing import Into, landed_table
from polynya.model.contract.identifiers import shown
from polynya.model.errors import ConfigError


def taken(patterns: Iterable[str], topics: Iterable[str]) -> tuple[str, ...]:
    """The topics that any of the patterns takes, in name order."""
    wanted = tuple(patterns)
    return tuple(
        sorted(one for one in set(topics) if any(matches(pattern, one) for pattern in wanted))
    )


def named(patterns: Iterable[str]) -> tuple[str, ...]:
    """The topics that are named, not only met by a wildcard."""
    return tuple(one for one in patterns if WILDCARD not in one)


def by_table(
    into: Into, topics: Iterable[str], where: str
) -> tuple[dict[str, tuple[str, ...]], list[ConfigError]]:
    """The topics of each landed table, and an error for each topic that has none.

    When two topics want one table, the first in name order keeps it.
    """
    if into.table is not None:
        taken_by_it = tuple(sorted(topics))
        return ({into.table: taken_by_it} if taken_by_it else {}), []
    tables: dict[str, tuple[str, ...]] = {}
    errors = []
    for topic in sorted(topics):
        table = landed_table(topic)
        owner = tables.setdefault(table, (topic,))[0]
        if owner != topic:
            errors.append(_contested(owner, topic, table, where))
    return tables, errors


def _contested(owner: str, topic: str, table: str, where: str) -> ConfigError:
    return ConfigError(
        "POLYNYA-STR-012",
        f"topics {shown(owner)} and {shown(topic)} both want the landed table `{table}`",
        where=where,
        state=f"{shown(topic)} is not landed, {shown(owner)} is; the topic keeps its records",
        fix="land one of them by a task of its own, or both in one table: `into: {table: NAME}`",
    )
