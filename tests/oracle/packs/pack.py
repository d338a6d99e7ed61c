"""Many datasets in one project folder, landed step by step: a JVM start is dear, a dataset is not.

A `Pack` knows its datasets, writes `polynya.yml`, the task files (JSON is YAML) and the landed
files of each step, and runs the steps through the driver. It knows nothing of what is expected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle.packs.driver import CommandFailed, Driver

Lines = Sequence[Any]
WRITERS = {"json": ".json", "debezium": ".jsonl"}


@dataclass(frozen=True)
class Landing:
    """One dataset of a pack: its task settings and the records that each step lands.

    A step is one file of records, or several by their names.
    """

    schema: str
    name: str
    steps: Sequence[Lines | Mapping[str, Lines]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    load: Lines = ()
    format: str = "json"

    @property
    def folder(self) -> str:
        """Folder of the landed files below the landing root."""
        return f"{self.schema}/{self.name}" if self.format == "json" else self.schema

    @property
    def view(self) -> str:
        """Name of the Current view."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Pack:
    """A project folder with many datasets."""

    directory: Path
    landings: Sequence[Landing]
    task: Mapping[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Number of steps until everything has landed."""
        return max(len(landing.steps) for landing in self.landings)

    def write_project(self) -> None:
        """Write the configuration: one task per schema."""
        targets = {"local": {"landing": "./landing", "warehouse": "./warehouse"}}
        project = {
            "apiVersion": "polynya/v1",
            "kind": "project",
            "name": "pack",
            "targets": targets,
        }
        tasks = self.directory / "tasks"
        tasks.mkdir(parents=True, exist_ok=True)
        _write_json(self.directory / "polynya.yml", project)
        for schema in dict.fromkeys(landing.schema for landing in self.landings):
            mine = [landing for landing in self.landings if landing.schema == schema]
            _write_json(tasks / f"{schema}.yml", self._task(schema, mine))
            for landing in mine:
                (self.directory / "landing" / landing.folder).mkdir(parents=True, exist_ok=True)

    def _task(self, schema: str, mine: Sequence[Landing]) -> dict[str, Any]:
        head = {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": schema,
            "schema": schema,
            "landing": {"path": schema, "format": mine[0].format},
            **self.task,
        }
        if mine[0].format == "debezium":
            return {
                **head,
                "include": [f"{schema}.*"],
                "datasets": [
                    {"name": one.name, "source": f"{schema}.{one.name}", **one.settings}
                    for one in mine
                ],
            }
        loads = {one.name: {"initial_load": f"{one.name}/load/*.json"} for one in mine if one.load}
        return {
            **head,
            "datasets": [
                {
                    "name": one.name,
                    "path": f"{one.name}/*.json",
                    **loads.get(one.name, {}),
                    **one.settings,
                }
                for one in mine
            ],
        }

    def land(self, step: int) -> None:
        """Write the files of one step, counted from 0; a dataset without records gets no file."""
        root = self.directory / "landing"
        for landing in self.landings:
            folder = root / landing.folder
            if step == 0 and landing.load:
                write_lines(folder / "load" / "0001.json", landing.load)
            lines = landing.steps[step] if step < len(landing.steps) else ()
            if isinstance(lines, Mapping):
                for name, records in lines.items():
                    write_lines(folder / name, records)
            elif lines:
                name = "" if landing.format == "json" else f"_{landing.name}"
                ending = WRITERS[landing.format]
                write_lines(folder / f"step{step:04d}{name}{ending}", lines)

    def run(
        self,
        driver: Driver,
        apply: Callable[[int], str],
        *,
        after: Callable[[int], None] | None = None,
        failed: dict[str, str] | None = None,
    ) -> None:
        """Land and process every step: `apply(step)` says how, `after(step)` looks at it.

        With `failed`, datasets that a run gives up on are noted there and the rest goes on.
        """
        self.write_project()
        for step in range(self.steps):
            self.land(step)
            try:
                driver.run_project(self.directory, apply(step))
            except CommandFailed as error:
                if failed is None or not error.failed:
                    raise
                failed.update(error.failed)
            if after is not None:
                after(step)


def alternating(step: int) -> str:
    """never, always, never, …: half the steps fold into tables that hold pending changes."""
    return "always" if step % 2 else "never"


def write_lines(path: Path, lines: Lines) -> None:
    """Write records as JSON lines, the whole file or nothing; text stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [
        line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines
    ]
    partial = path.with_name(path.name + ".tmp")
    partial.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    partial.rename(path)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
