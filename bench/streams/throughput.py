"""Records a second from a topic to a table, by both in turns; both must have every record."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bench.streams import ours, peer
from bench.streams.ours import TABLE, Seen
from bench.streams.records import PARTITIONS, fill, message
from bench.streams.session import Place
from polynya.lake.spark.catalog import CATALOG

#: What is to be reached: part of the peer's throughput, and records a second on two cores.
LEAST_RATIO: Final = 0.9
LEAST_RATE: Final = 50_000
#: A topic of one message, by which our table is made.
_ONE: Final = "one"
#: Records of the round before those that count.
_WARM_UP: Final = 200_000


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of one round and its processor seconds; those of landing and copying for us."""

    seconds: float
    processor: float
    landing: float = 0.0
    copying: float = 0.0


@dataclass(frozen=True, slots=True)
class Round:
    """The same records by both."""

    records: int
    ours: Took
    peer: Took

    def lines(self) -> Iterator[str]:
        """What is printed of it."""
        for who, took in (("Polynya", self.ours), ("Spark", self.peer)):
            parts = (
                f", of which landing {took.landing:.1f} s, copying {took.copying:.1f} s"
                if took.landing
                else ""
            )
            yield (
                f"{who:8} {self.records / took.seconds:9,.0f} records/s, {took.seconds:.1f} s, "
                f"{took.processor * 1e6 / self.records:.1f} µs of processor time a record{parts}"
            )


def measure(place: Place, count: int, rounds: int) -> list[Round]:
    """Fill the topics and take the rounds; each line is printed when it is known."""
    place.broker.create(_ONE)
    place.broker.send(_ONE, [message(-1).encode()])
    found = []
    for number, (topic, records) in enumerate(
        [("warm", min(count, _WARM_UP)), *[("events", count)] * rounds]
    ):
        if number < 2:
            place.broker.create(topic, PARTITIONS)
            fill(place.spark, place.broker.address, topic, records)
        one = _round(place, topic, records, number)
        print(f"### {'warm-up' if number == 0 else f'round {number}'}", *one.lines(), sep="\n")
        if number:
            found.append(one)
    return found


def result(rounds: list[Round]) -> str:
    """The lines of the table."""
    count = rounds[0].records
    mine, others = (
        [count / took.seconds for took in side]
        for side in ([one.ours for one in rounds], [one.peer for one in rounds])
    )
    ratio = statistics.median(mine) / statistics.median(others)
    head = "| records | Polynya | Spark | ratio | landing | copying | floor |  |"
    reached = ratio >= LEAST_RATIO and statistics.median(mine) >= LEAST_RATE
    cells = (
        f"{count:,}",
        _rates(mine),
        _rates(others),
        f"{ratio:.2f}",
        _rates([count / one.ours.landing for one in rounds]),
        _rates([count / one.ours.copying for one in rounds]),
        f"≥ {LEAST_RATIO}, ≥ {LEAST_RATE:,}/s",
        "reached" if reached else "**not reached**",
    )
    return "\n".join((head, "|---" * 8 + "|", f"| {' | '.join(cells)} |"))


def _round(place: Place, topic: str, count: int, number: int) -> Round:
    schemas = (f"ours_{number}", f"{CATALOG}.peer_{number}.{TABLE}")
    sides = [lambda: _ours(place, topic, schemas[0]), lambda: _peer(place, topic, schemas[1])]
    # Each goes first as often as the other.
    order = (0, 1) if number % 2 else (1, 0)
    took = {which: sides[which]() for which in order}
    for name in (f"{schemas[0]}.{TABLE}", schemas[1]):
        _check(place, name, count)
    shutil.rmtree(place.folder / "landing")
    return Round(count, took[0], took[1])


def _ours(place: Place, topic: str, schema: str) -> Took:
    storage = ours.storage("facts", schema, "clicks")

    def run(seen: Seen, *topics: str) -> float:
        engine = ours.context(place.spark, place.folder / "landing", seen)
        return ours.run(engine, [ours.landing("clicks", place.broker.address, *topics), storage])

    # The table of the peer exists before its round, too.
    run(Seen(), _ONE)
    before, seen = place.processor_seconds(), Seen()
    seconds = run(seen, _ONE, topic)
    spent = place.processor_seconds() - before
    return Took(seconds, spent, seen.land_seconds, seen.copy_seconds)


def _peer(place: Place, topic: str, table: str) -> Took:
    peer.create(place.spark, table)
    before, began = place.processor_seconds(), time.perf_counter()
    peer.append(place.spark, place.broker.address, topic, table)
    return Took(time.perf_counter() - began, place.processor_seconds() - before)


def _check(place: Place, table: str, count: int) -> None:
    """Every record is there once: none is lost, none doubled."""
    row = place.spark.sql(
        "SELECT count(*), count(DISTINCT id), min(id), max(id), count(device.os) "
        f"FROM {table} WHERE id >= 0"
    ).collect()[0]
    if tuple(row) != (count, count, 0, count - 1, count):
        raise SystemExit(f"{table}: {tuple(row)} instead of {count:,} records")


def _rates(values: list[float]) -> str:
    text = f"{statistics.median(values):,.0f}/s"
    return f"{text} ({min(values):,.0f} to {max(values):,.0f})" if len(values) > 1 else text
