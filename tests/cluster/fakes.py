"""Workers that do as they are told, and the files of a small project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from polynya.cluster.configuration import WantedTask
from polynya.cluster.unit import JobKey
from polynya.engine.backlog import Backlog
from polynya.engine.commands.unit_command import UnitCommand
from polynya.model.config.task import StorageTask
from polynya.model.config.task_kinds import Task
from polynya.observe.engine import BatchCopied
from polynya.observe.maintenance import TableHealth
from polynya.store.configuration import ConfigurationSnapshot, identity_of

PROJECT = """apiVersion: polynya/v1
kind: project
name: shop
targets: {local: {landing: landing, warehouse: warehouse}}
"""
TASK = """apiVersion: polynya/v1
kind: storage
name: NAME
schema: shop
landing: {path: NAME, format: json}
datasets:
  - {name: TABLE, path: "*.json", keys: [id], sequence_by: [at]}
"""
BROKEN = "apiVersion: polynya/v1\nkind: storage\nname: [\n"


def task(name: str, table: str | None = None) -> str:
    return TASK.replace("NAME", name).replace("TABLE", table or name)


def snapshot(files: Mapping[str, str]) -> ConfigurationSnapshot:
    content = {path: text.encode() for path, text in files.items()}
    return ConfigurationSnapshot(identity_of(content), content)


GOOD = {"polynya.yml": PROJECT, "tasks/a.yml": task("a"), "tasks/b.yml": task("b")}


def a_batch_of(records: int) -> BatchCopied:
    """What a job says of a batch whose records are all good."""
    return BatchCopied(
        subject="shop.a",
        rows_in=records,
        rows_out=records,
        rows_filtered=0,
        rows_quarantined=0,
        files=1,
        seconds=1.0,
    )


def a_look(subject: str, health_percent: int) -> TableHealth:
    """What a job says of the shape of a table."""
    return TableHealth(
        subject=subject,
        health_percent=health_percent,
        files=1,
        average_bytes=1,
        delete_files=0,
        deleted_share=0.0,
        manifests=1,
        metadata_bytes=1,
        snapshots=1,
        rows_not_optimised=10,
        removed_orphan_bytes=100,
    )


class FakeRun:
    """A job that works until it is told to stop."""

    def __init__(self, job: JobKey, number: int, backlog: Backlog, epoch: int | None) -> None:
        self.job, self.number, self.backlog, self.stopped = job, number, backlog, False
        self.epoch = epoch
        self.command: UnitCommand | None = None

    def stop(self) -> None:
        self.stopped = True


class FakeWorkers:
    """Remembers what was started."""

    def __init__(self) -> None:
        self.runs: list[FakeRun] = []
        self.busy = 0.0
        self.known: Sequence[Task] | None = None
        self.hinted: set[str] = set()

    def know(self, tasks: Sequence[Task] | None) -> None:
        self.known = tasks

    def landed(self, starts: Iterable[str]) -> None:
        self.hinted.update(starts)

    def jobs(self, task: Task) -> list[str]:
        if not isinstance(task, StorageTask):
            return [task.name]
        return [f"{task.schema_}.{dataset.name}" for dataset in task.datasets]

    def start(
        self, job: JobKey, task: Task, run: int, backlog: Backlog, epoch: int | None
    ) -> FakeRun:
        self.runs.append(FakeRun(job, run, backlog, epoch))
        return self.runs[-1]

    def send(
        self, job: JobKey, task: StorageTask, run: int, command: UnitCommand, epoch: int | None
    ) -> FakeRun:
        started = self.start(job, task, run, Backlog(), epoch)
        started.command = command
        return started

    def busy_seconds(self) -> float:
        return self.busy

    def alive(self) -> bool:
        return True


def wanted(name: str, *datasets: str, version: str = "v1") -> WantedTask:
    document = {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": name,
        "schema": "shop",
        "landing": {"path": name, "format": "json"},
        "datasets": [
            {"name": dataset, "path": "*", "keys": ["id"], "sequence_by": ["at"]}
            for dataset in datasets or (name,)
        ],
    }
    return WantedTask(StorageTask.model_validate(document), f"tasks/{name}.yml", version)
