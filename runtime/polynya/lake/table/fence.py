"""Which owner may take a table over, and the error for an overtaken one (semantics section 11).

An owner comes with the epoch that coordination granted to it. Without a grant it takes the next
epoch.
"""

from __future__ import annotations

import os
import socket
from uuid import uuid4

from polynya.lake.table.state import TableOwnership
from polynya.model.error_catalogue.cluster import LAKE_EPOCH_TOO_LOW
from polynya.model.error_catalogue.lake import TABLE_TAKEN_OVER
from polynya.model.errors import FencedError


def new_owner() -> str:
    """Identity of an owner: this process, this start."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:12]}"


def owner_in_words(owner: str) -> str:
    """An owner in words: `process 4711 on node-1`."""
    host, _, rest = owner.partition(":")
    process, _, start = rest.partition(":")
    return f"process {process} on {host}" if start else owner or "another process"


def epoch_to_take(ownership: TableOwnership, *, owner: str, granted: int | None, table: str) -> int:
    """The epoch under which an owner takes over a table whose ownership is `ownership`.

    With a grant it is that epoch, so that all tables of a unit of work have the one that
    coordination knows. The same owner may take it again: after a failure it opens its tables again.

    Raises FencedError when the table has seen that epoch in other hands, or a higher one.
    """
    if granted is None:
        return ownership.epoch + 1
    if granted > ownership.epoch or (granted == ownership.epoch and owner == ownership.owner):
        return granted
    raise LAKE_EPOCH_TOO_LOW(
        where=table,
        owner=owner_in_words(ownership.owner),
        table=table,
        epoch=ownership.epoch,
        granted=granted,
    ).by(epoch=ownership.epoch, owner=ownership.owner)


def refuse_overtaken(newest: TableOwnership, epoch: int, table: str) -> None:
    """Raise FencedError when a table that was taken under an epoch has a newer owner."""
    if newest.epoch > epoch:
        raise TABLE_TAKEN_OVER(
            where=table,
            owner=owner_in_words(newest.owner),
            table=table,
            epoch=newest.epoch,
            our_epoch=epoch,
        ).by(epoch=newest.epoch, owner=newest.owner)


def epoch_found(error: BaseException) -> int:
    """The epoch of the table that has a newer owner; 0 for any other error."""
    return error.epoch if isinstance(error, FencedError) else 0
