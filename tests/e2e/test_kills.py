"""kill -9 at commit boundaries and at random moments, then restart: 0 lost, 0 duplicated.

Tables are read back with DuckDB and PyIceberg. The append-only log shows any duplicate by itself;
in the keyed table an equal event would vanish in the fold, so its versions are counted as well.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.killing import KILLED, run_to_end, running
from tests.oracle.emit import NATIVE_SETTINGS, native_line
from tests.oracle.fold import UPSERT, Event, fold
from tests.oracle.histories import Shape, native_history, seeded
from tests.oracle.packs.extracts import drawn_extracts
from tests.oracle.packs.pack import Landing, Pack
from tests.oracle.packs.read_back import READERS, internal_table
from tests.oracle.values import EPOCH, bag, difference

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
ROUNDS = int(os.environ.get("POLYNYA_TEST_KILLS", "4"))
FILES, ROWS = 6, 60
SHAPE = Shape(columns=("name",), key_count=30)
# Small batches and an eager apply: a run has about as many commits as the landing has files.
TASK = {"batch": {"max_rows": 50}, "apply": {"max_pending_rows": 80, "min_fraction": 0.0}}


class Shop:
    """A project with a keyed table and an append-only log, and the check of both."""

    def __init__(self, directory: Path, task: Mapping[str, Any] = TASK) -> None:
        self.directory = directory
        self.events = native_history(seeded(SEED), SHAPE, FILES * ROWS)[: FILES * ROWS]
        self.log = [
            Event((), n, UPSERT, {"line": n, "text": f"t{n}"}, EPOCH + timedelta(seconds=n))
            for n in range(FILES * ROWS)
        ]
        keyed = [
            [native_line(event, ["id"], SHAPE.columns) for event in self.events[i::FILES]]
            for i in range(FILES)
        ]
        logged = [[dict(event.values) for event in self.log[i::FILES]] for i in range(FILES)]
        keeping = {"history": True, "changes_retention": "keep"}
        settings = {**NATIVE_SETTINGS, "keys": ["id"], **keeping}
        pack = Pack(
            directory,
            [
                Landing("shop", "people", keyed, settings),
                Landing("shop", "log", logged, {"mode": "append_only"}),
            ],
            dict(task),
        )
        pack.write_project()
        for step in range(pack.steps):
            pack.land(step)

    def finish(self) -> None:
        """Restart until everything has landed and is applied."""
        run_to_end(self.directory)
        run_to_end(self.directory, apply="always")

    def damage(self) -> list[str]:
        """Rows lost or duplicated, seen by each independent reader."""
        found = []
        for name in READERS:
            try:
                compared = self._compared(name)
            except Exception as error:  # what no reader can read is damaged
                found.append(f"{name} cannot read: {error}")
                continue
            for what, wanted, got in compared:
                text = difference(bag(wanted), bag(got))
                if text:
                    found.append(f"{name}, {what}:\n{text}")
        return [*found, *self._unsound()]

    def _unsound(self) -> list[str]:
        """What `polynya verify` says against the fold of the kept events."""
        with running(self.directory, "verify") as check:
            return [] if check.wait() == 0 else [check.text()]

    def _compared(self, reader: str) -> list[tuple[str, list, list]]:
        folded = fold(self.events)
        versions = [(*v.key, v.values.get("name"), v.op, v.from_ts) for v in folded.history()]
        columns = ["hdr__partition", "id", "name", "hdr__operation", "hdr__from_timestamp"]
        people = self._read(reader, "people", columns)
        stored = [row[1:] for row in people if row[0] in ("current", "prior")]
        live = [row[1:3] for row in people if row[0] == "current"]
        current = [(*v.key, v.values.get("name")) for v in folded.current().values()]
        lines = [
            row[1:]
            for row in self._read(reader, "log", ["hdr__partition", "line", "text"])
            if row[1] is not None
        ]
        states = [row for row in people if row[0] == "asset_state"]
        return [
            ("people, versions", versions, stored),
            ("people, current", current, live),
            ("people, pending", [], [row for row in people if row[0] == "changes"]),
            ("people, states beyond copy's and apply's", [], states[2:]),
            ("log", [tuple(event.values.values()) for event in self.log], lines),
        ]

    def _read(self, reader: str, name: str, columns: list[str]) -> list[tuple]:
        rows = READERS[reader](self.directory, *internal_table("shop", name), columns)
        return [tuple(row[column] for column in columns) for row in rows]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("mode", ["before", "after"])
def test_killed_at_a_commit(shop: Shop, mode: str, number: int) -> None:
    """Staged but not committed; committed but nobody was told."""
    with running(shop.directory, mode=mode, number=number) as run:
        assert run.wait() == KILLED, run.text()

    shop.finish()

    assert shop.damage() == []


@pytest.mark.parametrize(("mode", "number"), [("before", 4), ("after", 7)])
def test_an_agent_killed_at_a_commit_goes_on_where_it_was(
    shop: Shop, mode: str, number: int
) -> None:
    with running(shop.directory, "agent", mode=mode, number=number) as agent:
        assert agent.wait() == KILLED, agent.text()

    with running(shop.directory, "agent") as agent:
        _until_idle(shop.directory)
        agent.process.terminate()
        assert agent.wait() == 0, agent.text()

    shop.finish()
    assert shop.damage() == []


def _until_idle(directory: Path, seconds: float = 300.0) -> None:
    """Wait until the agent has copied every record that was not copied before it was killed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with running(directory, "status", "--json") as status:
            status.wait()
            copied = re.findall(r'"rows_in":(\d+)', status.text())
        if [int(count) for count in copied] == [FILES * ROWS] * 2:
            return
        time.sleep(5.0)
    raise AssertionError("the agent did not copy what had landed")


@pytest.mark.parametrize(("mode", "number"), [("before", 5), ("after", 6), ("after", 8)])
def test_an_extract_is_taken_once_and_whole(tmp_path: Path, mode: str, number: int) -> None:
    """Killed before the first one moves, when the second has begun, when it has moved."""
    case = drawn_extracts(SEED, 3)
    pack = Pack(tmp_path, [case.landing("shop", "people", [0, 0, 0])])
    pack.write_project()
    pack.land(0)
    with running(tmp_path, mode=mode, number=number) as run:
        assert run.wait() == KILLED, run.text()

    run_to_end(tmp_path)

    headers = ["hdr__from_timestamp", "hdr__to_timestamp", "hdr__operation"]
    columns = ["hdr__partition", "id", "name", "n", *headers]
    for read in READERS.values():
        rows = [
            tuple(row[column] for column in columns[1:])
            for row in read(tmp_path, *internal_table("shop", "people"), columns)
            if row["hdr__partition"] in ("current", "prior")
        ]
        got = [(*row[:-1], row[-1] == "d") for row in rows]
        assert difference(bag(case.rows()), bag(got)) == ""


def test_killed_at_random_moments(shop: Shop) -> None:
    chance = random.Random(SEED)
    kills = 0
    for _ in range(ROUNDS):
        with running(shop.directory) as run:
            time.sleep(chance.uniform(2.0, 16.0))
            kills += run.process.poll() is None

    shop.finish()

    assert shop.damage() == []
    assert kills > 0


@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_rebuild_killed_at_its_commit(shop: Shop, mode: str) -> None:
    """The first commit takes the table over, the second is the rebuild."""
    shop.finish()

    with running(shop.directory, "rebuild", "shop", mode=mode, number=2) as run:
        assert run.wait() == KILLED, run.text()
    assert shop.damage() == []
    with running(shop.directory, "rebuild", "shop") as run:
        assert run.wait() == 0, run.text()
    assert shop.damage() == []


def test_two_owners_at_once(shop: Shop) -> None:
    """Both reach their first commit before either commits: one is refused, nothing twice."""
    with running(shop.directory, mode="meet") as one, running(shop.directory, mode="meet") as two:
        codes = sorted((one.wait(), two.wait()))
        text = one.text() + two.text()

    assert codes in ([0, 0], [0, 5]), text
    shop.finish()
    assert shop.damage() == []


def test_the_check_sees_a_commit_without_validation(shop: Shop) -> None:
    """Planted fault: two owners whose commits validate nothing."""
    with (
        running(shop.directory, mode="unvalidated") as one,
        running(shop.directory, mode="unvalidated") as two,
    ):
        one.wait()
        two.wait()
    with suppress(AssertionError):  # refusing to go on with broken tables is as good
        shop.finish()

    assert shop.damage() != []


def test_the_check_sees_a_commit_that_loses_rows(shop: Shop) -> None:
    """Planted fault: positions are committed and the rows that belong to them are not."""
    with running(shop.directory, mode="lossy") as run:
        run.wait()
    with suppress(AssertionError):
        shop.finish()

    assert shop.damage() != []
