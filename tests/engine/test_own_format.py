"""A format that is not one of Polynya's: one class and one registration, and all of it works.

A `redo` file holds one change a line, such as `7;U;1;Ann`: its place in the order, the operation,
the key, a name. The folder that it is in names its table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.engine.commands.replay import replay
from polynya.engine.inventory import inventory
from polynya.engine.ledger import ledger_dataset
from polynya.engine.runner import run_once, units
from polynya.formats.base import KnownTable, ReadBatch, ReadRequest, RereadRequest
from polynya.formats.batch import BatchLimits, FileProgress
from polynya.formats.errors import RecordError
from polynya.formats.files import Discovery, Folders, NoTable, nothing_to_reload, sorted_out, unread
from polynya.formats.registry import register, unregister
from polynya.formats.values.batches import Extras, Placement, batch_of, settled
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.columns import TypedColumn, build
from polynya.formats.values.rows import ObservedTypes
from polynya.lake.spark.catalog import python_catalog
from polynya.model.config.dataset import DELETING, ResolvedDataset
from polynya.model.config.sources import dataset_of_source, included
from polynya.model.config.task import StorageTask
from polynya.model.errors import ConfigErrors, OperationError
from polynya.model.formats import FormatRules
from polynya.model.loader import load_project
from polynya.store.object_store import ObjectInfo
from tests.lab.lab import Lab, Look
from tests.projects import write_project

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
RULES = FormatRules(
    "redo",
    tables_named_in="folders",
    brings_keys=True,
    brings_order=True,
    tells_operations=True,
    landing_settings=frozenset({"delimiter"}),
)


class RedoFormat:
    """The landing zone of a task, as `redo` files fill it."""

    def __init__(self, task: StorageTask) -> None:
        self._root = task.landing.path
        self._included = partial(included, task)

    def tables(self, landed: Iterable[ObjectInfo]) -> Folders:
        return sorted_out(landed, self._root, _table_of, self._included)

    def unread(
        self,
        landed: Iterable[ObjectInfo],
        done: Mapping[str, FileProgress],
        dataset: ResolvedDataset,
    ) -> Discovery:
        return unread(landed, done)

    def read(self, request: ReadRequest) -> ReadBatch:
        buffer = RecordBuffer(request.limits)
        delimiter = request.table.dataset.landing.delivery.delimiter_character
        for part in request.files:
            if buffer.is_full:
                break
            lines = request.store.get(part.path).splitlines()[part.start :]
            buffer.take(part, ((line, _parsed(line, delimiter)) for line in lines))
        return _batch(buffer, request.table)

    def reread_groups(self, files: Collection[str], dataset: ResolvedDataset) -> list[set[str]]:
        return [set(files)]

    def reread(self, request: RereadRequest) -> ReadBatch:
        buffer = RecordBuffer(BatchLimits())
        delimiter = request.table.dataset.landing.delivery.delimiter_character
        for one in request.records:
            buffer.add(one.file, one.offset, one.raw, _parsed(one.raw, delimiter))
        return _batch(buffer, request.table)

    def full_load(
        self, landed: Iterable[ObjectInfo], dataset: ResolvedDataset, glob: str | None
    ) -> tuple[ObjectInfo, ...]:
        raise nothing_to_reload(dataset, "redo files hold changes only")

    def place_of_load(self, began: datetime, dataset: ResolvedDataset) -> str | None:
        return None


def _table_of(path: str) -> str | NoTable:
    table, _, name = path.rpartition("/")
    return table if name.endswith(".redo") and "." in table else NoTable.UNPLACED


def _parsed(line: bytes, delimiter: str) -> dict[str, Any] | RecordError:
    fields = line.decode().split(delimiter)
    if len(fields) != 4:
        return RecordError("bad_redo", f"{len(fields)} fields, not 4")
    place, operation, key, name = fields
    return {"": (int(place), operation), "id": int(key), "name": name or None}


def _batch(buffer: RecordBuffer, table: KnownTable) -> ReadBatch:
    headers = [record.pop("") for record in buffer.records]
    dataset, keys = table.dataset, ("id",)

    def place(columns: Mapping[str, TypedColumn]) -> Placement:
        count = len(headers)
        return Placement(
            identifiers=[f"{number:035d}" for number, _ in headers],
            tails=[None] * count,
            positions=[None] * count,
            times=[_micros(EPOCH + timedelta(seconds=number)) for number, _ in headers],
            faults={},
        )

    declared, policies = dataset.events.columns, dataset.policies.schema_evolution
    types = ObservedTypes().column_types(table.schema, declared, policies)
    done = settled(buffer.records, types, build, place, needed=keys)
    operations = [operation for _, operation in headers]
    return ReadBatch({table.source: batch_of(buffer, done, keys, Extras(operations))})


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 10**6


@pytest.fixture(autouse=True)
def redo() -> Iterator[None]:
    register(RULES, RedoFormat)
    yield
    unregister("redo")


class Redo:
    """A task over `redo` files; its source tables are in schema `w`."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.delimiter = ";"

    @property
    def task(self) -> StorageTask:
        landing = {"path": self.lab.schema, "format": "redo", "delimiter": self.delimiter}
        head = {"apiVersion": "polynya/v1", "kind": "storage", "name": f"{self.lab.schema}_task"}
        document = {"schema": self.lab.schema, "landing": landing, "defaults": {"history": True}}
        return StorageTask.model_validate(head | document)

    def land(self, path: str, *lines: str) -> None:
        file = self.lab.landing / self.lab.schema / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines))

    def run(self) -> None:
        context = self.lab.context("always")
        assert run_once(context, units(context, [self.task])).failures == {}

    def look(self, table: str) -> Look:
        return Look(self.lab, dataset_of_source(self.task, f"w.{table}"))

    def replay(self, table: str) -> tuple[int, int]:
        """Read what is in quarantine again: records, and how many of them were copied."""
        project = replace(load_project(self.lab.project), tasks=(self.task,))
        entries = inventory(project, python_catalog(project.target))
        (entry,) = [one for one in entries if one.dataset.name == table]
        result = replay(self.lab.context("always"), entry, None)
        return result.records, result.copied


def test_it_is_landed_queried_quarantined_and_replayed(lab: Lab) -> None:
    service = Redo(lab)
    service.land("w.users/1.redo", "1;I;1;Ann", "2;I;2;Ben", "5|U|3|Cid")
    service.land("w.users/2.redo", "4;D;2;", "3;U;1;Anna")
    service.land("w.towns/1.redo", "1;I;7;Ulm")
    service.land("stray.redo", "1;I;7;Ulm")
    service.run()
    users, towns = service.look("users"), service.look("towns")

    assert users.current("id", "name") == [(1, "Anna")]
    assert users.history("id", "name") == [
        (1, "Ann", "I", 1.0, 3.0),
        (1, "Anna", "U", 3.0, None),
        (2, "Ben", "D", 4.0, None),
        (2, "Ben", "I", 2.0, 4.0),
    ]
    assert towns.current("id", "name") == [(7, "Ulm")]
    assert [row[1:] for row in users.rejected()] == [(2, "bad_redo")]
    assert [row[1:] for row in Look(lab, ledger_dataset(service.task)).rejected()] == [
        (-1, "no_dataset")
    ]

    service.delimiter = "|"
    assert service.replay("users") == (1, 1)
    service.run()

    assert users.current("id", "name") == [(1, "Anna"), (3, "Cid")]
    assert users.rejected() == []
    assert users.totals() == {"in": 5, "out": 5, "filtered": 0, "quarantined": 0}


def test_a_later_run_goes_on_where_the_last_one_stopped(lab: Lab) -> None:
    service = Redo(lab)
    service.land("w.users/1.redo", "1;I;1;Ann")
    service.run()
    service.land("w.users/2.redo", "2;U;1;Anna")
    service.run()
    service.run()

    users = service.look("users")
    assert users.current("id", "name") == [(1, "Anna")]
    assert users.totals() == {"in": 2, "out": 2, "filtered": 0, "quarantined": 0}
    with pytest.raises(OperationError, match="redo files hold changes only"):
        reload(lab.context(), ReloadRequest(service.task, users.dataset, mode=DELETING))


TASK = """\
apiVersion: polynya/v1
kind: storage
name: redo
schema: shop
landing: {path: redo, format: redo, delimiter: ";"}
include: ["w.*"]
"""


def test_its_tasks_are_checked_like_any_other(tmp_path: Path) -> None:
    (task,) = load_project(write_project(tmp_path, redo=TASK)).tasks
    assert task.landing.format == "redo"

    wrong = TASK.replace("}", ", quote: x}") + "datasets: [{name: users, path: '*'}]\n"
    with pytest.raises(ConfigErrors) as refused:
        load_project(write_project(tmp_path, redo=wrong))

    quote, path = [str(error) for error in refused.value.errors]
    assert "landing.quote: only for format `csv`" in quote
    assert "datasets[0].path: not for formats `debezium`, `dms`, `redo`, `replicate`" in path
