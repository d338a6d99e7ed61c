"""The backlog of tables, streams and captures, and the tables that read a folder of landed batches.

Every listing of the landing zone is reported to `Backlog`. A file that was unread in one listing
and is read in the next was copied in between, which gives the speed of copies. For a stream, each
landed batch gives the speed.

`LandedReaders` says which tables read a folder of landed batches, and how far. A landing asks it
before it removes batches or lands more. It reads the position from the tables themselves, so the
answer is right whichever process or node copies them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from polynya.engine.ledger import ledger_dataset
from polynya.formats.batch import FilePart
from polynya.formats.files import glob_pattern, relative_to
from polynya.formats.landed import batch_name, next_unread
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import internal_path
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.state import CopyState, Membership
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import named_datasets
from polynya.model.config.stream_landing import DirectTask, StreamingLanding
from polynya.model.config.task import StorageTask, resolved
from polynya.model.config.task_kinds import Task
from polynya.model.formats import rules_of
from polynya.observe.latency import DatasetBacklog

log = logging.getLogger(__name__)
#: Speed of a dataset that was not measured yet, in bytes per second.
ASSUMED_BYTES_PER_SECOND: Final = 1_000_000.0
#: Assumed size of a record before the first one of a stream has landed, in bytes.
_ASSUMED_RECORD_BYTES: Final = 1000.0
#: Weight of what was measured before, each time something is added to it.
_WEIGHT_OF_EARLIER: Final = 0.8
#: What a node has to do in any case while a service works for it, in seconds. More than a group may
#: have when its last node is ended, less than for two nodes, and far from what adds one.
REMOTE_WORK_SECONDS: Final = 90.0
#: The formats that read landed batches of streams.
_READ_STREAMS: Final = frozenset({"stream", "debezium"})
#: What a table has copied, None for one that does not exist yet.
StateOf: TypeAlias = Callable[[ResolvedDataset], CopyState | None]


@dataclass(frozen=True, slots=True)
class BacklogSize:
    """The size of a backlog.

    Attributes:
        files: unread files. A file counts whole until it is read whole. Records of a stream beyond
            its landed batches count as one file, and so does what a capture has not landed.
        size_bytes: their size.
        seconds: the work in them.
        oldest_seconds: how long the oldest file waits, since it was first seen; for a stream since
            it was landed to its end.
        elsewhere: a service does the work, and more nodes make it no faster.
        keeps_node: a run of that service is under way, or wanted.
    """

    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0
    oldest_seconds: float = 0.0
    elsewhere: bool = False
    keeps_node: bool = False

    @property
    def node_seconds(self) -> float:
        """Work of a node in seconds: all of it, or that of following a service."""
        if self.elsewhere:
            return REMOTE_WORK_SECONDS if self.keeps_node else 0.0
        return self.seconds


@dataclass(frozen=True, slots=True)
class StreamTotals:
    """Messages taken from a stream since the job began, and their bytes.

    `behind_seconds` is the age of the source's oldest message after them, 0 if there is none.
    """

    records: int = 0
    size_bytes: int = 0
    behind_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CaptureFigures:
    """How the capture of a database is.

    Attributes:
        events: landed since its job began, and `size_bytes` those of the landed batches.
        lag_bytes: of the database's log that has not landed, as it was last known.
        lag_seconds: the age of what has not landed; while the database does not answer, how long it
            has not is added.
        silent_seconds: since the newest batch landed; None: none has since the job began.
        retries: failures in a row, 0 as soon as it works.
        log_bytes: of the log that the server keeps for this capture; None: it keeps none for it.
        log_limit_bytes: with more of it the server gives the capture up; None: it has no limit.
        tables: number of tables by state, such as `running` and `error`.
        landed: place in the database's log up to which all has landed, as the process reports it;
            None: unknown.
        held: an operator has stopped it.
    """

    events: int = 0
    size_bytes: int = 0
    lag_bytes: int = 0
    lag_seconds: float = 0.0
    silent_seconds: float | None = None
    retries: int = 0
    log_bytes: int | None = None
    log_limit_bytes: int | None = None
    tables: Mapping[str, int] = field(default_factory=dict)
    landed: Mapping[str, Any] | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class MirrorFigures:
    """How far the target of a mirror is for one dataset.

    Attributes:
        behind_seconds: for how long the target has not shown the newest commit; 0: it shows it.
        stale: that is longer than the mirror's `stale_after`, or the last try failed.
        failures: failed tries in a row.
        code: of the last error; None where the last try worked.
        error: what the last error says.
    """

    behind_seconds: float = 0.0
    stale: bool = False
    failures: int = 0
    code: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """The position after which a stream had nothing left, and how many seconds ago that was."""

    position: Mapping[str, Any]
    seconds: float


class Backlog:
    """The backlog of one job. Written by the threads of the job, read by others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subjects: dict[str, _DatasetBacklog] = {}
        self._streams: dict[str, _StreamBacklog] = {}
        self._captures: dict[str, _CaptureBacklog] = {}
        self._mirrors: dict[str, tuple[float, float, Mapping[str, MirrorFigures]]] = {}
        self._positions: dict[str, tuple[Mapping[str, Any], float]] = {}
        self._pending: dict[str, int] = {}
        self._away: bool | None = None

    def elsewhere(self, *, wanted: bool) -> None:
        """A service does the work of this job; `wanted`: its run is under way, or needed."""
        self._away = wanted

    def listed(self, subject: str, parts: Iterable[FilePart], now: float) -> None:
        """Record the unread files of a dataset; `now` in monotonic seconds."""
        with self._lock:
            before = self._subjects.setdefault(subject, _DatasetBacklog())
            files = {
                part.path: (part.size, before.files.get(part.path, (0, now))[1]) for part in parts
            }
            if before.files:
                gone = sum(size for path, (size, _) in before.files.items() if path not in files)
                before.done_bytes = _WEIGHT_OF_EARLIER * before.done_bytes + gone
                before.busy_seconds = (
                    _WEIGHT_OF_EARLIER * before.busy_seconds + now - before.looked_at
                )
            before.files, before.looked_at = files, now

    def beyond(
        self, subject: str, records: int, now: float, behind_seconds: float | None = None
    ) -> None:
        """Record how many records a stream has beyond a landed table.

        `behind_seconds` is their age, None where it was not requested.
        """
        with self._lock:
            stream = self._streams.setdefault(subject, _StreamBacklog())
            if records and not stream.records:
                stream.since, stream.unread_since = now, None
            stream.records = records
            if behind_seconds is not None:
                stream.unread_since = now - behind_seconds

    def landed(self, subject: str, records: int, size_bytes: int, seconds: float) -> None:
        """Learn the size of records and the speed from a landed batch."""
        with self._lock:
            stream = self._streams.setdefault(subject, _StreamBacklog())
            stream.done_records = _WEIGHT_OF_EARLIER * stream.done_records + records
            stream.done_bytes = _WEIGHT_OF_EARLIER * stream.done_bytes + size_bytes
            stream.busy_seconds = _WEIGHT_OF_EARLIER * stream.busy_seconds + seconds
            taken = stream.taken
            stream.taken = StreamTotals(taken.records + records, taken.size_bytes + size_bytes)

    def streams(self, now: float) -> dict[str, StreamTotals]:
        """The totals of each stream, with the age of what it has beyond them."""
        with self._lock:
            return {
                name: replace(stream.taken, behind_seconds=stream.behind_seconds(now))
                for name, stream in self._streams.items()
            }

    def read_to(self, subject: str, position: Mapping[str, Any], now: float) -> None:
        """Record that a stream had nothing beyond a position, at a moment at or after `now`."""
        with self._lock:
            self._positions[subject] = position, now

    def positions(self, now: float) -> list[ReadPosition]:
        """The position of each stream after which nothing was left."""
        with self._lock:
            return [ReadPosition(position, now - at) for position, at in self._positions.values()]

    def captured(self, subject: str, figures: CaptureFigures, now: float) -> None:
        """Record how a capture is."""
        with self._lock:
            self._captures[subject] = _CaptureBacklog(figures, now)

    def captures(self, now: float) -> dict[str, CaptureFigures]:
        """How each capture is; the lag of one that takes no steps grows."""
        with self._lock:
            return {name: capture.figures_at(now) for name, capture in self._captures.items()}

    def mirrored(
        self, task: str, figures: Mapping[str, MirrorFigures], stale_after: float, now: float
    ) -> None:
        """Record how far a mirror is, by dataset; `stale_after` is its own limit in seconds."""
        with self._lock:
            self._mirrors[task] = now, stale_after, dict(figures)

    def mirrors(self, now: float) -> dict[str, MirrorFigures]:
        """How far each mirrored dataset is; one that takes no steps is ever further behind."""
        with self._lock:
            return {
                name: _mirror_at(one, now - at, limit)
                for at, limit, figures in self._mirrors.values()
                for name, one in figures.items()
            }

    def pending(self, subject: str, rows: int) -> None:
        """Record how many rows of a dataset wait for its apply."""
        with self._lock:
            self._pending[subject] = rows

    def datasets(self, now: float) -> dict[str, DatasetBacklog]:
        """What waits of each dataset, by its name as events have it."""
        with self._lock:
            found = {
                name: DatasetBacklog(
                    sum(size for size, _ in one.files.values()),
                    max(now - min((at for _, at in one.files.values()), default=now), 0.0),
                )
                for name, one in self._subjects.items()
            }
            for name, stream in self._streams.items():
                # A table that reads its stream itself lists no files.
                size = stream.size(now)
                found.setdefault(name, DatasetBacklog(size.size_bytes, stream.behind_seconds(now)))
            for name, rows in self._pending.items():
                found[name] = replace(found.get(name, DatasetBacklog()), pending_rows=rows)
            return found

    def ages(self, now: float) -> dict[str, float]:
        """For how many seconds the oldest change of each dataset, stream, capture or mirror waits.

        By their names as events have them.
        """
        with self._lock:
            waiting = {
                name: max(now - min((at for _, at in one.files.values()), default=now), 0.0)
                for name, one in self._subjects.items()
            }
            waiting |= {name: one.behind_seconds(now) for name, one in self._streams.items()}
        waiting |= {name: one.lag_seconds for name, one in self.captures(now).items()}
        return waiting | {name: one.behind_seconds for name, one in self.mirrors(now).items()}

    def resume(self, now: float) -> None:
        """The job continues; the time since its last listing was not spent on its work."""
        with self._lock:
            for subject in self._subjects.values():
                subject.looked_at = now

    def waited(self, subject: str, now: float) -> float | None:
        """How long the oldest file of a dataset has been known, as it was listed last."""
        with self._lock:
            dataset = self._subjects.get(subject)
            known = [] if dataset is None else [at for _, at in dataset.files.values()]
            return max(now - min(known), 0.0) if known else None

    def seconds_left(self, subject: str) -> float | None:
        """Seconds until a dataset is read, None before its speed was measured."""
        with self._lock:
            dataset = self._subjects.get(subject)
            if dataset is None or dataset.done_bytes <= 0 or dataset.busy_seconds <= 0:
                return None
            return sum(size for size, _ in dataset.files.values()) / dataset.rate()

    def size(self, now: float) -> BacklogSize:
        """The backlog of all datasets and streams together."""
        with self._lock:
            datasets = [
                (subject.files.values(), subject.rate()) for subject in self._subjects.values()
            ]
            streams = [stream.size(now) for stream in self._streams.values()]
            streams += [capture.size(now) for capture in self._captures.values()]
        sizes = [sum(size for size, _ in files) for files, _ in datasets]
        since = [moment for files, _ in datasets for _, moment in files]
        ages = [max(now - min(since), 0.0)] if since else []
        return BacklogSize(
            files=len(since) + sum(stream.files for stream in streams),
            size_bytes=sum(sizes) + sum(stream.size_bytes for stream in streams),
            seconds=sum(size / rate for size, (_, rate) in zip(sizes, datasets, strict=True))
            + sum(stream.seconds for stream in streams),
            oldest_seconds=max(
                [*ages, *(stream.oldest_seconds for stream in streams)], default=0.0
            ),
            elsewhere=self._away is not None,
            keeps_node=self._away is True,
        )


@dataclass(slots=True)
class _DatasetBacklog:
    """One dataset: its unread files with their size and since when, and what was measured."""

    files: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    looked_at: float = 0.0
    done_bytes: float = 0.0
    busy_seconds: float = 0.0

    def rate(self) -> float:
        if self.done_bytes <= 0 or self.busy_seconds <= 0:
            return ASSUMED_BYTES_PER_SECOND
        return self.done_bytes / self.busy_seconds


@dataclass(slots=True)
class _StreamBacklog:
    """One landed table: records beyond it and since when there are any, and what was measured.

    `unread_since` is when the oldest of these came, if the source reports it.
    """

    records: int = 0
    since: float = 0.0
    unread_since: float | None = None
    done_records: float = 0.0
    done_bytes: float = 0.0
    busy_seconds: float = 0.0
    taken: StreamTotals = field(default_factory=StreamTotals)

    def behind_seconds(self, now: float) -> float:
        if not self.records:
            return 0.0
        since = self.since if self.unread_since is None else self.unread_since
        return max(now - since, 0.0)

    def size(self, now: float) -> BacklogSize:
        if not self.records:
            return BacklogSize()
        is_known = self.done_records > 0 and self.done_bytes > 0
        record = self.done_bytes / self.done_records if is_known else _ASSUMED_RECORD_BYTES
        measured = self.done_bytes > 0 and self.busy_seconds > 0
        rate = self.done_bytes / self.busy_seconds if measured else ASSUMED_BYTES_PER_SECOND
        size = self.records * record
        return BacklogSize(1, int(size), size / rate, max(now - self.since, 0.0))


def _mirror_at(figures: MirrorFigures, since: float, stale_after: float) -> MirrorFigures:
    """The figures of a step so many seconds later. Without steps, new commits are not seen."""
    if not figures.behind_seconds and since < _STEPLESS_SECONDS:
        return figures
    behind = figures.behind_seconds + max(since, 0.0)
    return replace(figures, behind_seconds=behind, stale=figures.stale or behind > stale_after)


#: A capture takes several steps a second, a mirror one in a quarter of a minute; without one for so
#: long it does not work.
_STEPLESS_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class _CaptureBacklog:
    """A capture as it was at a step."""

    figures: CaptureFigures
    at: float

    def figures_at(self, now: float) -> CaptureFigures:
        since = now - self.at
        if since < _STEPLESS_SECONDS:
            return self.figures
        return replace(self.figures, lag_seconds=self.figures.lag_seconds + since)

    def size(self, now: float) -> BacklogSize:
        figures = self.figures_at(now)
        if not figures.lag_bytes and not figures.lag_seconds:
            return BacklogSize()
        # One process captures a database: more nodes make it no faster, and it needs one.
        work = min(figures.lag_bytes / ASSUMED_BYTES_PER_SECOND, REMOTE_WORK_SECONDS)
        return BacklogSize(1, figures.lag_bytes, work, figures.lag_seconds)


@dataclass(frozen=True, slots=True)
class LandedReader:
    """A table, `schema.view`, and the number of the first landed batch that it has not copied."""

    name: str
    next_unread: int


def first_unread_of(readers: Sequence[LandedReader] | None) -> int | None:
    """The first landed batch that some table has not copied; None: there is none to wait for.

    Where the readers are unknown, nothing counts as copied.
    """
    if readers is None:
        return 1
    return min((reader.next_unread for reader in readers), default=None)


def tables_without(readers: Sequence[LandedReader] | None, number: int) -> tuple[str, ...]:
    """The tables that have not copied a landed batch; none where they are unknown."""
    return tuple(reader.name for reader in readers or () if reader.next_unread <= number)


class LandedReaders:
    """Finds the readers of a folder. They are unknown before `know` has set the tasks."""

    def __init__(self, state_of: StateOf | None = None) -> None:
        self._state_of = state_of
        self._tasks: tuple[StorageTask, ...] | None = None
        self._landings: tuple[StreamingLanding, ...] = ()

    def know(self, tasks: Sequence[Task] | None) -> None:
        """Set all tasks of the project; None: not all of them are known."""
        storage = (
            None if tasks is None else (task for task in tasks if isinstance(task, StorageTask))
        )
        self._tasks = None if storage is None else tuple(storage)
        self._landings = tuple(task for task in tasks or () if isinstance(task, StreamingLanding))

    def landing_of(self, folder: str) -> StreamingLanding | None:
        """The landing that writes a folder; None: it is not in this project, or unknown.

        One with `direct: true` lands nothing.
        """
        parent = folder.rpartition("/")[0]
        return next(
            (
                landing
                for landing in self._landings
                if landing.place == parent and not landing.direct
            ),
            None,
        )

    def of(self, folder: str) -> tuple[LandedReader, ...] | None:
        """The tables that read a folder; None where they are unknown now."""
        tasks, state_of = self._tasks, self._state_of
        if tasks is None or state_of is None:
            return None
        try:
            return tuple(reader for task in tasks for reader in _readers(task, folder, state_of))
        except Exception as error:  # noqa: BLE001 - any failure leaves the readers unknown
            log.debug("the readers of %s are unknown: %s", folder, error)
            return None


def _readers(task: StorageTask, folder: str, state_of: StateOf) -> Iterator[LandedReader]:
    if task.landing.format not in _READ_STREAMS or isinstance(task, DirectTask):
        return
    if rules_of(task.landing.format).finds_tables:
        yield from _of_shared(task, folder, state_of)
        return
    for dataset in (resolved(task, dataset) for dataset in task.datasets):
        if _is_read(folder, dataset.landing.folder, dataset.landing.glob):
            yield _reader(dataset.relations.current, state_of(dataset), folder)


def _of_shared(task: StorageTask, folder: str, state_of: StateOf) -> Iterator[LandedReader]:
    """The position of the whole task, and of each table that reading continued without.

    A refused one gets a table later, which begins with the first batch that is left.
    """
    path = task.landing.path
    if folder != path and not folder.startswith(f"{path}/"):
        return
    ledger = state_of(ledger_dataset(task))
    yield _reader(f"the tables of {task.name}", ledger, folder)
    membership = Membership() if ledger is None else ledger.membership
    yield from (LandedReader(source, 1) for source in membership.refused)
    for dataset in named_datasets(task, membership.members).values():
        state = state_of(dataset)
        if state is not None and state.position.behind:
            yield _reader(dataset.relations.current, state, folder)


def _is_read(folder: str, root: str, glob: str) -> bool:
    return bool(glob_pattern(glob).fullmatch(relative_to(root, f"{folder}/{batch_name(1)}")))


def _reader(name: str, state: CopyState | None, folder: str) -> LandedReader:
    files = {} if state is None else state.position.files
    return LandedReader(name, next_unread(files, folder))


def copy_state_reader(spark: SparkSession) -> StateOf:
    """Reads the states of tables in the catalog of a session, without taking them over."""

    def state_of(dataset: ResolvedDataset) -> CopyState | None:
        if not spark.catalog.tableExists(internal_path(spark, dataset)):
            return None
        return DatasetTable.existing(spark, dataset).state.copy

    return state_of
