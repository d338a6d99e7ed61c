"""A table in the hands of an owner, and steps that a test takes with it by hand."""

from __future__ import annotations

import itertools
from typing import Any

from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from tests.lab.lab import STARTED, Feed
from tests.lab.twins import NEVER_AGAIN

_numbers = itertools.count(1)


def owned(users: Feed, owner: str = "owner") -> DatasetTable:
    """The table in the hands of an owner."""
    table = users.table(owner)
    enter(table)
    return table


def copied(users: Feed, table: DatasetTable, *records: Any) -> None:
    """Copy records, from a file of their own."""
    batch = users.batch(*records, file=f"by-hand-{next(_numbers):04d}.json")
    copy_batch(table, batch, FastApplier(), now=STARTED)


def applied(table: DatasetTable) -> None:
    """Apply what is pending; rows go by position deletes."""
    FastApplier(rewriting=NEVER_AGAIN).apply(table, reason="a test", now=STARTED)


def step(users: Feed, table: DatasetTable, *records: Any) -> None:
    """Copy and apply records; rows go by position deletes."""
    copied(users, table, *records)
    applied(table)
