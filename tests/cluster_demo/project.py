"""The project that the agents share, and the feeder that lands its files little by little."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.cluster_demo.captured import Dataset
from tests.oracle.emit import NATIVE_SETTINGS, native_line

T = TypeVar("T")

SCHEMA = "bank"
#: A batch of a demo is small, and what it copied is applied soon.
QUICK = {"batch": {"max_rows": 200}, "apply": {"max_pending_rows": 100, "min_fraction": 0.0}}
HEAD = {"apiVersion": "polynya/v1"}


def write(folder: Path, config: str, datasets: Sequence[Dataset]) -> None:
    """Write the project file and a task file for each task. JSON is YAML."""
    target = {
        "landing": str(folder / "landing"),
        "warehouse": str(folder / "warehouse"),
        "config": config,
    }
    project = {**HEAD, "kind": "project", "name": SCHEMA, "targets": {"local": target}}
    (folder / "tasks").mkdir(parents=True, exist_ok=True)
    _dump(folder / "polynya.yml", project)
    for task in sorted({one.task for one in datasets}):
        write_task(folder, task, [one for one in datasets if one.task == task])


def write_task(folder: Path, task: str, datasets: Sequence[Dataset]) -> None:
    """Write the file of one task."""
    _dump(
        folder / "tasks" / f"{task}.yml",
        {
            **HEAD,
            "kind": "storage",
            "name": task,
            "schema": SCHEMA,
            "landing": {"path": task, "format": "json"},
            **QUICK,
            "datasets": [_settings(one) for one in datasets],
        },
    )


def _settings(one: Dataset) -> dict[str, Any]:
    place = {"name": one.name, "path": f"{one.name}/*.json"}
    if not one.keyed:
        return {**place, "mode": "append_only"}
    return {**place, **NATIVE_SETTINGS, "keys": ["id"], "history": True}


def lines_of(one: Dataset) -> list[dict[str, Any]]:
    """The records of a dataset as they land."""
    if one.keyed:
        return [native_line(event, ["id"], one.columns) for event in one.events]
    return [
        {"n": event.sequence, "id": event.key[0], "op": event.op, **event.values}
        for event in one.events
    ]


class Feeder:
    """Lands a file for each dataset in turn, one share of all files after the other.

    `pause` is between two files, in seconds.
    """

    def __init__(
        self,
        landing: Path,
        datasets: Sequence[Dataset],
        *,
        files: int,
        shares: int = 1,
        pause: float = 0.1,
    ) -> None:
        self._landing, self._pause = landing, pause
        whole = [
            (one, number, _part(lines_of(one), number, files))
            for number in range(files)
            for one in datasets
        ]
        self._shares = [_part(whole, share, shares) for share in range(shares)]
        self._threads: list[threading.Thread] = []

    def go_on(self) -> None:
        """Begin to land the next share, if there is one."""
        if self._shares:
            share = self._shares.pop(0)
            self._threads.append(threading.Thread(target=self._land, args=(share,), daemon=True))
            self._threads[-1].start()

    def finish(self) -> None:
        """Land all that is left."""
        while self._shares:
            self.go_on()
        for thread in self._threads:
            thread.join()

    def _land(self, share: Sequence[tuple[Dataset, int, list[dict[str, Any]]]]) -> None:
        for one, number, lines in share:
            folder = self._landing / one.task / one.name
            folder.mkdir(parents=True, exist_ok=True)
            whole = folder / f".{number:04}.json"
            whole.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
            whole.rename(folder / f"{number:04}.json")
            time.sleep(self._pause)


def _part(items: list[T], number: int, parts: int) -> list[T]:
    return items[number * len(items) // parts : (number + 1) * len(items) // parts]


def _dump(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1), "utf-8")
