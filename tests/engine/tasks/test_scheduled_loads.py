"""Loads that a capture lands on a schedule: only what differs from the table is written."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from polynya.capture.landing.log import CaptureLog
from polynya.capture.worker.capture import Capture
from polynya.lake.copy import reload
from polynya.lake.table import dataset
from polynya.model.config.dataset import DELETING, KEEPING, ReloadMode
from polynya.store.object_store import LocalObjectStore
from tests.capture.deadly_store import Killed
from tests.capture.stand_in import StandIn, StandInEngines
from tests.capture.worker.test_capture import SETTINGS, Told
from tests.engine.test_struck_commits import Blow, KilledError, Mode
from tests.lab.lab import Capture as StorageTask
from tests.lab.lab import Lab, Look, Row

ROWS = 100
CHUNK_ROWS = 30


class Deadly(LocalObjectStore):
    """A landing zone whose writer dies with a put."""

    def __init__(self, folder: Path, killed_at: int | None) -> None:
        super().__init__(folder)
        self._left = killed_at

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if self._left == 0:
            raise Killed
        self._left = None if self._left is None else self._left - 1
        return super().put_if_absent(path, data)


@dataclass
class Prices:
    """A table of a database, a capture that only loads it, and the task that reads what lands."""

    lab: Lab
    mode: ReloadMode = DELETING
    database: StandIn = field(init=False)
    task: StorageTask = field(init=False)
    _seconds: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.task = self.lab.capture()
        self.database = StandIn({self.source: {key: f"price {key}" for key in range(ROWS)}})

    @property
    def source(self) -> str:
        return f"{self.lab.schema}.prices"

    @property
    def rows(self) -> dict[int, str]:
        """The rows in the database."""
        return self.database.rows[self.source]

    @property
    def table(self) -> Look:
        return self.task["prices"]

    def change(self, number: int) -> None:
        """Update, delete and insert a row."""
        self.rows[0] = f"price after change {number}"
        del self.rows[number + 1]
        self.rows[ROWS + number] = "new"

    def land(self, *, killed_at: int | None = None) -> list[Path]:
        """Let the capture load all rows again; the batches that it lands.

        It is killed when it has landed as many.
        """
        before = set(self.task.folder.iterdir())
        Capture(
            replace(
                SETTINGS, mode="reload", include=(self.source,), chunk_rows=CHUNK_ROWS,
                reload_mode=self.mode,
            ),
            self.database,
            CaptureLog(Deadly(self.lab.landing, killed_at), self.lab.schema),
            StandInEngines(),
            Told(),
            now=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(self._seconds)),
            monotonic=lambda: 0.0,
            patience=0.0,
        ).run()  # fmt: skip
        return sorted(set(self.task.folder.iterdir()) - before)

    def load(self) -> None:
        """A scheduled load, and a run that takes it in."""
        self.land()
        self.task.run("always")

    def current(self) -> list[Row]:
        return self.table.current("id", "v")

    def operations(self) -> Counter[str]:
        """How many versions each operation has made."""
        return Counter(row[0] for row in self.table.history())

    def data_files(self) -> set[str]:
        """The data files of what readers see."""
        table = self.table.table()
        partitions = ("current", "prior", "changes", "reload")
        return {
            file.path for one in partitions for file in table.table.files(one, table.state.snapshot)
        }


def test_three_equal_loads_write_no_row(lab: Lab) -> None:
    prices = Prices(lab)
    prices.load()
    before = prices.current(), prices.table.history("id", "v"), prices.data_files()

    for _ in range(3):
        prices.load()

    assert (prices.current(), prices.table.history("id", "v"), prices.data_files()) == before
    assert prices.operations() == {"L": ROWS}


def test_a_load_writes_what_differs_with_the_operation_of_each_row(lab: Lab) -> None:
    prices = Prices(lab)
    prices.load()
    files = prices.data_files()
    prices.rows[3] = "another"
    del prices.rows[50]
    prices.rows[1000] = "new"

    prices.load()

    assert prices.current() == sorted(prices.rows.items(), key=repr)
    assert prices.operations() == {"L": ROWS, "u": 1, "d": 1, "i": 1}
    table = prices.table.table().table
    written = [
        file.rows
        for partition in ("current", "prior")
        for file in table.files(partition, prices.table.table().state.snapshot)
        if file.path not in files
    ]
    # Two rows in Current, and the ends of two versions in Prior.
    assert sum(written) <= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "operations", "is_kept"),
    [
        (KEEPING, {"L": 100, "u": 1}, True),
        ("truncate_and_insert", {"L": 199, "D": 100}, False),
        ("drop_and_create", {"L": 99}, False),
    ],
)
def test_each_mode_does_what_polynya_reload_does(
    lab: Lab, mode: ReloadMode, operations: dict[str, int], *, is_kept: bool
) -> None:
    prices = Prices(lab, mode)
    prices.load()
    prices.rows[3] = "another"
    gone = prices.rows.pop(50)

    prices.load()

    kept = {50: gone} if is_kept else {}
    assert prices.current() == sorted({**prices.rows, **kept}.items(), key=repr)
    assert prices.operations() == operations


@pytest.mark.slow
def test_a_load_without_one_of_its_chunks_is_discarded(lab: Lab) -> None:
    prices = Prices(lab)
    prices.load()
    before = prices.current()
    prices.rows[3] = "another"
    lost = prices.land()[2]
    lost.unlink()

    prices.task.run("always")

    assert prices.current() == before
    discarded = [event for event in lab.events if event.type == "load.discarded"]
    assert len(discarded) == 1
    prices.load()
    assert prices.current() == sorted(prices.rows.items(), key=repr)
    assert prices.operations() == {"L": ROWS, "u": 1}


@pytest.mark.slow
def test_a_load_with_a_record_in_quarantine_deletes_nothing(lab: Lab) -> None:
    prices = Prices(lab)
    prices.load()
    before = dict(prices.rows)
    prices.rows.update({3: 50.5, 4: "another"})  # type: ignore[dict-item]
    del prices.rows[50]

    prices.load()

    assert [row[2] for row in prices.table.rejected()] == ["type_mismatch"]
    assert prices.current() == sorted({**before, 4: "another"}.items(), key=repr)
    prices.rows[3] = "right"
    prices.load()
    assert prices.current() == sorted(prices.rows.items(), key=repr)
    assert prices.operations() == {"L": ROWS, "u": 2, "d": 1}


@pytest.mark.slow
def test_a_load_takes_the_place_of_a_reload_of_a_user_that_was_killed(lab: Lab) -> None:
    prices = Prices(lab)
    prices.load()
    killed = prices.table.table("a user")
    killed.take_over()
    reload.begin(killed, DELETING, now=lab.clock.now())
    prices.rows[3] = "another"

    prices.load()

    assert [event.type for event in lab.events].count("load.discarded") == 1
    assert prices.current() == sorted(prices.rows.items(), key=repr)
    assert prices.operations() == {"L": ROWS, "u": 1}


@pytest.mark.slow
def test_what_is_left_of_a_load_that_a_user_discarded_is_left_out(lab: Lab) -> None:
    prices = Prices(lab)
    prices.load()
    before = prices.current()
    prices.rows[3] = "another"
    last = prices.land()[-1]
    held_back = last.read_bytes()
    last.unlink()
    prices.task.run("always")
    taken = prices.table.table("a user")
    taken.take_over()
    reload.abandon(taken)

    last.write_bytes(held_back)
    prices.task.run("always")

    assert prices.current() == before
    prices.load()
    assert prices.current() == sorted(prices.rows.items(), key=repr)


@pytest.mark.slow
def test_a_table_that_is_empty_at_the_source_becomes_empty(lab: Lab) -> None:
    prices = Prices(lab)
    prices.load()
    prices.rows.clear()

    prices.load()
    prices.load()
    assert prices.current() == []
    prices.rows[1] = "back"
    prices.load()

    assert prices.current() == [(1, "back")]
    assert prices.operations() == {"L": ROWS, "d": ROWS, "i": 1}


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_commit_continues_the_load(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = Prices(lab)
    prices.task.more = {"batch": {"max_rows": 40}}
    prices.load()
    lives, steps = 0, set[str]()
    for mode in (Mode.KILLED_BEFORE, Mode.KILLED_AFTER):
        for number in range(20):
            prices.change(lives)
            lives += 1
            prices.land()
            blow = Blow(number, mode, [])
            with monkeypatch.context() as struck:
                struck.setattr(dataset, "commit_row_delta", blow.commit)
                with suppress(KilledError):
                    prices.task.run("always")

            prices.task.run("always")

            assert prices.current() == sorted(prices.rows.items(), key=repr), blow.steps
            expected = {"L": ROWS, "u": lives, "d": lives, "i": lives}
            assert prices.operations() == expected, blow.steps
            steps |= set(blow.steps)
            if len(blow.steps) <= number:
                break
        else:
            raise AssertionError("each commit was struck")

    assert {"reload-begin", "reload", "apply"} <= steps


@pytest.mark.slow
@pytest.mark.parametrize("runs_between", [False, True])
def test_a_capture_that_is_killed_in_a_load_begins_another_one(
    lab: Lab, *, runs_between: bool
) -> None:
    prices = Prices(lab)
    prices.load()
    for killed_at in range(5):
        prices.change(killed_at)
        before = prices.current()
        with suppress(Killed):
            prices.land(killed_at=killed_at)
        if runs_between:
            prices.task.run("always")
            assert prices.current() == before

        prices.load()

        assert prices.current() == sorted(prices.rows.items(), key=repr)
        lives = killed_at + 1
        assert prices.operations() == {"L": ROWS, "u": lives, "d": lives, "i": lives}
