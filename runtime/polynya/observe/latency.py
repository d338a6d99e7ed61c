"""The latency of datasets over time: at the source, landed, in the copy, until the apply.

A copy tells how old its newest event is by the source's clock, how long its oldest file had been
known, and how long reading and committing took. So of one change

    source  = age of the newest event - landing - copy, where the source tells a time;
    landing = time between the first sight of its file and the begin of the copy;
    copy    = time from the first byte to the commit, after which live views show it;
    apply   = time from the first copy that was not applied to the apply, after which stored rows
              show it.

All are kept as the worst of each bucket of five minutes: a percentile over them is one of the worst
moments, which is what people notice. Everything here is a function of its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

from polynya.observe.engine import BatchCopied, DatasetApplied
from polynya.observe.events import Event

#: Width of a bucket.
BUCKET: Final = timedelta(minutes=5)

LatencyPart: TypeAlias = Literal["source", "landing", "copy", "apply", "total"]
PARTS: Final[tuple[LatencyPart, ...]] = ("source", "landing", "copy", "apply", "total")


@dataclass(frozen=True, slots=True)
class LatencySample:
    """The worst latencies of a dataset in one bucket, in seconds; None where nothing is known.

    `at` is the begin of the bucket. `total` is what it took until live views showed a change: the
    age of the newest event, else landing and copy. `batches` and `rows` were copied in it.
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


@dataclass(frozen=True, slots=True)
class LatencyStep:
    """Percentiles of one step of time, in seconds: by part, by percentile; without unknown parts.

    `samples` is the number of buckets that they are of.
    """

    at: datetime
    dataset: str
    samples: int
    rows: int
    percentiles: Mapping[LatencyPart, Mapping[int, float]]


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
            {
                part: {percent: nearest_rank(values, percent) for percent in percentiles}
                for part in PARTS
                if (values := sorted(v for one in found if (v := getattr(one, part)) is not None))
            },
        )
        for (dataset, at), found in sorted(steps.items())
    ]


def nearest_rank(values: Sequence[float], percent: int) -> float:
    """The percentile of values in order, which are not empty."""
    return values[max(0, math.ceil(len(values) * percent / 100) - 1)]
