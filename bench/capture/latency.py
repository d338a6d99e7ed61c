"""How old changes are when the live view shows them, with `polynya run` for both tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from bench.capture.figures import Figure, quantile
from bench.capture.place import GaveUpError, Source
from polynya.engine.answers import answer_embedded
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject, load_project
from polynya.query.translate import NotEmbeddedError

MOST_SECONDS: Final = 5.0
#: Changes a second that the live view is to keep up with, and how far it may be behind in the end.
LEAST, BEHIND_SECONDS = 5_000, 10.0
_A_SECOND: Final = 20
#: The JVMs have to learn their work.
_WARM_UP: Final = 30.0
_CAUGHT_UP: Final = 5.0
_ROWS: Final = 10_000


@dataclass
class Writer:
    """Commits transactions at a steady rate: half updates, half new rows. One after the other."""

    source: Source
    rate: int
    committed: dict[int, float] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    late: float = 0.0

    def work(self) -> None:
        """Until it is stopped."""
        half = self.rate // _A_SECOND // 2
        session = self.source.server.connect(database=self.source.name)
        began, number = time.monotonic(), 0
        while not self.stop.is_set():
            number += 1
            session.run("BEGIN")
            session.run(
                f"INSERT INTO ticks SELECT {_ROWS} + {number * half} + g, {number}, 'new ' || g,"
                f" g / 7.0, now() FROM generate_series(1, {half}) g"
            )
            first = number * half % (_ROWS - half)
            session.run(
                f"UPDATE ticks SET n = {number}, name = 'changed' || id"
                f" WHERE id > {first} AND id <= {first + half}"
            )
            session.run("COMMIT")
            self.committed[number] = time.monotonic()
            due = began + number / _A_SECOND
            self.late = max(self.late, time.monotonic() - due)
            self.stop.wait(max(0.0, due - time.monotonic()))
        session.close()


@dataclass
class View:
    """The live view: transactions that it shows, and how old they were when it first did."""

    project: LoadedProject
    writer: Writer
    shown: int = 0
    behind_in_the_end: float = float("inf")
    ages: list[float] = field(default_factory=list)

    def look(self) -> None:
        """Ask it for the newest transaction."""
        try:
            _, batches = answer_embedded(self.project, "SELECT max(n) AS n FROM live.ticks")
        except (NotEmbeddedError, PolynyaError):
            return  # There is no such view before the first copy.
        newest = next((one["n"] for batch in batches for one in batch.to_pylist()), None) or 0
        now = time.monotonic()
        # What is shown first now; one transaction after the other is in the log.
        for number in range(self.shown + 1, newest + 1):
            self.ages.append(now - self.writer.committed[number])
        self.shown = max(self.shown, newest)

    @property
    def behind(self) -> float:
        """Seconds since the newest transaction that it has shown was committed."""
        return time.monotonic() - self.writer.committed.get(self.shown, 0.0)


def measure(source: Source, rate: int, seconds: float, most: float) -> Iterator[Figure]:
    """How old changes are when the live view first shows them. Raises GaveUpError."""
    view = _watched(source, rate, seconds, most)
    p95 = quantile(view.ages, 0.95)
    yield Figure(
        f"age in the live view at {rate:,} changes/s for {seconds:.0f} s"
        f" (`roll.age: 1s`, `freshness: 1s`)",
        f"{_ages(view)} of {len(view.ages):,} transactions;"
        f" the writer was at most {view.writer.late:.1f} s late",
        f"p95 ≤ {MOST_SECONDS:g} s",
        p95 <= MOST_SECONDS,
    )


def keep_up(source: Source, rate: int, seconds: float, most: float) -> Iterator[Figure]:
    """How many changes a second reach the live view, which may not fall behind."""
    view = _watched(source, rate, seconds, most)
    changes = len(view.ages) * rate / _A_SECOND
    behind = view.behind_in_the_end
    yield Figure(
        f"changes, {rate:,}/s written for {_WARM_UP + seconds:.0f} s, into the live view",
        f"{changes / seconds:,.0f} changes/s in the last {seconds:.0f} s; {_ages(view)};"
        f" {behind:.1f} s behind in the end;"
        f" the writer was at most {view.writer.late:.1f} s late",
        f"≥ {LEAST:,}/s, ≤ {BEHIND_SECONDS:g} s behind",
        rate >= LEAST and max(behind, view.writer.late) <= BEHIND_SECONDS,
    )


def _watched(source: Source, rate: int, seconds: float, most: float) -> View:
    """Write, run and watch for this many seconds after the warm-up."""
    source.sql(
        "CREATE TABLE ticks (id bigint PRIMARY KEY, n int, name text, amount numeric(12,2),"
        " at timestamptz)",
        f"INSERT INTO ticks SELECT g, 0, 'old', 1, now() FROM generate_series(1, {_ROWS}) g",
    )
    writer = Writer(source, rate)
    view = View(load_project(source.folder), writer)
    thread = threading.Thread(target=writer.work, daemon=True)
    with source.polynya("run", seconds=most) as run:
        run.wait(lambda: bool(run.events("capture.streaming")), "the stream")
        run.wait(lambda: bool(run.events("batch.copied")), "the first copy")
        thread.start()
        try:
            _watch(view, _WARM_UP)
            while view.behind > _CAUGHT_UP:
                if time.monotonic() + seconds > run.deadline:
                    raise GaveUpError(f"the live view is {view.behind:.0f} s behind")
                _watch(view, 1.0)
            view.ages.clear()
            _watch(view, seconds)
            view.behind_in_the_end = view.behind
        finally:
            writer.stop.set()
            thread.join()
    return view


def _ages(view: View) -> str:
    return f"p50 {quantile(view.ages, 0.5):.2f} s, p95 {quantile(view.ages, 0.95):.2f} s"


def _watch(view: View, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        view.look()
        time.sleep(0.25)
