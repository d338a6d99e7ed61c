"""A folder or a bucket with files of others as a source of landed batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

import pyarrow as pa
from typing_extensions import override

from polynya.formats.landed import Lost
from polynya.model.config.stream_content import Content
from polynya.model.config.stream_landing import FilesSource, StreamingLanding
from polynya.model.error_catalogue.stream_sources import (
    FILES_POSITION_INVALID,
    TOO_MANY_UNDATED_FILES,
)
from polynya.model.error_catalogue.streams import RELOAD_FILES_MAY_DIFFER
from polynya.model.headers import StreamSource
from polynya.model.names import shown
from polynya.model.patterns import file_pattern
from polynya.store.clock import Clock
from polynya.store.places import SourceStore
from polynya.streams.files.files import FoundFile, RememberedFiles
from polynya.streams.files.listing import Listing, begun, look_at, look_at_initial
from polynya.streams.files.position import FilesPosition, after_files, after_initial
from polynya.streams.files.reading import FilesBatch, FilesReader
from polynya.streams.source import (
    Again,
    AvailableStreams,
    InOrder,
    LandingLimits,
    MessageSource,
    Next,
    Position,
    ReadMessages,
    Ready,
    Stream,
)

#: So many files without dates are remembered at most: 1.6 MB in each footer.
MAX_REMEMBERED_FILES: Final = 100_000
_NO_LIMIT: Final = 10**9


@dataclass(frozen=True, slots=True)
class FilesStep:
    """What the next landed batch holds.

    Attributes:
        rows: its rows.
        end: the position after them.
        lost: files that could not be read, or not any more.
        size_bytes: of the messages.
        left: files that are known to be left.
        more: there is something left to read now.
    """

    rows: pa.Table
    end: FilesPosition
    lost: tuple[Lost, ...] = ()
    size_bytes: int = 0
    left: int = 0
    more: bool = False


class FilesOfSource:
    """Reads the files of one source, batch by batch. Not for several threads.

    What it lists and keeps open between two batches is worth time only: it begins again from any
    position.
    """

    def __init__(
        self,
        store: SourceStore,
        settings: FilesSource,
        content: Content,
        start_from: datetime | Literal["earliest", "now"],
        clock: Clock,
    ) -> None:
        self._store = store
        self._settings = settings
        self._start_from = start_from
        self._clock = clock
        self._pattern = file_pattern(settings.pattern)
        load = settings.initial_load
        self._initial = None if load is None else file_pattern(load)
        self._reader = FilesReader(store, content)
        self._look: Listing | None = None
        self._queue: Sequence[FoundFile] = ()
        self._emptied: FilesPosition | None = None
        self._expected: FilesPosition | None = None

    def next(
        self, position: FilesPosition | None, *, max_records: int, max_bytes: int
    ) -> FilesStep | None:
        """What follows a position, None when there is nothing for now.

        The position is that of a batch that was put: what it took in whole is deleted now, if the
        settings say so.

        Raises:
            PolynyaError: the source cannot be listed or read.
        """
        if position is None:
            position = self.begin()
            if self._start_from == "now":
                return FilesStep(FilesBatch().table(), position, more=True)
        self.settle(position)
        look, position = self._looked(position)
        read = self._reader.read(
            self._queue,
            position.cut,
            max_records=max_records,
            max_bytes=max_bytes,
            initial=position.initial is not None,
        )
        return self._step(position, look, read)

    def close(self) -> None:
        """Let go of what is open."""
        self._reader.close()

    def begin(self) -> FilesPosition:
        """The position of a source that was never read."""
        initial = None if self._initial is None else ""
        unit = self._pattern.unit
        if self._start_from == "earliest":
            return FilesPosition(RememberedFiles(), initial=initial)
        if isinstance(self._start_from, datetime):
            since = begun(self._start_from, unit) if unit else None
            return FilesPosition(RememberedFiles(), since, initial=initial)
        now = self._clock.now()
        since = begun(now - self._settings.look_back, unit) if unit else None
        look = self._listed(FilesPosition(RememberedFiles(), since), most=_NO_LIMIT)
        known = RememberedFiles().adding(look.files)
        _refuse_too_many(known, self._settings)
        return FilesPosition(known, since, initial=initial)

    def _looked(self, position: FilesPosition) -> tuple[Listing, FilesPosition]:
        """What there is to read from a position on; the initial load may turn out to be over."""
        if self._look is not None and self._queue and position == self._expected:
            return self._look, position
        if position.initial is not None and self._initial is not None:
            look = look_at_initial(self._store, self._initial, position)
            if look.files or position.cut:
                self._look, self._queue = look, look.files
                return look, position
        position = replace(position, initial=None)
        self._look = self._listed(position)
        self._queue = self._look.files
        return self._look, position

    def _listed(self, position: FilesPosition, most: int | None = None) -> Listing:
        limit = {} if most is None else {"most": most}
        return look_at(
            self._store,
            self._pattern,
            position,
            now=self._clock.now(),
            look_back=self._settings.look_back,
            without=self._initial,
            **limit,
        )

    def _step(self, position: FilesPosition, look: Listing, read: FilesBatch) -> FilesStep | None:
        """The batch of what was read."""
        self._queue = self._queue[read.begun :]
        over = look.over and not self._queue and read.cut is None
        lost = [*(_changed(file) for file in look.changed), *read.lost]
        if not (read.values or read.finished or lost or read.cut):
            return None
        if position.initial is not None:
            end = after_initial(position, read.finished, over=over)
        else:
            end = after_files(position, read.finished, horizon=look.horizon, over=over)
            end = replace(end, known=self._known(end.known, look, over=over))
        unread = {*read.unread, *(gap.at for gap in read.lost)}
        taken = [file for file in read.finished if file.name not in unread]
        end = replace(
            end, cut=read.cut, taken=tuple(taken) if self._settings.delete_after_load else ()
        )
        # What changed was said with this batch.
        self._look = replace(look, changed=())
        waiting = [*self._queue, *([read.cut.file] if read.cut else [])]
        written = [file.written for file in waiting if file.written is not None]
        end = replace(end, left=len(waiting), oldest=min(written, default=None))
        self._expected = end
        # After the initial load nobody has looked for other files yet.
        unknown = not look.over or position.initial is not None
        left = len(waiting) + unknown
        return FilesStep(read.table(), end, tuple(lost), read.bytes, left, more=bool(left))

    def _known(self, known: RememberedFiles, look: Listing, *, over: bool) -> RememberedFiles:
        known = known.adding(look.changed)
        if look.there is not None and over:
            known = known.among(look.there)
        _refuse_too_many(known, self._settings)
        return known

    def settle(self, position: FilesPosition | None) -> None:
        """Delete what the batch before a position took in whole, unless it was written again since.

        That batch was put, else nobody knew the position.
        """
        if position is None or position == self._emptied or not self._settings.delete_after_load:
            return
        for file in position.taken:
            # The position landed: what it names and the source never reads is not the source's.
            if self._is_of_source(file.name):
                self._store.delete_if_unchanged(file.name, file.version)
        self._emptied = position

    def _is_of_source(self, name: str) -> bool:
        return any(
            pattern is not None and pattern.matches(name)
            for pattern in (self._pattern, self._initial)
        )


def files_position(values: Mapping[str, Any], where: str) -> FilesPosition:
    """The position that a footer holds. Raises OperationError POLYNYA-STR-041."""
    try:
        return FilesPosition.from_json(values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FILES_POSITION_INVALID(where=where, error=error) from error


def _changed(file: FoundFile) -> Lost:
    return Lost(file.name, "0", "", "changed after it was read; it is not read again")


def _refuse_too_many(known: RememberedFiles, settings: FilesSource) -> None:
    if settings.has_dates or len(known) <= MAX_REMEMBERED_FILES:
        return
    where = f"{settings.url}, pattern {settings.pattern}"
    raise TOO_MANY_UNDATED_FILES(where=where, count=len(known), limit=MAX_REMEMBERED_FILES)


class Files(MessageSource):
    """See `MessageSource`. All files are one stream, named like the task."""

    kind: StreamSource = "files"

    def __init__(
        self, store: SourceStore, clock: Clock, task: StreamingLanding, source: FilesSource
    ) -> None:
        self._store, self._clock, self._task, self._source = store, clock, task, source

    @override
    def find(self) -> AvailableStreams:
        return AvailableStreams({self._task.into.table or self._task.name: (self._task.name,)})

    @override
    def is_asked_for(self, stream: str) -> bool:
        return stream == self._task.name

    @override
    def known(self, position: Position) -> frozenset[str]:
        del position
        return frozenset({self._task.name})

    @override
    def reread_from(self, began: Position) -> Position:
        return began

    @override
    def again(self, table: str, began: Position, until: Position) -> Again:
        """A position says of a file only that it was read, and not for good."""
        del began, until
        raise RELOAD_FILES_MAY_DIFFER(
            where=f"task {self._task.name}",
            why="files may have been added, changed or removed since, and a position names only "
            "the recent ones",
            table=shown(table),
        )

    @override
    def order_of(self, streams: tuple[str, ...]) -> InOrder:
        """Files are read in the order of their dates; one that came late was not."""
        del streams
        return lambda *_: True

    @override
    def stream(self, table: str) -> FilesStream:
        steps = FilesOfSource(
            self._store, self._source, self._task.content, self._task.start_from, self._clock
        )
        return FilesStream(steps, f"task {self._task.name}, landed table {table}")


class FilesStream(Stream):
    """See `Stream`.

    Only reading tells what can be read, so `next` reads, and keeps it for `read`.
    """

    def __init__(self, steps: FilesOfSource, where: str) -> None:
        self._steps, self._where = steps, where
        self._ready: Ready | None = None
        self._over_at: Position | None = None

    @override
    def next(
        self,
        streams: tuple[str, ...],
        position: Position | None,
        limits: LandingLimits,
        *,
        once: bool,
    ) -> Next:
        """With `once` it ends with the look that found no more files."""
        del streams
        if self._ready is not None and self._ready.position == position:
            return self._ready.next
        before = None if position is None else files_position(position, self._where)
        if before is None and not limits.max_records:
            return Next(self._steps.begin().to_json(), 0, moves=True, behind=0)
        if once and position is not None and self._over_at == position:
            self._steps.settle(before)
            return self._nothing(position)
        step = self._steps.next(before, max_records=limits.max_records, max_bytes=limits.max_bytes)
        if step is None:
            self._over_at = position
            return self._nothing(position)
        taken = ReadMessages(step.rows, step.end.to_json(), step.size_bytes, step.left)
        # Whoever does not come back with that position has to read it again.
        self._over_at = None if step.more else taken.end
        following = Next(
            end=taken.end,
            records=step.rows.num_rows,
            moves=True,
            behind=step.left,
            lost=step.lost,
            # How many records they held nobody can say: at least one.
            lost_records=len(step.lost),
            reads=taken,
        )
        self._ready = Ready(position, following)
        return following

    @override
    def read(self, wanted: Next, limits: LandingLimits) -> ReadMessages:
        """What was read already."""
        del limits
        self._ready = None
        found: ReadMessages = wanted.reads
        return found

    def _nothing(self, position: Position | None) -> Next:
        return Next({} if position is None else position, 0, moves=False, behind=0)
