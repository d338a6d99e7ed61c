"""Changes a second: those that wait in the log of the database land as fast as they can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from statistics import median
from typing import Final

from bench.capture.figures import Figure, middle
from bench.capture.place import GaveUpError, Source

LEAST: Final = 5_000
#: Changes of a transaction.
_EACH: Final = 100
_ROWS: Final = 50_000
_WORK: Final = """\
DO $$ BEGIN FOR n IN 1..{transactions} LOOP
  UPDATE changing SET version = version + 1, note = md5(n::text)
    WHERE id BETWEEN n * {each} % {rows} + 1 AND n * {each} % {rows} + {each};
  COMMIT;
END LOOP; END $$"""


def measure(source: Source, changes: int, rounds: int, seconds: float) -> Iterator[Figure]:
    """Pause a capture, change rows, and continue it, repeatedly. Raises GaveUpError."""
    source.sql(
        "CREATE TABLE changing (id int PRIMARY KEY, version int, name text, amount numeric(12,2),"
        " at timestamptz DEFAULT now(), note text)",
        "INSERT INTO changing SELECT g, 0, 'name ' || g, g / 7.0, now(), md5(g::text)"
        f" FROM generate_series(1, {_ROWS}) g",
    )
    with source.polynya("landing", "run", "--once", seconds=seconds / 2) as run:
        run.wait(lambda: False, "the load")
    rates = [_rate(source, changes, seconds) for _ in range(rounds)]
    yield Figure(
        f"changes, {changes:,} updates of 6 columns in transactions of {_EACH}, {rounds} rounds",
        f"{middle(rates)} changes/s, the start of the stream included",
        f"≥ {LEAST:,}/s",
        median(rates) >= LEAST,
    )


def _rate(source: Source, changes: int, seconds: float) -> float:
    """Changes that land in a second."""
    made = changes // _EACH
    source.sql(_WORK.format(transactions=made, each=_EACH, rows=_ROWS - _EACH))
    with source.polynya("landing", "run", "--once", seconds=seconds) as run:
        # Those that did land in time have a rate, too.
        with suppress(GaveUpError):
            run.wait(lambda: run.landed() >= made * _EACH, "the changes")
        batches = run.events("capture.landed")
        streams = run.events("capture.streaming")
    if not streams or not run.landed():
        raise GaveUpError("no change has landed in time")
    landed: int = sum(one["events"] for one in batches)
    took: float = max(one["second"] for one in batches) - streams[0]["second"]
    return landed / took
