"""A folder or a bucket with files of others as a source of streams."""

from __future__ import annotations

from polynya.model.config.streaming.files import FilesSource
from polynya.model.config.streaming.landing import StreamingLanding
from polynya.model.contract.identifiers import shown
from polynya.model.contract.stream_headers import StreamSource
from polynya.model.errors import OperationError
from polynya.store.clock import Clock
from polynya.store.source_store import SourceStore
from polynya.streaming.files.steps import FilesOfSource, files_position
from polynya.streaming.source import Again, Found, InOrder, Limits, Next, Position, Ready, Taken


class Files:
    """See `Source`. All files are one stream, named like the task."""

    kind: StreamSource = "files"

    def __init__(
        self, store: SourceStore, clock: Clock, task: StreamingLanding, source: FilesSource
    ) -> None:
        self._store, self._clock, self._task, self._source = store, clock, task, source

    def find(self) -> Found:
        """See `Source`."""
        return Found({self._task.into.table or self._task.name: (self._task.name,)})

    def is_asked_for(self, stream: str) -> bool:
        """See `Source`."""
        return stream == self._task.name

    def known(self, position: Position) -> frozenset[str]:
        """See `Source`."""
        del position
        return frozenset({self._task.name})

    def reread_from(self, began: Position) -> Position:
        """See `Source`."""
        return began

    def again(self, table: str, began: Position, until: Position) -> Again:
        """See `Source`. A position says of a file only that it was read, and not for good."""
        del began, until
        raise OperationError(
            "POLYNYA-STR-071",
            f"files cannot be read again as they were landed in {shown(table)}",
            why="a position tells of the files of late only which were read: some that are there "
            "now may have come, changed or gone unseen",
            where=f"task {self._task.name}",
            state="nothing was changed",
            fix="reload from what has landed; `folder_retention` says how long that is kept",
        )

    def order_of(self, streams: tuple[str, ...]) -> InOrder:
        """See `Source`. Files are read in the order of their dates; one that came late was not."""
        del streams
        return lambda *_: True

    def stream(self, table: str) -> FilesStream:
        """See `Source`."""
        steps = FilesOfSource(
            self._store, self._source, self._task.content, self._task.start_from, self._clock
        )
        return FilesStream(steps, f"task {self._task.name}, landed table {table}")


class FilesStream:
    """See `Stream`.

    Only reading tells what can be read, so `next` reads, and keeps it for `read`.
    """

    def __init__(self, steps: FilesOfSource, where: str) -> None:
        self._steps, self._where = steps, where
        self._ready: Ready | None = None
        self._over_at: Position | None = None

    def next(
        self, streams: tuple[str, ...], position: Position | None, limits: Limits, *, once: bool
    ) -> Next:
        """See `Stream`. With `once` it ends with the look that found no more files."""
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
        taken = Taken(step.rows, step.end.to_json(), step.size_bytes, step.left)
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

    def read(self, wanted: Next, limits: Limits) -> Taken:
        """See `Stream`: what was read already."""
        del limits
        self._ready = None
        found: Taken = wanted.reads
        return found

    def _nothing(self, position: Position | None) -> Next:
        return Next({} if position is None else position, 0, moves=False, behind=0)
