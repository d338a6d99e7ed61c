"""The task that a floor measures, and a project folder for the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.floors.records import Kind

SCHEMA = "bench"
PROJECT = {
    "apiVersion": "polynya/v1",
    "kind": "project",
    "name": "bench",
    "targets": {"local": {"landing": "./landing", "warehouse": "./warehouse"}},
}


def task(name: str, kind: Kind, *, history: bool = False, schema: str = SCHEMA) -> dict[str, Any]:
    """A task with one dataset of its name: `load/` holds the first load, `changes/` the events."""
    dataset = {
        "name": name,
        "path": "changes/*",
        "initial_load": "load/*",
        "keys": ["id"],
        "sequence_by": ["seq"],
        "timestamp": "ts",
        "apply_as_deletes": "op = 'D'",
        "except_columns": ["op"],
        "history": history,
    }
    return {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": name,
        "schema": schema,
        "landing": {"path": name, "format": kind},
        "datasets": [dataset],
    }


def write_project(folder: Path, *tasks: dict[str, Any]) -> Path:
    """Write a project folder; JSON is YAML."""
    (folder / "tasks").mkdir(parents=True)
    (folder / "landing").mkdir()
    (folder / "polynya.yml").write_text(json.dumps(PROJECT))
    for one in tasks:
        (folder / "tasks" / f"{one['name']}.yml").write_text(json.dumps(one))
    return folder
