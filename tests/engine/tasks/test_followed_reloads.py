"""Tables of a capture that follows changes and compares them with new loads on a schedule."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.capture.landing.log import CaptureLog
from polynya.capture.worker.capture import Capture
from polynya.model.config.dataset import KEEPING
from tests.capture.deadly_store import Killed
from tests.capture.stand_in import StandIn, StandInEngines
from tests.capture.worker.test_capture import SETTINGS, Told
from tests.engine.tasks.test_scheduled_loads import Deadly, Prices
from tests.lab.lab import Capture as StorageTask
from tests.lab.lab import Lab, Row


@dataclass
class Followed:
    """A table whose changes are captured, and the task that reads what lands."""

    lab: Lab
    database: StandIn = field(init=False)
    task: StorageTask = field(init=False)
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def __post_init__(self) -> None:
        self.task = self.lab.capture()
        self.database = StandIn({self.source: {key: f"price {key}" for key in range(40)}})

    @property
    def source(self) -> str:
        return f"{self.lab.schema}.prices"

    @property
    def rows(self) -> dict[int, str]:
        return self.database.rows[self.source]

    def change(self) -> None:
        """A change that the log has, and one that it lacks."""
        keys = sorted(self.rows)
        some, other, gone = self.random.sample(keys, 3)
        number = self.random.randrange(1000, 10**6)
        self.database.commit(
            ("u", self.source, some, f"u{number}"),
            ("d", self.source, other, ""),
            ("c", self.source, number, "new"),
        )
        self.database.forget(self.source, gone)

    def land(self, *, killed_at: int | None = None, **settings: Any) -> None:
        """Capture what there is; it is killed when it has landed so many batches."""
        changes = self._changes()
        self.database.between = lambda: next(changes)
        capture = Capture(
            replace(
                SETTINGS, include=(self.source,), chunk_rows=9, reload_schedule="@daily", **settings
            ),
            self.database,
            CaptureLog(Deadly(self.lab.landing, killed_at), self.lab.schema),
            StandInEngines(),
            Told(),
            now=lambda: self.now,
            monotonic=lambda: 0.0,
            patience=0.0,
        )
        with suppress(Killed):
            capture.run()
        self.database.between = lambda: None

    def _changes(self) -> Iterator[None]:
        """What others commit between the chunks of a load."""
        for number in range(10**6):
            if number < 4:
                some, other = self.random.sample(sorted(self.rows), 2)
                self.database.commit(
                    ("u", self.source, some, f"during {number}"),
                    ("d", self.source, other, ""),
                    ("c", self.source, 10**6 + self.random.randrange(10**6), "during"),
                )
            yield

    def current(self) -> list[Row]:
        return self.task["prices"].current("id", "v")

    @property
    def expected(self) -> list[Row]:
        return sorted(self.rows.items(), key=repr)


@pytest.mark.slow
def test_a_scheduled_reload_repairs_a_table_while_its_changes_go_on(lab: Lab) -> None:
    shop = Followed(lab)
    shop.land()
    shop.task.run("always")
    shop.change()
    shop.land()
    shop.task.run("always")
    missed = shop.current() != shop.expected
    shop.now += timedelta(days=1)

    shop.land()
    shop.task.run("always")
    shop.land()
    shop.task.run("always")

    assert missed
    assert shop.current() == shop.expected
    assert sum(event.type == "load.compared" for event in lab.events) == 1


@pytest.mark.slow
@pytest.mark.parametrize("killed_at", range(1, 10))
def test_kills_and_runs_in_between_leave_the_table_right(lab: Lab, killed_at: int) -> None:
    shop = Followed(lab)
    shop.random = random.Random(killed_at)
    shop.land()
    shop.task.run("always")
    for _ in range(2):
        shop.change()
        shop.now += timedelta(days=1)
        shop.land(killed_at=killed_at)
        shop.task.run("always")
        shop.land(killed_at=killed_at + 2)
        shop.task.run("always")
        shop.land()
        shop.land()
        shop.task.run("always")

        assert shop.current() == shop.expected

    assert sum(event.type == "load.compared" for event in lab.events) == 2


@pytest.mark.slow
def test_a_load_that_keeps_what_it_lacks_is_compared_as_far_as_it_landed(lab: Lab) -> None:
    prices = Prices(lab, KEEPING)
    prices.load()
    prices.change(0)
    with suppress(Killed):
        prices.land(killed_at=3)
    prices.task.run("always")
    gathered = prices.table.table().state.copy.reloading
    prices.rows[5] = "later"
    landed = prices.land()
    lost: Path = landed[1]
    lost.unlink()

    prices.task.run("always")
    prices.load()

    assert gathered is not None
    assert [event.type for event in lab.events].count("load.discarded") == 0
    assert dict(prices.rows).items() <= dict(prices.current()).items()
    assert prices.operations() == {"L": 100, "u": 2, "i": 1}
