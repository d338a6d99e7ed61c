"""What of a unit is unread, as another process tells by its tables: no Spark, the same answer."""

from __future__ import annotations

import itertools
from dataclasses import replace

from polynya.engine.commands.unread import unread_files
from polynya.model.config.task import StorageTask
from polynya.model.loader import load_project
from tests.engine.test_dms_replicate import FIRST, LOAD, Service
from tests.lab.events import land, upsert
from tests.lab.lab import Lab, put


def unread(lab: Lab, task: StorageTask, unit: str) -> dict[str, list[str]]:
    """Names of the unread files by dataset."""
    target = replace(load_project(lab.project).target, landing=lab.landing)
    found = unread_files(target, task, unit)
    return {
        name: [part.path.removeprefix(f"{lab.schema}/") for part in parts]
        for name, parts in found.items()
    }


def test_a_declared_dataset_has_the_files_that_its_table_lacks(lab: Lab) -> None:
    users = lab.feed()
    name = users.dataset.relations.current
    users.land(put(1, 1), file="a.json")
    assert unread(lab, users.task, name) == {name: ["users/a.json"]}

    users.run()
    users.land(put(2, 2), file="b.json")
    users.land(put(3, 3), file="c.json.tmp")

    assert unread(lab, users.task, name) == {name: ["users/b.json"]}


def test_a_task_whose_tables_share_files_has_those_that_its_ledger_lacks(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, upsert(1, 10, name="Ann"))
    capture.run()
    land(capture, upsert(2, 11, name="Ben"))

    (files,) = unread(lab, capture.task, capture.task.name).values()

    assert len(files) == 1


def test_a_task_that_finds_its_tables_by_folders_has_those_of_each(lab: Lab) -> None:
    dms = Service(lab, "dms", defaults={"keys": ["id"]}, landing={"timestamp_column": "ts"})
    dms.land(f"s/users/{LOAD}.csv", "ts,id,name", "2026-01-01 00:00:05,1,Ann")
    assert dms.run().failures == {}
    dms.land(f"s/users/{FIRST}.csv", "Op,ts,id,name", "I,2026-01-01 00:00:01,3,Cid")
    dms.land(f"s/lakes/{LOAD}.csv", "ts,id,name", "2026-01-01 00:00:05,1,Nile")

    found = unread(lab, dms.task, dms.task.name)

    assert sorted(itertools.chain(*found.values())) == [
        f"s/lakes/{LOAD}.csv",
        f"s/users/{FIRST}.csv",
    ]
