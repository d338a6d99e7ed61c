"""Messages at a steady rate in a continuous run: their age when the live view shows them.

And whether the memory of the run stays level.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from bench.peers.tree import resident
from bench.streams import ours
from bench.streams.levels import Point, trend
from bench.streams.ours import Seen
from bench.streams.producing import steady
from bench.streams.records import PARTITIONS, message, mixed
from bench.streams.session import Place
from polynya.engine.answers import answer_embedded
from polynya.engine.runner import run_until_stopped, units
from polynya.model.config.task import StorageTask
from polynya.model.config.task_kinds import Task
from polynya.model.loader import LoadedProject
from polynya.observe.engine import BatchCopied, UnitFailed
from polynya.observe.events import Event

#: Messages of the first seconds do not count: the JVM has to learn its work...
WARM_UP: Final = 30.0
#: ...nor do those that came before the view had caught up once, to within this many seconds.
_CAUGHT_UP: Final = 5.0
#: Seconds after which a run that does not catch up has failed.
_GIVE_UP: Final = 180.0
_SCHEMA: Final = "live"
#: Seconds between two looks at the memory.
_EVERY: Final = 5.0
#: No message becomes visible this many milliseconds after a younger one.
_LATE_MS: Final = 60_000
_MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Workload:
    """What a run sends.

    Attributes:
        topics: each of them becomes a table.
        message: gives the text of a message by its number.
        partitions: of each topic.
        most_seconds: the highest p95 of the age that passes.
    """

    topics: tuple[str, ...]
    message: Callable[[int], str]
    partitions: int
    most_seconds: float


#: Messages of one kind in one topic.
PLAIN: Final = Workload(("clicks",), message, PARTITIONS, 2.5)
#: Four topics, some of whose messages are large or broken.
MIXED: Final = Workload(tuple(f"clicks_{number}" for number in range(4)), mixed, 1, 8.0)


@dataclass
class Watching(Seen):
    """What a run said; `copied_one` is set when a view has more than before."""

    copied_one: threading.Event = field(default_factory=threading.Event)
    tables: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)

    def note(self, event: Event) -> None:
        """See `Seen`; nothing is kept of each step, since there are thousands."""
        if isinstance(event, BatchCopied):
            self.tables.add(event.subject.rpartition(".")[2])
            self.copied_one.set()
        elif isinstance(event, UnitFailed):
            self.failures.append(event.text())


class View:
    """Asks a live view which messages it shows, and how old they are when it does.

    It asks the embedded engine, as `polynya query` does: a reader on Spark takes what the run needs
    of two cores.
    """

    def __init__(self, project: LoadedProject, table: str) -> None:
        self._project, self._table = project, table
        self._shown: Counter[int] = Counter()
        self.ages: Counter[int] = Counter()

    @property
    def behind(self) -> float:
        """Seconds since the newest message that it has shown."""
        return time.time() - max(self._shown, default=0) / 1000

    def look(self) -> None:
        """Take note of messages that it did not show before."""
        since = max(max(self._shown, default=0) - _LATE_MS, 0)
        begin = datetime.fromtimestamp(since / 1000, UTC).replace(tzinfo=None)
        _, batches = answer_embedded(
            self._project,
            "SELECT hdr__from_timestamp AS at, count(*) AS messages "
            f"FROM {_SCHEMA}.{self._table}__whdr "
            f"WHERE hdr__from_timestamp >= TIMESTAMP '{begin}Z' GROUP BY hdr__from_timestamp",
        )
        now = time.time_ns() // 1_000_000
        found = {
            round(row["at"].timestamp() * 1000): row["messages"]
            for batch in batches
            for row in batch.to_pylist()
        }
        for at, messages in found.items():
            self.ages[now - at] += messages - self._shown[at]
        self._shown = Counter(found)


def quantile(ages: Counter[int], part: float) -> float:
    """The age in seconds that this part of the messages did not reach, of milliseconds."""
    wanted, so_far = part * ages.total(), 0
    for age, count in sorted(ages.items()):
        so_far += count
        if so_far >= wanted:
            return age / 1000
    return float("nan")


@dataclass(frozen=True, slots=True)
class Measured:
    """Ages in seconds, messages that were shown, and memory in MiB over seconds."""

    workload: Workload
    rate: int
    seconds: float
    messages: int
    p50: float
    p95: float
    memory: tuple[Point, ...]

    def result(self, *, memory: bool) -> str:
        """The lines of the table; `memory`: with that of the processes."""
        most = self.workload.most_seconds
        reached = "reached" if self.p95 <= most else "**not reached**"
        head = "| messages/s | seconds | messages | p50 | p95 | floor |  |"
        cells = (
            f"| {self.rate:,} | {self.seconds:.0f} | {self.messages:,} | {self.p50:.2f} s "
            f"| {self.p95:.2f} s | p95 ≤ {most:g} s | {reached} |"
        )
        lines = [head, "|---" * 7 + "|", cells]
        if memory:
            found = trend(self.memory)
            level = "levels off" if found.level_off else "**grows**"
            lines.append(f"\nMemory in MiB: {found}: {level}")
        return "\n".join(lines)


def measure(place: Place, workload: Workload, rate: int, seconds: float, mode: str) -> Measured:
    """Send, land and copy for this many seconds after the warm-up, and watch the views.

    `rate`: messages a second of all topics together.
    """
    for topic in workload.topics:
        place.broker.create(topic, workload.partitions)
        # The view is there from the first copy on.
        place.broker.send(topic, [message(-1).encode()])
    watching = Watching()
    storage = _storage(workload, mode)
    project = replace(place.project, tasks=(storage,))
    views = {topic: View(project, topic) for topic in workload.topics}
    memory: list[Point] = []
    with ExitStack() as running:
        producers = [
            running.enter_context(_sent(place, workload, topic, rate)) for topic in workload.topics
        ]
        running.enter_context(_going_on(place, watching, workload, storage))
        _warm_up(watching, views)
        for view in views.values():
            view.ages.clear()
        began = time.monotonic()

        def sample() -> None:
            now = time.monotonic() - began
            if not memory or now >= memory[-1][0] + _EVERY:
                others = (place.broker.pid, *producers)
                own = resident(os.getpid()) - sum(resident(one) for one in others)
                memory.append((now, own / _MEBIBYTE))

        _watch(watching, views, seconds, sample)
        took = time.monotonic() - began
    if watching.failures:
        raise SystemExit(f"failed: {watching.failures[:3]}")
    ages = sum((view.ages for view in views.values()), Counter[int]())
    return Measured(
        workload, rate, took, ages.total(), quantile(ages, 0.5), quantile(ages, 0.95), tuple(memory)
    )


def _sent(place: Place, workload: Workload, topic: str, rate: int) -> AbstractContextManager[int]:
    share = rate / len(workload.topics)
    return steady(place.broker, topic, share, workload.message, place.folder / f"{topic}.log")


def _storage(workload: Workload, mode: str) -> StorageTask:
    keys = {"keys": ["id"]} if mode == "merge" else {}
    datasets = [{"name": topic, "mode": mode, **keys} for topic in workload.topics]
    return ours.storage(
        "facts", _SCHEMA, "in",
        datasets=datasets, batch={"freshness": "1s"}, views={"headers": True},
    )  # fmt: skip


@contextmanager
def _going_on(
    place: Place, watching: Watching, workload: Workload, storage: StorageTask
) -> Iterator[None]:
    engine = ours.context(place.spark, place.folder / "landing", watching)
    landing = ours.landing(
        "in", place.broker.address, *workload.topics, into={"each": "topic"}, interval="1s"
    )
    tasks: list[Task] = [landing, storage]
    work = threading.Thread(target=run_until_stopped, args=(engine, units(engine, tasks)))
    work.start()
    try:
        yield
    finally:
        engine.stop.set()
        work.join()


def _warm_up(watching: Watching, views: Mapping[str, View]) -> None:
    """Watch until the views have caught up with what was sent before they were there."""
    began = time.monotonic()
    _watch(watching, views, WARM_UP, lambda: None)
    while (behind := max(view.behind for view in views.values())) > _CAUGHT_UP:
        if time.monotonic() - began > _GIVE_UP:
            raise SystemExit(f"a view is {behind:.0f} s behind: {watching.failures[:3]}")
        _watch(watching, views, 1.0, lambda: None)


def _watch(
    watching: Watching,
    views: Mapping[str, View],
    seconds: float,
    sample: Callable[[], None],
) -> None:
    """Look at the view of each table whenever something was copied to it."""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        if watching.copied_one.wait(min(1.0, left)):
            watching.copied_one.clear()
            while watching.tables:
                views[watching.tables.pop()].look()
        sample()
