"""The files that all contenders read, and the rows that must come of them.

DuckDB makes both. A row is right when it has the values of the newest event of its key, by `seq`,
whatever the order of arrival; where that is a delete there is no row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.floors.records import Keys, land_changes, land_events, land_load
from bench.floors.same import ROW

_LOAD_FILES = 8
_LATE_ROWS = 1_000
#: What arrives late, and the first and the last key of it.
LATE = {
    "update older than the row": (0, 49),
    "delete older than the row": (50, 99),
    "upsert older than its delete": (100, 149),
    "upsert older than the delete of a key that was never there": (2_000, 2_049),
}


@dataclass(frozen=True, slots=True)
class Feed:
    """A folder of files for the load, and files of events in their order of arrival."""

    load: Path
    events: Sequence[Path]


def ordinary(folder: Path, *, rows: int, count: int, rounds: int, keys: Keys) -> Feed:
    """A load, then `count` events a round, in order."""
    files = land_load(folder / "load", "parquet", rows=rows, files=min(_LOAD_FILES, rows))
    events = [
        land_changes(folder, "parquet", rows=rows, count=count, version=version, keys=keys)
        for version in range(1, rounds + 1)
    ]
    return Feed(files[0].parent, events)


def late(folder: Path) -> Feed:
    """Three files: newer events, then older ones of the same keys, then some for other keys."""
    land_load(folder / "load", "parquet", rows=_LATE_ROWS, files=1)
    arriving = (
        ("U", 0, 100, 100), ("D", 100, 200, 100), ("D", 2_000, 2_050, 100),
    ), (
        ("U", 0, 50, 50), ("D", 50, 100, 50), ("U", 100, 150, 50), ("U", 2_000, 2_050, 50),
        ("U", 150, 200, 200),
    ), (
        ("U", 300, 400, 300), ("D", 400, 450, 300),
    )  # fmt: skip
    events = [
        land_events(folder / f"{number}.parquet", "parquet", " UNION ALL ".join(map(_some, some)))
        for number, some in enumerate(arriving, start=1)
    ]
    return Feed(folder / "load", events)


def _some(events: tuple[str, int, int, int]) -> str:
    op, first, end, seq = events
    return (
        f"SELECT range AS id, {seq} AS seq, '{op}' AS op, range + {seq} AS v "
        f"FROM range({first}, {end})"
    )


def wrong_keys(feed: Feed, dump: Path) -> list[int]:
    """Keys whose row is wrong, missing or too much; `dump` holds the rows as Parquet files."""
    files = ", ".join(f"'{one}'" for one in [feed.load / "*.parquet", *feed.events])
    newest = (
        f"SELECT * FROM read_parquet([{files}]) "
        "QUALIFY row_number() OVER (PARTITION BY id ORDER BY seq DESC) = 1"
    )
    expected = f"SELECT {ROW} FROM ({newest}) WHERE op <> 'D'"
    held = f"SELECT {ROW} FROM read_parquet('{dump}/*.parquet')"
    differing = f"(({expected}) EXCEPT ALL ({held})) UNION ALL (({held}) EXCEPT ALL ({expected}))"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute(f"SELECT DISTINCT id FROM ({differing}) ORDER BY id").fetchall()
    return [int(key) for (key,) in found]


def by_lateness(keys: Sequence[int]) -> dict[str, int]:
    """How many keys of the late feed are wrong, by what arrived late for them."""
    names = (_lateness(key) for key in keys)
    return dict(Counter(names))


def _lateness(key: int) -> str:
    found = (what for what, (first, last) in LATE.items() if first <= key <= last)
    return next(found, "not late")
