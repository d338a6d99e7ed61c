"""The latency of datasets over time: at the source, landed, in the copy, until the apply.

A copy tells how old its newest event is by the source's clock, how long its oldest file had been
known, and how long reading and committing took. So of one change

    source  = age of the newest event - landing - copy, where the source tells a time;
    landing = time between the first sight of its file and the begin of the copy;
    copy    = time from the first byte to the commit, after which live views show it;
    apply   = time from the first copy that was not applied to the apply, after which stored rows
              show it.

Beside them stands the backlog: what has landed and is not copied, in bytes and as the age of its
oldest file, and the rows that are copied and not applied. Looks at it are independent of copies, so
a dataset that copies nothing has one, too.

All are kept as the worst of each bucket of five minutes: a percentile over them is one of the worst
moments, which is what people notice. Everything here is a function of its arguments.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias, TypeVar

from polynya.observe.engine import BatchCopied, DatasetApplied
from polynya.observe.events import Event

#: Width of a bucket.
BUCKET: Final = timedelta(minutes=5)

#: What waits, and is kept as the most of each bucket.
BacklogPart: TypeAlias = Literal["waiting_bytes", "waiting_seconds", "pending_rows"]
BACKLOG: Final[tuple[BacklogPart, ...]] = ("waiting_bytes", "waiting_seconds", "pending_rows")

LatencyPart: TypeAlias = Literal["source", "landing", "copy", "apply", "total"]
PARTS: Final[tuple[LatencyPart, ...]] = ("source", "landing", "copy", "apply", "total")


@dataclass(frozen=True, slots=True)
class LatencySample:
    """The worst latencies of a dataset in one bucket, in seconds; None where nothing is known.

    `at` is the begin of the bucket. `total` is what it took until live views showed a change: the
    age of the newest event, else landing and copy. `batches` and `rows` were copied in it.
    `waiting_bytes` and `waiting_seconds` are the most that waited for a copy, and its age;
    `pending_rows` the most rows that waited for an apply.
    """

    at: datetime
    task: str
    dataset: str
    batches: int = 0
    rows: int = 0
    source: float | None = None
    landing: float | None = None
    copy: float | None = None
    apply: float | None = None
    total: float | None = None
    waiting_bytes: int | None = None
    waiting_seconds: float | None = None
    pending_rows: int | None = None


@dataclass(frozen=True, slots=True)
class DatasetBacklog:
    """What waits of a dataset: bytes that have landed, for how long, and rows for their apply."""

    size_bytes: int = 0
    seconds: float = 0.0
    pending_rows: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not (self.size_bytes or self.seconds or self.pending_rows)


def bucket_of(at: datetime) -> datetime:
    """The begin of the bucket of a moment."""
    seconds = int(at.timestamp()) // int(BUCKET.total_seconds()) * int(BUCKET.total_seconds())
    return datetime.fromtimestamp(seconds, UTC)


@dataclass(frozen=True, slots=True)
class LatencyMeter:
    """What was measured and not taken yet, by bucket and dataset; and since when changes wait."""

    samples: Mapping[tuple[datetime, str], LatencySample] = field(default_factory=dict)
    unapplied_since: Mapping[str, datetime] = field(default_factory=dict)

    def after(self, event: Event, at: datetime, task: str) -> LatencyMeter:
        """The meter after an event; the same object if it tells no latency."""
        if isinstance(event, BatchCopied) and event.rows_in:
            return self._copied(event, at, task)
        if isinstance(event, DatasetApplied):
            since = self.unapplied_since.get(event.subject)
            if since is None:
                return self
            waits = {n: t for n, t in self.unapplied_since.items() if n != event.subject}
            one = self._sample(event.subject, at, task)
            waited = max(0.0, (at - since).total_seconds())
            return self._with(replace(one, apply=_worst(one.apply, waited)), waits)
        return self

    def with_backlog(
        self, backlogs: Mapping[str, DatasetBacklog], at: datetime, task_of: Callable[[str], str]
    ) -> LatencyMeter:
        """The meter after a look at the backlog of datasets, by name.

        An empty one makes no sample of its own, so idle datasets have none.
        """
        found = self
        for name, backlog in backlogs.items():
            one = found._sample(name, at, task_of(name))
            if backlog.is_empty and (one.at, name) not in found.samples:
                continue
            seen = replace(
                one,
                waiting_bytes=max(one.waiting_bytes or 0, backlog.size_bytes),
                waiting_seconds=_worst(one.waiting_seconds, round(backlog.seconds, 3)),
                pending_rows=max(one.pending_rows or 0, backlog.pending_rows),
            )
            found = found._with(seen, found.unapplied_since)
        return found

    def _copied(self, event: BatchCopied, at: datetime, task: str) -> LatencyMeter:
        one = self._sample(event.subject, at, task)
        landing = None
        if event.waited_seconds is not None:
            landing = max(0.0, event.waited_seconds - event.seconds)
        here = event.seconds + (landing or 0.0)
        source = total = None
        if event.event_age_seconds is not None:
            total = max(event.event_age_seconds, 0.0)
            source = max(0.0, total - here)
        elif landing is not None:
            total = here
        measured = replace(
            one,
            batches=one.batches + 1,
            rows=one.rows + event.rows_in,
            source=_worst(one.source, source),
            landing=_worst(one.landing, landing),
            copy=_worst(one.copy, event.seconds),
            total=_worst(one.total, total),
        )
        waits = {event.subject: at, **self.unapplied_since}
        return self._with(measured, waits)

    def _sample(self, dataset: str, at: datetime, task: str) -> LatencySample:
        bucket = bucket_of(at)
        return self.samples.get((bucket, dataset), LatencySample(bucket, task, dataset))

    def _with(self, sample: LatencySample, waits: Mapping[str, datetime]) -> LatencyMeter:
        samples = {**self.samples, (sample.at, sample.dataset): sample}
        return LatencyMeter(samples, waits)

    def taken(self, before: datetime) -> tuple[list[LatencySample], LatencyMeter]:
        """The samples of buckets that had ended before a moment, and the meter without them."""
        done = {key: one for key, one in self.samples.items() if one.at + BUCKET <= before}
        left = {key: one for key, one in self.samples.items() if key not in done}
        return [done[key] for key in sorted(done)], replace(self, samples=left)


def _worst(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return max(known, default=None)


def samples_of_task(samples: Iterable[LatencySample], task: str) -> list[LatencySample]:
    """One sample for each bucket of a task: the worst latencies, and what waits of all datasets.

    Two nodes that had a dataset in one bucket saw the same backlog, so the larger one counts.
    """
    by_dataset: dict[tuple[datetime, str], LatencySample] = {}
    for one in samples:
        key = one.at, one.dataset
        by_dataset[key] = _joined(by_dataset[key], one, max) if key in by_dataset else one
    by_bucket: dict[datetime, LatencySample] = {}
    for one in by_dataset.values():
        named = replace(one, task=task, dataset=task)
        known = by_bucket.get(one.at)
        by_bucket[one.at] = named if known is None else _joined(known, named, operator.add)
    return [by_bucket[at] for at in sorted(by_bucket)]


def _joined(
    one: LatencySample, other: LatencySample, amounts: Callable[[int, int], int]
) -> LatencySample:
    def amount(mine: int | None, its: int | None) -> int | None:
        return mine if its is None else its if mine is None else amounts(mine, its)

    return replace(
        one,
        batches=one.batches + other.batches,
        rows=one.rows + other.rows,
        waiting_bytes=amount(one.waiting_bytes, other.waiting_bytes),
        pending_rows=amount(one.pending_rows, other.pending_rows),
        source=_worst(one.source, other.source),
        landing=_worst(one.landing, other.landing),
        copy=_worst(one.copy, other.copy),
        apply=_worst(one.apply, other.apply),
        total=_worst(one.total, other.total),
        waiting_seconds=_worst(one.waiting_seconds, other.waiting_seconds),
    )


@dataclass(frozen=True, slots=True)
class LatencyStep:
    """Percentiles of one step of time, in seconds: by part, by percentile; without unknown parts.

    `samples` is the number of buckets that they are of. `backlog` has the same of what waited.
    """

    at: datetime
    dataset: str
    samples: int
    rows: int
    percentiles: Mapping[LatencyPart, Mapping[int, float]]
    backlog: Mapping[BacklogPart, Mapping[int, float]] = field(default_factory=dict)


def latency_series(
    samples: Iterable[LatencySample],
    *,
    now: datetime,
    window: timedelta,
    step: timedelta,
    percentiles: Sequence[int] = (50, 95, 99),
) -> list[LatencyStep]:
    """Percentiles of each dataset in each step of a window that ends now, by dataset and time.

    Steps without a sample are left out. A percentile is the nearest-rank one: the smallest value
    that at least so many percent of the values do not exceed.

    Args:
        samples: of any datasets and times; several of one bucket and dataset count each.
        now: end of the window.
        window: its length.
        step: length of a step, at least a bucket.
        percentiles: 1 to 100.

    Raises:
        ValueError: the step is shorter than a bucket, the window than a step, or a percentile is
            not 1 to 100.
    """
    if step < BUCKET or window < step:
        raise ValueError("a step is at least five minutes, and a window at least a step")
    if not all(1 <= one <= 100 for one in percentiles):
        raise ValueError("a percentile is 1 to 100")
    begin = now - window
    steps: dict[tuple[str, datetime], list[LatencySample]] = {}
    for one in samples:
        if begin <= one.at <= now:
            place = begin + (one.at - begin) // step * step
            steps.setdefault((one.dataset, place), []).append(one)
    return [
        LatencyStep(
            at,
            dataset,
            len(found),
            sum(one.rows for one in found),
            _ranked(found, PARTS, percentiles),
            _ranked(found, BACKLOG, percentiles),
        )
        for (dataset, at), found in sorted(steps.items())
    ]


Part = TypeVar("Part", LatencyPart, BacklogPart)


def _ranked(
    samples: Sequence[LatencySample], parts: Sequence[Part], percentiles: Sequence[int]
) -> dict[Part, dict[int, float]]:
    return {
        part: {percent: nearest_rank(values, percent) for percent in percentiles}
        for part in parts
        if (values := sorted(v for one in samples if (v := getattr(one, part)) is not None))
    }


def nearest_rank(values: Sequence[float], percent: int) -> float:
    """The percentile of values in order, which are not empty."""
    return values[max(0, math.ceil(len(values) * percent / 100) - 1)]
