"""Extractions by a growing column: what a reader makes of the landed loads, and a random workload.

The reader is written from the contract of `LoadChunk` and of the modes of a reload, and shares no
code with the engine.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa

from polynya.capture.landing.log import CaptureLog
from polynya.capture.landing.position import CapturePosition
from polynya.capture.source import SourceDatabase
from polynya.capture.wire import GrowingSettings, WorkerSettings
from polynya.capture.worker.capture import Capture
from polynya.testing.fakes import MemoryObjectStore
from tests.capture.deadly_store import DeadlyStore, Killed
from tests.capture.stand_in import StandInEngines
from tests.capture.worker.test_capture import SETTINGS, Told

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


@dataclass
class Extraction:
    """A capture that reads what is new, run by run.

    Attributes:
        open: makes the database of a run.
        settings: of the capture; its column is `at`.
        now: the clock of the capture.
    """

    open: Callable[[], SourceDatabase]
    settings: WorkerSettings
    store: DeadlyStore = field(default_factory=DeadlyStore)
    now: datetime = BEGAN
    told: Told = field(default_factory=Told)

    @classmethod
    def of(cls, open_: Callable[[], SourceDatabase], **settings: Any) -> Extraction:
        """One of tables whose rows have the time of their last change in `at`."""
        made = WorkerSettings(
            task=SETTINGS.task, access=SETTINGS.access, landing="/nowhere", folder="shop",
            **{
                "mode": "reload", "include": ("*",), "chunk_rows": 7, "table_retries": 0,
                "growing": {"*": GrowingSettings("at", overlap_seconds=60.0)},
                "reload_schedule": "@daily",
                **settings,
            },
        )  # fmt: skip
        return cls(open_, made)

    def run(self, *, kill_at: int | None = None, after: bool = False) -> int:
        """One extraction; how many events it has landed. It dies at a put if that is asked for."""
        self.store.revive()
        self.store.kill_at, self.store.after = kill_at, after
        before = len(self.events())
        database = self.open()
        capture = Capture(
            self.settings, database, CaptureLog(self.store, "shop"), StandInEngines(), self.told,
            now=lambda: self.now, monotonic=lambda: 0.0, patience=0.0,
        )  # fmt: skip
        try:
            with suppress(Killed):
                capture.run()
        finally:
            database.close()
            self.store.revive()
        self.now += timedelta(seconds=1)
        return len(self.events()) - before

    def events(self) -> list[Row]:
        """The events that have landed."""
        return [event for _, events in batches(self.store) for event in events]

    def position(self) -> CapturePosition:
        newest = CaptureLog(self.store, "shop").newest()
        assert newest is not None
        return CapturePosition.of(newest.position)


def batches(store: MemoryObjectStore) -> list[tuple[Mapping[str, Any], list[Row]]]:
    """Header and events of each landed batch, in their order."""
    found = []
    for info in store.list("shop"):
        with pa.CompressedInputStream(pa.BufferReader(store.get(info.path)), "zstd") as content:
            header, *lines = content.read().splitlines()
        (stored,) = json.loads(header).values()
        found.append((stored, [json.loads(line) for line in lines]))
    return sorted(found, key=lambda one: int(one[0]["number"]))


@dataclass
class Reader:
    """Tables as the landed loads make them.

    Attributes:
        rows: of each table, by key.
        writes: how many rows were written.
    """

    rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    writes: int = 0
    _places: dict[str, dict[str, tuple[str, int]]] = field(default_factory=dict)
    _load: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    _gathered: dict[str, dict[str, Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, store: MemoryObjectStore) -> Reader:
        """After all that has landed."""
        reader = cls()
        for header, events in batches(store):
            for event in events:
                reader._take(header, event)
            for table, chunk in header.get("loads", {}).items():
                if chunk["is_last"]:
                    reader._compare(table)
        return reader

    def _take(self, header: Mapping[str, Any], event: Row) -> None:
        value, source = event["value"], event["value"]["source"]
        table = f"{source.get('schema') or source['db']}.{source['table']}"
        rows, chunk = self.rows.setdefault(table, {}), header.get("loads", {}).get(table)
        key = json.dumps(event["key"], sort_keys=True)
        if chunk is None:
            places = self._places.setdefault(table, {})
            place = (source.get("file", ""), source.get("lsn") or source.get("pos"))
            if value["op"] == "t":
                # It stands before the rows of its load, and lands behind them.
                for former in [one for one in rows if places[one] < place]:
                    del rows[former]
            else:
                rows[key], places[key] = value["after"], place
                self.writes += 1
            return
        self._begin(table, chunk["load"], chunk["mode"], chunk["chunk"])
        if value["op"] == "r" and self._load[table][0] == chunk["load"]:
            self._gathered[table][key] = value["after"]

    def _begin(self, table: str, load: int, mode: str, chunk: int) -> None:
        before = self._load.get(table)
        if before is not None and before[0] == load:
            self._load[table] = load, mode, chunk
            return
        if before is not None and before[1] == KEEPING:
            self._compare(table)
        assert chunk == 1, "a load begins with its first chunk"
        self._load[table], self._gathered[table] = (load, mode, chunk), {}

    def _compare(self, table: str) -> None:
        if table not in self._load:
            return
        _, mode, _ = self._load.pop(table)
        gathered, rows = self._gathered.pop(table), self.rows[table]
        for key, row in gathered.items():
            if rows.get(key) != row:
                rows[key] = row
                self.writes += 1
        if mode != KEEPING:
            for key in set(rows) - set(gathered):
                del rows[key]
                self.writes += 1


KEEPING = "compare_and_apply_without_deleted_rows"


class Writer(Protocol):
    """A session of whoever writes to the database."""

    def run(self, statement: str) -> Any: ...


@dataclass
class Workload:
    """Random inserts, updates and late commits to `items (id, at, v)`; and deletes.

    Attributes:
        connect: opens a session that commits each statement.
        table: its name in statements.
        second: of the last change, by the clock of the writers.
    """

    connect: Callable[[], Writer]
    table: str
    random: random.Random
    second: int = 0
    _ids: list[int] = field(default_factory=list)
    _late: list[tuple[int, Writer]] = field(default_factory=list)

    def step(self, *, deletes: bool) -> None:
        """Some changes."""
        session = self.connect()
        for _ in range(self.random.randrange(1, 12)):
            self.second += self.random.randrange(3)
            self._change(session, deletes=deletes)
        if self.random.random() < 0.5:
            late = self.connect()
            late.run("BEGIN")
            # Nobody changes it while its transaction is open.
            self._insert(late)
            self._late.append((self.second, late))
        self.commit_late(patience=40)

    def commit_late(self, *, patience: int) -> None:
        """Commit what has been open for long enough, by the clock of the writers."""
        for began, session in list(self._late):
            if self.second - began >= patience or self.random.random() < 0.4:
                session.run("COMMIT")
                self._late.remove((began, session))

    def _change(self, session: Writer, *, deletes: bool) -> None:
        chance = self.random.random()
        if not self._ids or chance < 0.5:
            self._ids.append(self._insert(session))
            return
        some = self.random.choice(self._ids)
        locked = f"WHERE id = {some}"
        if deletes and chance > 0.85:
            session.run(f"DELETE FROM {self.table} {locked}")
            self._ids.remove(some)
        elif chance > 0.8:
            session.run(f"UPDATE {self.table} SET at = NULL, v = 'unknown' {locked}")
        else:
            text = self.random.randrange(1000)
            session.run(f"UPDATE {self.table} SET at = {self.moment}, v = 'u{text}' {locked}")

    def _insert(self, session: Writer) -> int:
        number = self.random.randrange(10**9)
        session.run(f"INSERT INTO {self.table} VALUES ({number}, {self.moment}, 'new')")
        return number

    @property
    def moment(self) -> str:
        return f"'{BEGAN + timedelta(seconds=self.second):%Y-%m-%d %H:%M:%S}'"


def agrees(reader: Reader, table: str, rows: Sequence[tuple[int, str]]) -> bool:
    """Whether a table has the ids and texts of the rows of its source."""
    found = sorted((row["id"], row["v"]) for row in reader.rows[table].values())
    return found == sorted(rows)
