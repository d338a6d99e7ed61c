"""JSON Schema of the files of a project, generated from the models, for editors and other tools.

A test checks the published copies in `polynya/schema/`; `python -m polynya.model.json_schema`
rewrites them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Union

from pydantic import BaseModel, TypeAdapter

from polynya.model.config.access import AccessDocument
from polynya.model.config.automation import Automation
from polynya.model.config.bindings import Bindings
from polynya.model.config.notification import Notification
from polynya.model.config.target import Project
from polynya.model.config.task_kinds import FILE_KINDS
from polynya.model.config.task_tests import TaskTests
from polynya.model.connection_kinds import CONNECTION_MODELS

#: The models of each file: one, or one for each `kind`.
SCHEMA_FILES: Final[dict[str, tuple[type[BaseModel], ...]]] = {
    "project.v1.json": (Project,),
    "task.v1.json": tuple(FILE_KINDS.values()),
    "automation.v1.json": (Automation,),
    "tests.v1.json": (TaskTests,),
    "connection.v1.json": CONNECTION_MODELS,
    "bindings.v1.json": (Bindings,),
    "notification.v1.json": (Notification,),
    "access.v1.json": (AccessDocument,),
}
PUBLISHED: Final = Path(__file__).parents[1] / "schema"


def schema_of(model: type[BaseModel], file: str) -> dict[str, Any]:
    """Return the JSON Schema of a model as editors want it: draft-07, with a title and no nulls.

    pydantic writes `anyOf: [X, null]` for an optional setting. In a file a setting is optional by
    leaving it out; a null is allowed but nothing that an editor should propose.
    """
    return _headed(model.model_json_schema(by_alias=True), file)


def schema_of_kinds(models: Sequence[type[BaseModel]], file: str) -> dict[str, Any]:
    """Return the JSON Schema of a file that is of one of several kinds; see `schema_of`."""
    any_of_them: Any = Union[tuple(models)]  # noqa: UP007 - made of a list
    schema = TypeAdapter(any_of_them).json_schema(by_alias=True)
    return _headed({"oneOf": schema.pop("anyOf"), **schema}, file)


def schema_text(file: str) -> str:
    """Return the published text of one of SCHEMA_FILES."""
    models = SCHEMA_FILES[file]
    one = len(models) == 1
    schema = schema_of(models[0], file) if one else schema_of_kinds(models, file)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> list[Path]:
    """Write all schema files to a folder, which is created; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file in SCHEMA_FILES:
        path = folder / file
        path.write_text(schema_text(file), encoding="utf-8")
        paths.append(path)
    return paths


def outdated_schemas(folder: Path) -> list[Path]:
    """Return the schema files of a folder that are missing or not what the models say."""
    return [
        folder / file
        for file in SCHEMA_FILES
        if not (folder / file).is_file()
        or (folder / file).read_text(encoding="utf-8") != schema_text(file)
    ]


def _headed(schema: dict[str, Any], file: str) -> dict[str, Any]:
    title = f"Polynya {file.split('.', maxsplit=1)[0]} file"
    head = {"$schema": "http://json-schema.org/draft-07/schema#"}
    return {**head, **_without_nulls(schema), "title": title}


def _without_nulls(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_nulls(item) for item in node]
    if not isinstance(node, dict):
        return node
    cleaned = {key: _without_nulls(value) for key, value in node.items() if key != "title"}
    if isinstance(node.get("title"), dict):
        cleaned["title"] = _without_nulls(node["title"])
    if cleaned.get("default", 0) is None:
        del cleaned["default"]
    options = cleaned.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        kept = [option for option in options if option != {"type": "null"}]
        del cleaned["anyOf"]
        cleaned |= kept[0] if len(kept) == 1 else {"anyOf": kept}
    return cleaned


if __name__ == "__main__":
    write_schemas(PUBLISHED)
