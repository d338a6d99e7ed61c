"""Where events landed: each record of each format is found again at its own place. No JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from polynya.engine.commands.landed_places import (
    LandedPlaces,
    LandingSearch,
    SearchLimits,
    SoughtEvent,
)
from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import FilePart
from polynya.formats.registry import format_of
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.sources import dataset_of_source
from polynya.model.config.task import StorageTask, resolved
from polynya.model.formats import rules_of
from polynya.model.loader import load_project
from polynya.store.object_store import LocalObjectStore
from polynya.streams.landing import ByHand, Message
from polynya.testing.fakes import FakeClock
from tests.formats.debezium.builders import an_event, capture
from tests.projects import CLICKS, write_project

NATIVE = """\
apiVersion: polynya/v1
kind: storage
name: t
schema: s
landing: {path: t, format: json}
datasets: [{name: t, keys: [id], sequence_by: [n]}]
"""
CAPTURED = """\
apiVersion: polynya/v1
kind: storage
name: t
schema: s
landing: {path: t, format: debezium}
"""
STREAMED = """\
apiVersion: polynya/v1
kind: streaming_transform
name: t
from: clicks
stream: clicks
mode: merge
columns: [{name: id, expression: id, type: bigint, key: 1}]
"""


def native(folder: Path) -> None:
    for file in (1, 2):
        rows = [{"id": number, "n": 10 * file + number} for number in (1, 2)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "t").mkdir(exist_ok=True, parents=True)
        (folder / "t" / f"{file}.json").write_text(text)


def captured(folder: Path) -> None:
    (folder / "t").mkdir(parents=True)
    for file in (1, 2):
        lines = [
            an_event(
                "c",
                {"id": number},
                key={"id": number},
                sequence=json.dumps([str(100 * file), str(100 * file + number)]),
            )
            for number in (1, 2)
        ]
        (folder / "t" / f"{file}.jsonl").write_bytes(capture(*lines))


def streamed(folder: Path) -> None:
    by_hand = ByHand("clicks", "clicks")
    for batch in (1, 2):
        messages = [Message(json.dumps({"id": one}).encode(), {}) for one in (1, 2)]
        at = datetime(2026, 1, batch, tzinfo=UTC)
        path, data = by_hand.batch(batch, 2 * batch - 2, messages, at)
        (folder / "clicks" / path).parent.mkdir(exist_ok=True, parents=True)
        (folder / "clicks" / path).write_bytes(data)


CASES: Mapping[str, tuple[dict[str, str], Any]] = {
    "native": ({"t": NATIVE}, native),
    "captured": ({"t": CAPTURED}, captured),
    "streamed": ({"t": STREAMED, "clicks": CLICKS}, streamed),
}


class Landed:
    """A project whose landing zone holds events, and a search in it."""

    def __init__(self, folder: Path, case: str) -> None:
        tasks, land = CASES[case]
        project = load_project(write_project(folder, **tasks))
        (self.task,) = project.tasks
        land(folder / "landing")
        self.store = LocalObjectStore(folder / "landing")
        self.dataset = dataset_of(self.task)

    def search(self, *events: SoughtEvent, key: int, **limits: Any) -> LandedPlaces:
        search = LandingSearch(self.store, None, FakeClock(), SearchLimits(**limits))
        return search.find(self.task, self.dataset, {"id": pa.array([key])}, events)

    def records(self) -> Iterator[dict[str, Any]]:
        """All records as a copy reads them."""
        table = KnownTable(self.dataset)
        files = [FilePart.of(info) for info in self.store.list(self.task.landing.path)]
        request = ReadRequest(self.store, files, {table.source: table})
        yield from format_of(self.task).read(request).datasets[table.source].rows.to_pylist()


def dataset_of(task: StorageTask) -> ResolvedDataset:
    if rules_of(task.landing.format).finds_tables:
        return dataset_of_source(task, "w.t")
    return resolved(task, task.datasets[0])


@pytest.mark.parametrize("case", CASES)
def test_each_event_is_found_where_it_landed(tmp_path: Path, case: str) -> None:
    landed = Landed(tmp_path, case)
    records = list(landed.records())

    assert len(records) == 4
    for one in records:
        sequence = f"{one['__ci']}{one['__tail'] or ''}"
        found = landed.search(SoughtEvent(sequence, None, one["__position"]), key=one["id"])

        place = found.places[sequence]
        assert (place.file, place.number) == (one["__file"], one["__offset"])
        assert found.why is None


def test_a_message_of_a_stream_has_its_place_there(tmp_path: Path) -> None:
    landed = Landed(tmp_path, "streamed")
    last = list(landed.records())[-1]

    found = landed.search(SoughtEvent(last["__ci"]), key=2)

    assert found.places[last["__ci"]].message == "kafka:clicks/0/3"
    # The place of the event names its batch: no other one is read.
    assert (found.looked_at, found.files) == (1, 1)


def test_an_event_of_another_record_is_not_taken_for_it(tmp_path: Path) -> None:
    landed = Landed(tmp_path, "native")
    first = next(landed.records())

    found = landed.search(SoughtEvent(first["__ci"]), key=99)

    assert found.places == {}
    assert found.why == "no file that is still there holds it"


def test_a_search_ends_at_its_limits_and_says_so(tmp_path: Path) -> None:
    landed = Landed(tmp_path, "native")

    found = landed.search(SoughtEvent("nowhere"), key=1, files=1)

    assert (found.looked_at, found.why) == (1, "1 of 2 files were looked through")


def test_a_landing_zone_that_cannot_be_read_is_a_reason(tmp_path: Path) -> None:
    landed = Landed(tmp_path, "native")

    class Gone(LocalObjectStore):
        def list(self, prefix: str = "") -> Any:
            raise OSError("S3 does not answer")

    landed.store = Gone(tmp_path / "landing")

    why = landed.search(SoughtEvent("1"), key=1).why
    assert why == "the landing zone could not be read: S3 does not answer"
