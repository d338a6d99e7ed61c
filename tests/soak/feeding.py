"""One run that is fed for minutes, measured all the time, and compared with the fold at the end."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tests.e2e.killing import Running, started
from tests.newcomer.faults.judging import unseemly
from tests.newcomer.shop.feed import INSERTS, RETURNS, TABLES, Table
from tests.newcomer.shop.freshness import Freshness, Landed, freshness
from tests.newcomer.shop.project import SCHEMA, Shop
from tests.newcomer.shop.service import Service, land, until
from tests.newcomer.shop.watching import Watcher
from tests.oracle.packs.read_back import internal_table, metadata_location
from tests.soak.reading import Reader
from tests.soak.samples import Sample, Told, newest, stored, typical

#: A run as long as the rule's own prices and the age of old snapshots are for.
FULL_MINUTES: Final = 120.0
_AGE_SECONDS: Final = 600.0
#: Samples of a run, and the least time between two of them.
_SAMPLES, _LEAST_SECONDS = 120, 4.0

# In a run of an eighth of the time an action has to come eight times as soon to come as often. By
# the rule (waste grows with the square of the time) it does when it costs 1/64 of its price. Each
# table is taken to be read as often in this run as in a full one.
_HASTENED: Final = """
import sys
from polynya.engine import maintenance_choice
from polynya.lake.maintenance import health
haste = float(sys.argv[1])
maintenance_choice.FIXED_BYTES /= haste**2
maintenance_choice.EXPIRING_BYTES /= haste**2
health.READS_PER_HOUR *= haste
sys.argv = ["polynya", *sys.argv[2:]]
from polynya.cli.main import main
sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class Options:
    """How long in minutes, how many tables, seconds between two files of a table, their records.

    `rows` is the first load of each table.
    """

    minutes: float
    tables: int
    every: float
    records: int
    rows: int
    seed: int

    @property
    def haste(self) -> float:
        """How many times shorter than a full run this is."""
        return max(1.0, FULL_MINUTES / self.minutes)

    @property
    def deletes(self) -> int:
        """Chance of a delete in percent: as many as there are inserts, one of them in each file.

        Steps and queries of tables that grow take longer and longer, however they are kept.
        """
        return INSERTS + RETURNS + round(100 / self.records)

    def settings(self, *, maintained: bool) -> dict[str, Any]:
        """Of the datasets."""
        if not maintained:
            return {"maintenance": {"enabled": False}}
        age = max(1, round(_AGE_SECONDS / self.haste))
        return {"maintenance": {"snapshot_expiry": {"age": f"{age}s", "keep": 10}}}


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one run."""

    maintained: bool
    samples: tuple[Sample, ...]
    freshness: Freshness
    actions: Mapping[str, int]
    problems: tuple[str, ...]


def tables(count: int) -> tuple[Table, ...]:
    """So many tables: those of the shop in turn, under names of their own."""
    return tuple(
        replace(one, name=f"{one.name}_{number + 1}")
        for number, one in ((n, TABLES[n % len(TABLES)]) for n in range(count))
    )


def soaked(folder: Path, options: Options, *, maintained: bool) -> Ran:
    """Feed a new project for so long."""
    settings = options.settings(maintained=maintained)
    shop = Shop.made(
        folder,
        options.seed,
        tables=tables(options.tables),
        defaults=settings,
        deletes=options.deletes,
    )
    for table in shop.tables:
        shop.land_load(table, options.rows)
    shop.polynya.must("run", "--once")
    names = {internal_table(SCHEMA, one.name): one.name for one in shop.tables}
    with Watcher(folder, names) as watcher, ExitStack() as stack:
        service = Service(shop, stack, lambda at: _begun(at, options.haste))
        service.start()
        # What is measured begins when the run is up.
        first = land(shop, options.records)
        until(lambda: first.keys() <= watcher.seen.keys(), service)
        with _Sampling(shop, service, options) as sampling:
            closed = _fed(shop, service, options)
        until(lambda: closed.keys() <= watcher.seen.keys(), service)
        code = service.end()
    ended = [f"exit code {code} after SIGTERM"] if code else []
    odd = [f"it said: {text}" for said in service.said for text in unseemly(said)]
    problems = (*ended, *odd, *sampling.problems, *shop.damage())
    found = freshness(closed, watcher.seen)
    told = (*problems, *found.problems(None))
    return Ran(maintained, tuple(sampling.samples), found, sampling.actions, told)


def _begun(folder: Path, haste: float) -> AbstractContextManager[Running]:
    arguments = ["--json", "run", "--project", str(folder)]
    start = ["-c", _HASTENED, str(haste)] if haste > 1 else ["-m", "polynya"]
    return started(folder, [sys.executable, *start, *arguments])


def _fed(shop: Shop, service: Service, options: Options) -> dict[Landed, float]:
    """Land file after file; the moments at which they were closed."""
    closed: dict[Landed, float] = {}
    began = time.monotonic()
    for tick in range(round(options.minutes * 60 / options.every)):
        time.sleep(max(0.0, began + tick * options.every - time.monotonic()))
        closed |= land(shop, options.records)
        if not service.lives:
            break
    return closed


class _Sampling:
    """Measures in a thread of its own until it is stopped."""

    def __init__(self, shop: Shop, service: Service, options: Options) -> None:
        assert service.run is not None
        self._shop, self._told = shop, Told(service.run.output)
        self._every = max(_LEAST_SECONDS, options.minutes * 60 / _SAMPLES)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampling")
        self._failed: list[str] = []
        self.samples: list[Sample] = []

    @property
    def actions(self) -> Mapping[str, int]:
        """Actions of maintenance that did something, by name."""
        return dict(self._told.actions)

    @property
    def problems(self) -> list[str]:
        """What went wrong in the run or while it was measured."""
        return [*self._failed, *self._told.problems]

    def __enter__(self) -> _Sampling:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._told.steps()

    def _run(self) -> None:
        try:
            with Reader(self._shop) as reader:
                began = time.monotonic()
                self._told.steps()
                while not self._stop.wait(self._every):
                    self.samples.append(self._sample(began, reader))
        except Exception as error:  # said at the end, with all that else is wrong
            self._failed.append(f"measuring ended: {type(error).__name__}: {error}")

    def _sample(self, began: float, reader: Reader) -> Sample:
        now = time.monotonic() - began
        places = [
            Path(metadata_location(self._shop.folder, *internal_table(SCHEMA, one.name)))
            for one in self._shop.tables
        ]
        heads: Counter[str] = Counter()
        for place in places:
            heads += newest(place.read_text("utf-8"))
        files = stored(place.parent.parent for place in places)
        asked = [reader.seconds(one.name) for one in self._shop.tables]
        return Sample(
            second=now,
            rows=heads["rows"],
            data_files=heads["data_files"],
            delete_files=heads["delete_files"],
            snapshots=heads["snapshots"],
            stored_files=files.data + files.manifests + files.metadata_json + files.others,
            data_bytes=files.data_bytes,
            manifests=files.manifests,
            metadata_json=files.metadata_json,
            metadata_bytes=files.metadata_bytes,
            step_seconds=typical(self._told.steps()),
            query_seconds=typical(asked),
        )
