"""What tests of the lake need: land records, run the engine in this process, look at the tables.

A `Lab` is one test's corner of the shared warehouse. A `Feed` is one native JSON dataset in it and
a `Capture` one Debezium task; both drive the real units of the engine.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.ledger import ledger_dataset
from polynya.engine.policy import ApplyMode
from polynya.engine.runner import run_once, units
from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import DatasetBatch, FilePart
from polynya.formats.native.format import read_native
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import internal_path
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import dataset_of_source
from polynya.model.config.task import StorageTask, resolved
from polynya.observe.events import Event
from polynya.store.object_store import LocalObjectStore
from polynya.testing.fakes import FakeClock, MemoryObjectStore

Row = tuple[Any, ...]
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
#: The engine's clock starts long after the events.
STARTED = datetime(2026, 6, 1, tzinfo=UTC)
_SETTINGS = {
    "path": "*.json",
    "keys": ["id"],
    "sequence_by": ["seq"],
    "timestamp": "at",
    "apply_as_deletes": "op = 'D'",
    "apply_as_truncates": "op = 'T'",
    "except_columns": ["op", "seq", "at"],
}
_numbers = itertools.count(1)


def next_schema() -> str:
    """A schema that no other test of this process uses."""
    return f"lab{next(_numbers)}"


def moment(seconds: float) -> datetime:
    """The time that stands for a sequence."""
    return EPOCH + timedelta(seconds=seconds)


def put(key: Any, seq: int, *, at: float | None = None, **values: Any) -> dict[str, Any]:
    """An upsert; its source time is its sequence in seconds unless `at` says otherwise."""
    time = moment(seq if at is None else at).isoformat()
    return {"id": key, **values, "op": "U", "seq": seq, "at": time}


def drop(key: Any, seq: int, **values: Any) -> dict[str, Any]:
    """A delete."""
    return {**put(key, seq, **values), "op": "D"}


def clear(seq: int) -> dict[str, Any]:
    """A truncate."""
    return {"op": "T", "seq": seq, "at": moment(seq).isoformat()}


@dataclass
class Lab:
    """See the module."""

    spark: SparkSession
    project: Path
    landing: Path
    schema: str
    clock: FakeClock = field(default_factory=lambda: FakeClock(STARTED))
    events: list[Event] = field(default_factory=list)

    def context(self, apply: ApplyMode = "never", **parts: Any) -> EngineContext:
        """What the engine runs with."""
        return EngineContext(
            spark=self.spark,
            landing=LocalObjectStore(self.landing),
            clock=self.clock,
            sink=self.events.append,
            apply_mode=apply,
            **parts,
        )

    def feed(self, name: str = "users", *, task: dict[str, Any] | None = None, **how: Any) -> Feed:
        """A JSON dataset with history; records look like those of `put`."""
        settings = {"history": True, **_SETTINGS, **how}
        settings = {name: value for name, value in settings.items() if value is not None}
        return Feed(self, name, settings, task or {})

    def parquet_feed(self, name: str = "users", **how: Any) -> Feed:
        """A Parquet dataset of upserts with `id` and `seq`."""
        task = {"landing": {"path": f"{self.schema}/{name}", "format": "parquet"}}
        plain = dict.fromkeys(("timestamp", "apply_as_deletes", "apply_as_truncates"))
        own = {"path": "*.parquet", "except_columns": ["seq"], **plain}
        return self.feed(name, task=task, **{**own, **how})

    def capture(self, *, landing: dict[str, Any] | None = None, **defaults: Any) -> Capture:
        """A Debezium task over every table."""
        return Capture(self, {"history": True, **defaults}, landing or {})

    def rows(self, statement: str) -> list[Row]:
        """Rows of a statement, in a fixed order; times with their zone."""
        table: pa.Table = self.spark.sql(statement).toArrow()
        found = [tuple(row.values()) for row in table.to_pylist()]
        return sorted(found, key=repr)


class _Work:
    """A storage task of the lab, run by the engine."""

    def __init__(self, lab: Lab, folder: str, ending: str) -> None:
        self.lab = lab
        self.applier: dict[str, Any] = {}
        self.folder = lab.landing / folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._ending = ending
        self._files = itertools.count(1)

    @property
    def task(self) -> StorageTask:
        """The task as its file would say."""
        raise NotImplementedError

    def land(self, *records: Any, file: str | None = None) -> str:
        """Land a file of JSON lines (bytes stand for themselves); its name below the folder."""
        name = file or f"{next(self._files):04d}{self._ending}"
        lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return name

    def run(self, apply: ApplyMode = "never") -> None:
        """Process what has landed; whatever fails is raised."""
        context = self.lab.context(apply, **self.applier)
        for failure in run_once(context, units(context, [self.task])).failures.values():
            raise failure

    def copy(self, *records: Any) -> None:
        """Land and copy."""
        self.land(*records)
        self.run("never")

    def apply(self, *records: Any) -> None:
        """Land, copy and apply."""
        if records:
            self.land(*records)
        self.run("always")


class Look:
    """One dataset as its readers see it."""

    def __init__(self, lab: Lab, dataset: ResolvedDataset | None = None) -> None:
        self.lab = lab
        self._dataset = dataset

    @property
    def dataset(self) -> ResolvedDataset:
        """The dataset with every setting final."""
        assert self._dataset is not None
        return self._dataset

    def current(self, *columns: str) -> list[Row]:
        """Rows of the Current view."""
        return self._rows(self.dataset.relations.view, columns)

    def history(self, *columns: str) -> list[Row]:
        """Rows of the History view: columns, operation, seconds of `from` and `to`."""
        times = [
            f"(unix_micros(hdr__{end}_timestamp) - {int(EPOCH.timestamp()) * 10**6}) / 1e6"
            for end in ("from", "to")
        ]
        return self._rows(self.dataset.relations.history_view, (*columns, "hdr__operation", *times))

    def changes(self, *columns: str) -> list[Row]:
        """Rows of the Changes view."""
        return self._rows(self.dataset.relations.changes_view, columns)

    def stored(self, partition: str, *columns: str) -> list[Row]:
        """Rows of one partition of the internal table."""
        return self.lab.rows(
            f"SELECT {', '.join(columns)} FROM {self.relation} WHERE hdr__partition = '{partition}'"
        )

    def rejected(self) -> list[Row]:
        """File, offset and rule of the quarantined records."""
        fields = [f"hdr__quarantine.{name}" for name in ("file", "offset", "rule")]
        return self.stored("quarantine", *fields)

    def columns(self) -> list[str]:
        """Columns of the Current view."""
        return self.lab.spark.sql(f"SELECT * FROM {self.view}").columns

    def types(self) -> dict[str, str]:
        """Types of the columns of the Current view."""
        return dict(self.lab.spark.sql(f"SELECT * FROM {self.view}").dtypes)

    @property
    def view(self) -> str:
        """Full name of the Current view."""
        return self.dataset.relations.current

    @property
    def internal(self) -> str:
        """Full name of the internal table."""
        return self.dataset.relations.internal

    @property
    def relation(self) -> str:
        """The internal table in SQL, also where the session looks for views first."""
        return internal_path(self.lab.spark, self.dataset)

    def table(self, owner: str = "a test") -> DatasetTable:
        """The internal table in the hands of an owner that has not taken it over."""
        table = DatasetTable.existing(self.lab.spark, self.dataset, owner)
        return WorkingDataset.of(self.lab.context(), table).table

    def files(self) -> set[Path]:
        """Every data and delete file in the folder of the internal table, live or not."""
        namespace, _, table = self.internal.partition(".")
        return set((self.lab.project / "warehouse" / namespace / table).rglob("*.parquet"))

    def totals(self) -> dict[str, int]:
        """Books of the dataset, without their prefix."""
        totals = self.table().state.copy.books.totals
        return {name.removeprefix("rows_"): count for name, count in totals.items()}

    def _rows(self, view: str, columns: Sequence[str]) -> list[Row]:
        names = ", ".join(columns)
        return self.lab.rows(f"SELECT {names} FROM {self.dataset.relations.schema}.{view}")


class Feed(_Work, Look):
    """One native JSON dataset and the task that fills it."""

    def __init__(self, lab: Lab, name: str, settings: dict[str, Any], task: dict[str, Any]) -> None:
        super().__init__(lab, f"{lab.schema}/{name}", ".json")
        self.name = name
        self.settings = settings
        self.more = task

    @property
    def task(self) -> StorageTask:
        """See `_Work`."""
        head = {"apiVersion": "polynya/v1", "kind": "storage", "name": f"{self.lab.schema}_task"}
        landing = {"path": f"{self.lab.schema}/{self.name}", "format": "json"}
        datasets = [{"name": self.name, **self.settings}]
        document = {**head, "schema": self.lab.schema, "landing": landing, "datasets": datasets}
        return StorageTask.model_validate(document | self.more)

    @property
    def dataset(self) -> ResolvedDataset:
        """The dataset as its settings are now."""
        return resolved(self.task, self.task.datasets[0])

    def batch(self, *records: Any, file: str = "by-hand.json") -> DatasetBatch:
        """Records as the engine reads them, for a step that a test takes by hand."""
        data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        store, part = MemoryObjectStore({file: data}), FilePart(file, len(data))
        known = KnownTable(self.dataset, self.table().known_schema())
        return read_native(ReadRequest(store, [part], {known.source: known}))

    def land_table(self, file: str | None = None, /, **columns: Any) -> None:
        """Land a Parquet file of these columns."""
        path = self.folder / (file or f"{next(self._files):04d}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)

    def configure(self, **settings: Any) -> None:
        """Change settings, as a user does between two runs."""
        self.settings = {**self.settings, **settings}


class Capture(_Work):
    """A Debezium task of the lab; its source tables are in the schema of the lab."""

    def __init__(self, lab: Lab, defaults: dict[str, Any], landing: dict[str, Any]) -> None:
        super().__init__(lab, lab.schema, ".jsonl")
        self.defaults = defaults
        self.more: dict[str, Any] = {}
        self.landing = landing

    @property
    def task(self) -> StorageTask:
        """See `_Work`."""
        head = {"apiVersion": "polynya/v1", "kind": "storage", "name": f"{self.lab.schema}_task"}
        landing = {"path": self.lab.schema, "format": "debezium", **self.landing}
        document = {**head, "schema": self.lab.schema, "landing": landing}
        return StorageTask.model_validate(document | {"defaults": self.defaults} | self.more)

    def __getitem__(self, table: str) -> Look:
        """One of the datasets."""
        return Look(self.lab, dataset_of_source(self.task, f"{self.lab.schema}.{table}"))

    def ledger(self) -> Look:
        """The position of the whole task."""
        return Look(self.lab, ledger_dataset(self.task))
