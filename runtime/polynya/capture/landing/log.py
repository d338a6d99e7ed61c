"""The log of landed batches of one capture, and the only writer to it.

A batch is an object that is written once and never changed. Its number makes it the next one: if
two captures put the same number, one wins and the other has to stop. Loads and the stream write to
the same log, one at a time.

Each batch carries the whole position after it. So after a kill at any point, the newest batch says
how much has landed of every table.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO, Final

from polynya.capture.landing.position import CapturePosition, in_epoch
from polynya.formats.debezium.captured import (
    CaptureHeader,
    EventSchema,
    LoadChunk,
    batch_name,
    batch_number,
    digest_of,
    joined,
    packed_lines,
    read_header,
    write_batch,
)
from polynya.formats.debezium.decode import TIME_UNITS, whole_micros
from polynya.formats.debezium.order import log_of, native_position
from polynya.formats.eras import Era, placed_before
from polynya.formats.errors import UnreadableFileError
from polynya.formats.opening import source_of
from polynya.model.error_catalogue.capture import (
    FOLDER_HAS_ANOTHER_CAPTURE,
    NEWEST_CAPTURED_BATCH_UNUSABLE,
)
from polynya.store.object_store import ObjectStore, checked_path


def chunk_as_batch(
    task: str,
    number: int,
    now: datetime,
    *,
    table: str,
    schema: Mapping[str, Any],
    lines: bytes,
    rows: int,
) -> tuple[str, bytes]:
    """Name and content of a batch with the rows of one chunk; `schema` is that of its events."""
    header = CaptureHeader(
        task, number, now, rows, schemas={table: [EventSchema(1, schema)]}, unsent=""
    )
    return batch_name(number), write_batch(header, lines)


def change_identifier(source: Mapping[str, Any], eras: Sequence[Era] = ()) -> str | None:
    """The place of a view's rows in the order of changes; `source` is what they carry.

    `eras` are those of the log that the table has met.

    None for a connector whose order we do not know. Raises RecordError for a place that is none.
    """
    value = {"op": "r", "source": source}
    position = native_position(value)
    if position is None:
        return None
    position = placed_before(position, eras, log_of(value), whole_micros(source, TIME_UNITS))
    return position[0] + (position[1] or "")


#: Folder of what only the capture reads; hidden from the tasks that copy.
HISTORY: Final = "_history"
_COPY_BYTES: Final = 1 << 20


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
        batches = ((batch_number(info.path), info.path) for info in self.store.list(self.folder))
        # A folder inside is somebody else's.
        return sorted(n for n, path in batches if n is not None and path == self.path(n))

    def header(self, number: int) -> CaptureHeader:
        """What a batch says of itself. Raises OperationError POLYNYA-GTW-003."""
        path = self.path(number)
        try:
            with source_of(self.store, path) as file:
                header = read_header(file, path)
        except UnreadableFileError as error:
            raise NEWEST_CAPTURED_BATCH_UNUSABLE(where=path, reason=str(error)) from error
        if header.number != number:
            reason = f"its header has number {header.number}"
            raise NEWEST_CAPTURED_BATCH_UNUSABLE(where=path, reason=reason)
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
            shutil.copyfileobj(packed, file, _COPY_BYTES)
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
            reason = f"it does not follow number {before.number}, as it is now"
            raise NEWEST_CAPTURED_BATCH_UNUSABLE(where=self.path(after.number), reason=reason)

    def _require_own(self, header: CaptureHeader, *, is_new: bool) -> None:
        """See that a batch is the one that was put."""
        path = self.path(header.number)
        # A put whose answer was lost is retried by the store, and then finds its own object.
        if not is_new and self.header(header.number).line() != header.line():
            raise FOLDER_HAS_ANOTHER_CAPTURE(where=path)

    def path(self, number: int) -> str:
        """The path of a batch in the landing zone."""
        return f"{self.folder}/{batch_name(number)}"


class CaptureLander:
    """Puts batches one after the other. Usable from many threads."""

    def __init__(
        self,
        log: CaptureLog,
        task: str,
        now: Callable[[], datetime],
        *,
        writer: str = "",
        unsent: str | None = None,
        newest: CaptureHeader | None = None,
        landed: Callable[[int, int, int], None] | None = None,
    ) -> None:
        """Go on after the newest batch.

        Args:
            log: where they are.
            task: name of the landing.
            now: the clock.
            writer: a name that no other capture has: of two that put the same number at the same
                moment each has to know whether it was the one.
            unsent: as in the header of a batch.
            newest: as `log.newest` says; None: nothing has landed.
            landed: gets number, events and bytes of each batch.
        """
        self._log, self._task, self._now, self._landed = log, task, now, landed
        self._writer, self._unsent = writer, unsent
        self._lock = threading.Lock()
        self._failure: Exception | None = None
        self._number = 0 if newest is None else newest.number
        self._digest = "" if newest is None else newest.digest
        self._position: CapturePosition | None = None
        if newest is not None:
            self._position = CapturePosition.of(newest.position)

    @property
    def position(self) -> CapturePosition:
        """After all that has landed. Raises ValueError before the first batch."""
        if self._position is None:
            raise ValueError("nothing has landed yet")
        return self._position

    @property
    def number(self) -> int:
        """Of the newest batch, 0 for none."""
        return self._number

    def begin(self, position: CapturePosition) -> None:
        """Land a position without events: the first, or one that an operator asked for."""
        self._put(b"", 0, {}, lambda: position)

    def land(
        self,
        lines: bytes,
        events: int,
        shapes: Mapping[str, Sequence[EventSchema]],
        move: Callable[[CapturePosition], CapturePosition],
        *,
        epoch: int | None = None,
        loads: Mapping[str, LoadChunk] | None = None,
    ) -> None:
        """Land events, and the position that they move to.

        Args:
            lines: event lines, each with its end.
            events: how many.
            shapes: their schemas.
            move: the position after them from the one before; called when nobody else lands.
            epoch: of the places in them; None: that of the position.
            loads: of tables whose rows are compared with what is there.

        Raises:
            ConflictError: POLYNYA-GTW-004, another capture was first. Nothing has moved.
            DependencyError: the landing zone cannot be reached. Whether the batch has landed is
                then known to nobody: all that comes after it fails too, and a new capture looks.
        """
        lines = in_epoch(lines, self.position.epoch if epoch is None else epoch)
        # Compressing takes longest, and needs no turn.
        self._put(packed_lines(lines), events, shapes, lambda: move(self.position), loads)

    def land_file(
        self,
        file: BinaryIO,
        events: int,
        shapes: Mapping[str, Sequence[EventSchema]],
        move: Callable[[CapturePosition], CapturePosition],
    ) -> None:
        """Land events that wait in a file, compressed; the rest, and what it raises, as `land`."""
        self._put(file, events, shapes, lambda: move(self.position))

    def _put(
        self,
        packed: bytes | BinaryIO,
        events: int,
        shapes: Mapping[str, Sequence[EventSchema]],
        moved: Callable[[], CapturePosition],
        loads: Mapping[str, LoadChunk] | None = None,
    ) -> None:
        with self._lock:
            if self._failure is not None:
                raise self._failure
            position = moved()
            header = CaptureHeader(
                task=self._task,
                number=self._number + 1,
                written_at=self._now(),
                events=events,
                position=position.as_dict(),
                schemas=shapes,
                writer=self._writer,
                unsent=self._unsent,
                follows=self._digest,
                loads=loads or {},
            )
            size = self._put_or_stop(header, packed)
            self._number, self._position = header.number, position
            self._digest = digest_of(header.line())
        if self._landed is not None:
            self._landed(header.number, events, size)

    def _put_or_stop(self, header: CaptureHeader, packed: bytes | BinaryIO) -> int:
        try:
            if isinstance(packed, bytes):
                return self._log.put(header, packed)
            return self._log.put_file(header, packed)
        except Exception as error:
            self._failure = error
            raise
