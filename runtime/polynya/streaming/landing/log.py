"""The landed batches of one table in the landing zone: the newest, and the one after it.

A batch is an object that is written once and never changed. The number in its name makes it the
next one: of two writers that put the same number one wins, and the other looks again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa

from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.source import source_of
from polynya.formats.landed.batch import (
    StreamFooter,
    batch_name,
    batch_number,
    read_footer,
    write_batch,
)
from polynya.model.errors import OperationError
from polynya.store.object_store import ObjectInfo, ObjectStore, checked_path


class LandedLog:
    """The batches of one landed table. `newest` is remembered, so that nobody lists for nothing."""

    def __init__(self, store: ObjectStore, folder: str, table: str) -> None:
        self.folder = str(checked_path(f"{folder}/{table}"))
        self.table = table
        self._store = store
        self._newest: StreamFooter | None = None
        self._is_known = False

    def newest(self) -> StreamFooter | None:
        """What the batch with the highest number says; None: nothing was landed.

        Raises:
            OperationError: POLYNYA-STR-014, it cannot be read, or does not begin where the one
                before it ends. Nobody may guess the position.
        """
        if not self._is_known:
            numbers = self.numbers()
            newest = self.footer(max(numbers)) if numbers else None
            before = self._footer(newest.number - 1) if newest and newest.number > 1 else None
            if newest is not None and before is not None:
                self._require_successor(before, newest)
            self._newest, self._is_known = newest, True
        return self._newest

    def look_again(self) -> None:
        """Another writer has put batches: find the newest among those that came.

        Raises OperationError as `newest`.
        """
        if self._newest is None:
            self._is_known = False
            return
        while (after := self._footer(self._newest.number + 1)) is not None:
            self._require_successor(self._newest, after)
            self._newest = after

    def put(self, footer: StreamFooter, rows: pa.Table) -> int | None:
        """Put the next batch; its size in bytes, None when another writer was first."""
        data = write_batch(footer, rows)
        if not self._store.put_if_absent(self.path(footer.number), data):
            return None
        self._newest, self._is_known = footer, True
        return len(data)

    def numbers(self) -> list[int]:
        """The numbers of the batches that there are. Lists the folder."""
        return sorted(batch_number(one.path) or 0 for one in self.batches())

    def batches(self) -> Iterator[ObjectInfo]:
        """The batches that there are. Lists the folder."""
        for info in self._store.list(self.folder):
            number = batch_number(info.path)
            # A folder inside is somebody else's.
            if number is not None and info.path == self.path(number):
                yield info

    def footer(self, number: int) -> StreamFooter:
        """What a batch says of itself. Raises OperationError when it cannot be read."""
        footer = self._footer(number)
        if footer is None:
            raise _unreadable(self.path(number), "it is not there")
        return footer

    def footer_if_there(self, number: int) -> StreamFooter | None:
        """The same, None when the batch is not there. Raises OperationError as `footer`."""
        return self._footer(number)

    def written_at(self, number: int) -> datetime | None:
        """When a batch was written; None when it is not there. Raises as `footer`."""
        footer = self._footer(number)
        return None if footer is None else footer.written_at

    def delete(self, number: int) -> None:
        """Remove a batch that is not the newest."""
        self._store.delete(self.path(number))

    def path(self, number: int) -> str:
        """The path of a batch in the landing zone."""
        return f"{self.folder}/{batch_name(number)}"

    def _require_successor(self, before: StreamFooter, after: StreamFooter) -> None:
        """See that a batch continues the one before it: else it was put by nobody who landed."""
        if after.begin != before.end:
            why = f"it does not begin where number {before.number} ends"
            raise _unreadable(self.path(after.number), why)

    def _footer(self, number: int) -> StreamFooter | None:
        path = self.path(number)
        try:
            with source_of(self._store, path) as file:
                found = read_footer(file, path)
        except UnreadableFileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise _unreadable(path, str(error)) from error
        if found.number != number:
            raise _unreadable(path, f"it says that it is number {found.number}")
        return found


def _unreadable(path: str, why: str) -> OperationError:
    return OperationError(
        "POLYNYA-STR-014",
        f"the newest landed batch cannot be used: {why}",
        where=path,
        state="nothing was landed after it; the source keeps its records as long as it is set to",
        fix="put the object back as it was written. If it is lost for ever, delete the batches "
        "from this one on: the stream goes on after the last that can be read",
    )


def landed_tables(store: ObjectStore, folder: str) -> dict[str, int]:
    """The tables that a landing has, with the highest number of each. Lists the folder."""
    found: dict[str, int] = {}
    for info in store.list(folder):
        number = batch_number(info.path)
        inside = info.path.removeprefix(f"{folder}/").split("/")
        if number is not None and len(inside) == 2:
            found[inside[0]] = max(number, found.get(inside[0], 0))
    return found
