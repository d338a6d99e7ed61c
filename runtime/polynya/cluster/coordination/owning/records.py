"""The ownership records of units: read and written many at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from polynya.cluster.coordination.documents import Ownership
from polynya.cluster.coordination.paths import unit_path
from polynya.cluster.coordination.register import Found, Register, StoreError, attempted
from polynya.cluster.coordination.shelf import BATCH, GoOn
from polynya.cluster.coordination.standing import Together
from polynya.cluster.unit import JobKey

#: A record as it is, None when there is none, or why it could not be read.
Read: TypeAlias = Found[Ownership] | StoreError | None
#: A record to write, and the version that it replaces: None when there is none.
Write: TypeAlias = tuple[Ownership, str | None]


class Records:
    """The records below `units/`."""

    def __init__(self, register: Register, together: Together) -> None:
        self._register, self._together = register, together

    def read(self, units: Sequence[JobKey], go_on: GoOn) -> Iterator[dict[JobKey, Read]]:
        """The records, batch after batch, for as long as there is time; the first in any case."""
        for start in range(0, len(units), BATCH):
            if start and not go_on():
                return
            batch = units[start : start + BATCH]
            calls = [
                attempted(partial(self._register.read, Ownership, unit_path(unit)))
                for unit in batch
            ]
            yield dict(zip(batch, self._together(calls), strict=True))

    def write(self, writes: Mapping[JobKey, Write]) -> dict[JobKey, bool | StoreError]:
        """Write each if it is unchanged. True: written; an error: nobody knows."""
        calls = [
            attempted(partial(self._register.write, unit_path(unit), record, version))
            for unit, (record, version) in writes.items()
        ]
        return dict(zip(writes, self._together(calls), strict=True))
