"""The landed batches of one capture: the newest, and the one after it.

A batch is an object that is written once and never changed. The number in its name makes it the
next one: of two captures that put the same number one wins, and the other has to stop.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import BinaryIO, Final

from polynya.formats.debezium.captured.batch import (
    CaptureHeader,
    batch_name,
    batch_number,
    joined,
    read_header,
)
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.source import source_of
from polynya.model.errors import ConflictError, OperationError
from polynya.store.object_store import ObjectStore, checked_path

#: Folder of what only the capture reads; hidden from the tasks that copy.
HISTORY: Final = "_history"
_PIECE: Final = 1 << 20


class CaptureLog:
    """The batches in the folder of one capture."""

    def __init__(self, store: ObjectStore, folder: str) -> None:
        self.folder = str(checked_path(folder))
        self.store = store
        self._checked = 0

    def newest(self) -> CaptureHeader | None:
        """What the batch with the highest number says; None: nothing has landed. Lists the folder.

        Raises:
            OperationError: POLYNYA-GTW-003, it cannot be read, or does not follow the one before.
                Nobody may guess the position.
        """
        numbers = self.numbers()
        if not numbers:
            return None
        newest = self.header(numbers[-1])
        if newest.number != self._checked and newest.number - 1 in numbers:
            self._require_successor(self.header(newest.number - 1), newest)
        self._checked = newest.number
        return newest

    def numbers(self) -> list[int]:
        """The numbers of the batches that there are. Lists the folder."""
        found = ((batch_number(info.path), info.path) for info in self.store.list(self.folder))
        # A folder inside is somebody else's.
        return sorted(n for n, path in found if n is not None and path == self.path(n))

    def header(self, number: int) -> CaptureHeader:
        """What a batch says of itself. Raises OperationError POLYNYA-GTW-003."""
        path = self.path(number)
        try:
            with source_of(self.store, path) as file:
                header = read_header(file, path)
        except UnreadableFileError as error:
            raise _unreadable(path, str(error)) from error
        if header.number != number:
            raise _unreadable(path, f"it says that it is number {header.number}")
        return header

    def put(self, header: CaptureHeader, packed: bytes) -> int:
        """Put the next batch; its size in bytes.

        Args:
            header: of the batch.
            packed: its lines, as `packed_lines` makes them.

        Raises:
            ConflictError: POLYNYA-GTW-004, another capture has put this number.
        """
        path, data = self.path(header.number), joined(header, packed)
        self._require_own(header, is_new=self.store.put_if_absent(path, data))
        return len(data)

    def put_file(self, header: CaptureHeader, packed: BinaryIO) -> int:
        """As `put`, of lines in a file, which memory need not hold."""
        with tempfile.TemporaryFile(prefix="polynya-batch-") as file:
            file.write(joined(header, b""))
            packed.seek(0)
            shutil.copyfileobj(packed, file, _PIECE)
            size = file.tell()
            is_new = self.store.put_file_if_absent(self.path(header.number), file)
        self._require_own(header, is_new=is_new)
        return size

    def _require_successor(self, before: CaptureHeader, after: CaptureHeader) -> None:
        """See that a batch was put by a capture that had landed, or had found, the one before it.

        Batches of version 1 do not say so. None of them comes after one that does: who writes them
        does not read the others.
        """
        is_old = before.follows is None and after.follows is None
        if not is_old and after.follows != before.digest:
            raise _unreadable(
                self.path(after.number), f"it does not follow number {before.number}, as it is now"
            )

    def _require_own(self, header: CaptureHeader, *, is_new: bool) -> None:
        """See that a batch is the one that was put."""
        path = self.path(header.number)
        # A put whose answer was lost is tried again by the store, and then finds its own object.
        if not is_new and self.header(header.number).line() != header.line():
            raise ConflictError(
                "POLYNYA-GTW-004",
                "another capture has landed into the same folder",
                where=path,
                state="what this one had read was not landed; the other one goes on, nothing is "
                "lost or doubled",
                fix="let one capture write into a folder: stop one of the two, or give one of "
                "them another `folder`",
            )

    def path(self, number: int) -> str:
        """The path of a batch in the landing zone."""
        return f"{self.folder}/{batch_name(number)}"


def _unreadable(path: str, why: str) -> OperationError:
    return OperationError(
        "POLYNYA-GTW-003",
        f"the newest batch of the capture cannot be used: {why}",
        where=path,
        state="nothing was landed after it; the database keeps its changes as long as it has room",
        fix="put the object back as it was written. If it is lost for ever, make the capture anew: "
        "see the page of this error",
    )
