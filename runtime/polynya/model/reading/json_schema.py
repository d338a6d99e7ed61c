"""JSON Schema of project, task and test files, made from the models, for editors and other tools.

The published copies in `polynya/schema/` are checked by a test;
`python -m polynya.model.reading.json_schema` writes them again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from polynya.model.config.project import Project
from polynya.model.config.task import StorageTask
from polynya.model.config.task_tests import TaskTests

SCHEMA_FILES: Final[dict[str, type[BaseModel]]] = {
    "project.v1.json": Project,
    "task.v1.json": StorageTask,
    "tests.v1.json": TaskTests,
}
PUBLISHED: Final = Path(__file__).parents[2] / "schema"


def schema_of(model: type[BaseModel], file: str) -> dict[str, Any]:
    """Return the JSON Schema of a model as editors want it: draft-07, with a title and no nulls.

    pydantic writes `anyOf: [X, null]` for an optional setting. In a file a setting is optional by
    leaving it out; a null is allowed but nothing that an editor should propose.
    """
    schema = model.model_json_schema(by_alias=True)
    cleaned = _without_nulls(schema)
    title = f"Polynya {file.split('.', maxsplit=1)[0]} file"
    return {"$schema": "http://json-schema.org/draft-07/schema#", **cleaned, "title": title}


def schema_text(file: str) -> str:
    """Return the published text of one of SCHEMA_FILES."""
    return json.dumps(schema_of(SCHEMA_FILES[file], file), indent=2, ensure_ascii=False) + "\n"


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
