"""YAML blocks of a page, through the real loader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from polynya.derived.query_errors import query_errors
from polynya.model.config.task import StorageTask
from polynya.model.errors import PolynyaError
from polynya.model.formats import rules_of
from polynya.model.loader import load_project
from polynya.model.task_tests import load_tests
from tests.docs.pages import Block
from tests.projects import PROJECT

_TASK_KEYS = {field.alias or name for name, field in StorageTask.model_fields.items()}
_HEAD = {"apiVersion": "polynya/v1", "kind": "storage", "name": "t", "schema": "s"}

#: What pages name instead of secrets.
_VARIABLES = {"KAFKA_PASSWORD": "secret"}


def wrong(blocks: list[Block], folder: Path) -> list[str]:
    """What the loader says against the YAML blocks of a page, each with its line.

    Files of a page are one project; each fragment is a project of its own.
    """
    found = []
    for block in blocks:
        if block.language != "yaml" or block.excuse:
            continue
        project = folder / ("page" if block.file else str(block.line))
        name = block.file or "tasks/t.json"
        try:
            text = block.text if block.file else json.dumps(whole(block.text))
            if not (project / "polynya.yml").exists():
                _write(project, "polynya.yml", PROJECT)
            _write(project, name, text)
            target = Path(name).stem if name.startswith("bindings/") else None
            loaded = load_project(project, target, environment=_VARIABLES)
            errors = [*load_tests(loaded)[1], *query_errors(loaded)]
            found += [f"line {block.line}: {error}" for error in errors]
        except PolynyaError as error:
            found.append(f"line {block.line}: {error}")
    return found


def whole(fragment: str) -> dict[str, Any]:
    """The smallest task that a fragment of a task, or of a dataset, is a part of."""
    part: Mapping[str, Any] = YAML(typ="safe", pure=True).load(fragment)
    if not part.keys() <= _TASK_KEYS:
        part = {"datasets": [part]}
    task = {**_HEAD, "landing": {"path": "t", "format": "json"}, **part}
    if not rules_of(task["landing"]["format"]).finds_tables:
        own = {"name": "t", "keys": ["id"], "sequence_by": ["seq"]}
        task["datasets"] = [own | one for one in task.get("datasets", [{}])]
    return task


def _write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
