"""The history of a table's schema changes: what changed, when, and which policy decided.

A table remembers each change in the commit that carries it out, so a process that is killed before
or after that commit records it once. Changes that are ignored come with every batch and are
remembered once.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from polynya.lake.table.state import CopyState, DecidedChange
from polynya.model.config.evolution import SchemaChange, policy_in_words


def decided_changes(
    before: CopyState, changes: Iterable[SchemaChange], now: datetime
) -> list[DecidedChange]:
    """What is decided of changes at `now`; truncates are counted, and not among them."""
    return [
        DecidedChange(
            now.isoformat(),
            change.kind,
            str(change),
            policy_in_words(change.policy),
            accepted=change.kind in before.decisions.accepted,
        )
        for change in changes
        if change.kind != "truncate"
    ]
