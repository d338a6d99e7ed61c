"""The first load of tables into the landing zone, beside `COPY` of the same rows to Parquet."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Final

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from bench.capture.figures import Figure, middle
from bench.capture.place import Source

#: Rows a second that are to be reached.
LEAST: Final = 20_000
_TABLES: Final = ("first", "second")
_COLUMNS: Final = (
    "id bigint PRIMARY KEY, customer int, amount numeric(12,2), placed timestamptz, day date,"
    " paid boolean, name text, city varchar(40), note text, weight float8"
)
_ROWS: Final = (
    "SELECT g, g % 1000, (g::bigint * 7919 % 1000003) / 100.0, timestamptz '2026-01-01' + g *"
    " interval '1 second', date '2026-01-01' + g % 365, g % 3 = 0, 'customer ' || g % 1000, 'city '"
    " || g % 50, md5(g::text), g / 7.0 FROM generate_series(1, {rows}) g"
)


def measure(sources: Iterable[Source], rows: int, seconds: float) -> Iterator[Figure]:
    """Load two tables with half of the rows each, once from every source. Raises GaveUpError."""
    each = rows // len(_TABLES)
    limits, rates, starts = [], [], []
    for source in sources:
        for name in _TABLES:
            insert = f"INSERT INTO {name} {_ROWS.format(rows=each)}"
            source.sql(f"CREATE TABLE {name} ({_COLUMNS})", insert, f"ANALYZE {name}")
        limits.append(each * len(_TABLES) / _copied(source))
        rate, start = _loaded(source, seconds)
        rates.append(rate)
        starts.append(start)
    ratios = [rate / limit for rate, limit in zip(rates, limits, strict=True)]
    yield Figure(
        f"full load, {each * len(_TABLES):,} rows of 10 columns in two tables, {len(rates)} rounds",
        f"{middle(rates)} rows/s; {middle(starts, '.1f')} s until it began",
        f"≥ {LEAST:,}/s",
        median(rates) >= LEAST,
    )
    yield Figure(
        "the same by `COPY` to Parquet, one table after the other",
        f"{middle(limits)} rows/s: the load has {middle(ratios, '.2f')} of that",
    )


def _loaded(source: Source, seconds: float) -> tuple[float, float]:
    """Rows a second, and the seconds until the first is read."""
    with source.polynya("landing", "run", "--once", seconds=seconds) as run:
        began = time.time()
        run.wait(lambda: len(run.events("capture.loaded")) == len(_TABLES), "the load")
        run.wait(lambda: False, "the end of the load")
        loaded = run.events("capture.loaded")
    first = min(one["second"] - one["seconds"] for one in loaded)
    took = max(one["second"] for one in loaded) - first
    return sum(one["rows"] for one in loaded) / took, first - began


def _copied(source: Source) -> float:
    """Seconds in which all rows are copied to Parquet files."""
    began = time.perf_counter()
    for name in _TABLES:
        data = io.BytesIO()
        connection = source.server.connect(database=source.name)
        connection.run(f"COPY {name} TO STDOUT (FORMAT csv, HEADER)", stream=data)
        connection.close()
        rows = pc.read_csv(pa.BufferReader(data.getbuffer()))
        pq.write_table(rows, source.folder / f"{name}.parquet", compression="zstd")
    return time.perf_counter() - began
