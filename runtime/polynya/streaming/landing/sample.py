"""The next landed batch of a table, made and not put."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from polynya.formats.landed.batch import Lost, write_batch
from polynya.streaming.landing.log import LandedLog
from polynya.streaming.landing.step import Lander


@dataclass(frozen=True, slots=True)
class Sample:
    """A batch that was not put: its object and the path that it would have.

    `messages` were read, and the source has `behind` more, at most; `lost` is what it has no more.
    """

    path: str
    data: bytes
    messages: int
    behind: int
    lost: tuple[Lost, ...]


def sample(lander: Lander, log: LandedLog, streams: tuple[str, ...], now: datetime) -> Sample:
    """Read what is next of a table. Raises as `Lander.decide` and `Lander.land` do."""
    footer, taken = lander.read(lander.decide(streams, once=True), now)
    data = write_batch(footer, taken.rows)
    return Sample(log.path(footer.number), data, taken.rows.num_rows, taken.behind, footer.lost)
