"""One dataset of random events in two tables: one folded by the fast applier, one by the plain one.

Rows of the first are made in Arrow where they can be, those of the second always by SQL.

Each landed step is read by the real readers and copied into both tables at the same moment of a
fake clock, so that the tables must be equal to the microsecond. The views are compared with the
independent fold.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pytest

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import DatasetBatch, FilePart
from polynya.formats.registry import format_of
from polynya.lake.apply.apply import Applier, ApplyResult
from polynya.lake.apply.collected import FEW_EVENTS
from polynya.lake.apply.fast import FastApplier
from polynya.lake.apply.removal import Rewriting
from polynya.lake.copy.copy import copy_batch
from polynya.lake.maintenance import rewrite_data_files as data_files
from polynya.lake.maintenance import rewrite_deletes, rewrite_plan
from polynya.lake.maintenance.base import ActionLimits, ActionOutcome
from polynya.lake.maintenance.rewrite_data_files import rewrite_data_files
from polynya.lake.maintenance.rewrite_deletes import rewrite_position_delete_files
from polynya.lake.read.catalog_views import publish_views
from polynya.lake.read.inspect import load, shape
from polynya.lake.read.query import run_query
from polynya.lake.read.values import json_rows
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.table.dataset import DatasetTable
from polynya.lake.table.ownership import enter
from polynya.model.config.task import StorageTask, resolved
from polynya.model.loader import load_project
from polynya.query.embedded import STATEMENT_LIMITS, answer_here
from polynya.query.live_rows import Live
from polynya.query.translate import NotEmbeddedError
from polynya.testing.fakes import MemoryObjectStore
from tests.lab.lab import Lab
from tests.lake.apply.plain import PlainApplier
from tests.oracle.fold import UPSERT
from tests.oracle.packs.datasets import Dataset
from tests.oracle.values import canonical

#: JSON of the engine and raw lines, which name the schema: they differ between the tables.
_OWN = frozenset({"hdr__state", "hdr__quarantine"})
#: What tells one row of a table from another, beside its key.
_PLACE = ("hdr__partition", "hdr__change_identifier", "hdr__operation")
#: Who writes files again: the driver, or tasks.
WRITERS = ["driver", pytest.param("tasks", marks=pytest.mark.slow)]
#: No data file that loses rows is written again, or every one.
NEVER_AGAIN, ALWAYS_AGAIN = Rewriting(share=2), Rewriting(share=0)


class Twin:
    """One of the two tables."""

    def __init__(
        self, lab: Lab, events: Dataset, applier: Applier, *, in_arrow: bool = True
    ) -> None:
        self.lab = lab
        self.events = events
        self.applier = applier
        self.in_arrow = in_arrow
        self.table = DatasetTable.open(lab.spark, self.dataset, "a twin")
        self.embedded = 0
        self.left_to_spark: list[str] = []

    @cached_property
    def task(self) -> StorageTask:
        """The task that the events land for."""
        landing = self.events.landing()
        dataset = {"name": landing.name, **landing.settings}
        if landing.format == "debezium":
            dataset["source"] = f"{landing.schema}.{landing.name}"
        document = {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": landing.schema,
            "schema": landing.schema,
            "landing": {"path": landing.schema, "format": landing.format},
            "datasets": [dataset],
        }
        return StorageTask.model_validate(document)

    @cached_property
    def dataset(self) -> Any:
        """The dataset with every setting final."""
        return resolved(self.task, self.task.datasets[0])

    def read(self, step: int) -> DatasetBatch | None:
        """One step as its file is read; None when no record is of this dataset."""
        lines = self.events.landing().steps[step]
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        name = f"step{step}.json"
        store, part = MemoryObjectStore({name: data}), FilePart(name, len(data))
        known = KnownTable(self.dataset, self.table.known_schema(), self.table.known_keys())
        request = ReadRequest(store, [part], {known.source: known})
        return format_of(self.task).read(request).datasets.get(known.source)

    def copy(self, step: int) -> None:
        """Copy one step."""
        batch = self.read(step)
        if batch is not None:
            enter(self.table)
            now = self.lab.clock.now()
            copy_batch(self.table, batch, self.applier, now=now, in_arrow=self.in_arrow)
            publish_views(self.table, self.table.shape())

    def apply(self) -> None:
        """Fold what is pending."""
        if self.table.state.copy.columns.schema:
            now = self.lab.clock.now()
            self.applier.apply(self.table, self.table.shape(), reason="a test", now=now)

    def mismatches(self, steps: int) -> list[str]:
        """What differs between the views and the fold of the first steps."""
        if not any(event.op == UPSERT for event in self.events.landed(steps)):
            return []  # the columns that the statements name are not known yet
        results = [run_query(self.lab.spark, text) for text in self.events.statements()]
        return [*self.events.mismatches(results, steps), *self._otherwise_embedded(results)]

    def _otherwise_embedded(self, results: Sequence[list[dict[str, Any]]]) -> list[str]:
        """What the embedded engine answers in another way than Spark."""
        catalog = python_catalog(load_project(self.lab.project, tolerant=True).target)

        def view(name: str) -> Live:
            table = load(catalog, self.dataset)
            assert table is not None
            return Live(name.partition(".")[2], self.dataset, shape(table, self.dataset), table)

        found = []
        for statement, rows in zip(self.events.statements(), results, strict=True):
            try:
                _, batches = answer_here(statement, view, limit=None, limits=STATEMENT_LIMITS)
            except NotEmbeddedError as reason:
                self.left_to_spark.append(str(reason))
                continue
            self.embedded += 1
            own = [row for batch in batches for row in json_rows(batch)]
            if sorted(map(repr, own)) != sorted(map(repr, rows)):
                found.append(f"{statement}: the embedded engine has {own}, Spark {rows}")
        return found

    def contents(self) -> dict[str, dict[str, Any]]:
        """Every row of the internal table but the engine's own notes, by partition and identity."""
        frame = self.lab.spark.sql(
            f"SELECT * FROM {self.table.table.quoted} WHERE hdr__partition <> 'asset_state'"
        )
        rows = [
            {name: canonical(row[name]) for name in sorted(row) if name not in _OWN}
            for row in frame.toArrow().to_pylist()
        ]
        found: dict[str, dict[str, Any]] = {}
        # An event that was delivered twice is there twice, in whatever order the files are read.
        for kept in sorted(rows, key=str):
            place = [kept[name] for name in (*_PLACE, *self.events.keys)]
            copies = sum(name.startswith(str(place)) for name in found)
            found[f"{place} {copies}"] = kept
        return found


class _EveryWay(FastApplier):
    """The fast applier, which begins with another way at each apply, and removes rows otherwise."""

    def __init__(self, *, rewritten: bool) -> None:
        super().__init__()
        self._rewritten = rewritten
        self._turns = itertools.cycle([(True, FEW_EVENTS), (False, 0), (False, FEW_EVENTS)])
        self._removing = itertools.cycle([NEVER_AGAIN, ALWAYS_AGAIN])

    def apply(self, target: DatasetTable, *parts: Any, **how: Any) -> ApplyResult:
        """See `Applier.apply`."""
        self._in_memory, self._few_events = next(self._turns)
        self._rewriting = next(self._removing)
        result = super().apply(target, *parts, **how)
        if self._rewritten:
            rewrite_all(target, how["now"])
        return result


def written_by(whom: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the driver, or tasks, write files again, however small they are."""
    least = 0 if whom == "tasks" else sys.maxsize
    monkeypatch.setattr(rewrite_plan, "LARGE_BYTES", least)
    # Also a single group.
    monkeypatch.setattr(rewrite_plan, "MIN_LOCAL_TASKS", 1)


def rewrite_all(target: DatasetTable, now: datetime) -> Sequence[ActionOutcome]:
    """Join all delete files of a table, then write again what can be joined or has deleted rows."""
    limits = ActionLimits(now)
    joined = rewrite_position_delete_files(target, limits, rewrite_deletes.RULE.thorough())
    written = rewrite_data_files(target, limits, data_files.RULE.thorough())
    assert joined.whole, joined.why
    assert written.whole, written.why
    return joined, written


class Twins:
    """Both tables, and what was found to be wrong.

    `rewritten`: the files of the fast one are written again after each apply.
    """

    def __init__(self, lab: Lab, events: Dataset, *, rewritten: bool = False) -> None:
        self.lab = lab
        every = _EveryWay(rewritten=rewritten)
        self.fast = Twin(lab, replace(events, schema=f"{lab.schema}_fast"), every)
        events = replace(events, schema=f"{lab.schema}_plain")
        self.plain = Twin(lab, events, PlainApplier(), in_arrow=False)
        self.found: list[str] = []

    def live_through(self, steps: Sequence[str]) -> list[str]:
        """Copy a step for each word, apply after those that say so; return all that is wrong."""
        for number, word in enumerate(steps):
            for twin in (self.fast, self.plain):
                twin.copy(number)
            self._check(number + 1, "copied")
            if word == "apply":
                for twin in (self.fast, self.plain):
                    twin.apply()
                self._check(number + 1, "applied")
        return self.found

    def _check(self, steps: int, moment: str) -> None:
        """Equal tables have equal views, so that those of one are enough."""
        self.lab.clock.sleep(60)
        self.found += [f"{moment}: {text}" for text in self.fast.mismatches(steps)]
        fast, plain = self.fast.contents(), self.plain.contents()
        for place in sorted(fast.keys() | plain.keys()):
            one, other = fast.get(place), plain.get(place)
            if one != other:
                text = difference(one, other)
                self.found.append(f"{moment}, step {steps}: row {place}: {text}")


def difference(fast: dict[str, Any] | None, plain: dict[str, Any] | None) -> str:
    """In what two rows differ."""
    if fast is None or plain is None:
        return "only plain has it" if fast is None else "only fast has it"
    names = [name for name in fast if fast[name] != plain[name]]
    return ", ".join(f"{name} is {fast[name]} in fast, {plain[name]} in plain" for name in names)
