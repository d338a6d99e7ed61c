"""`polynya mart`: the transforms that a data mart becomes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from polynya.cli.context import Context, command_group
from polynya.cli.visible import visible
from polynya.model.config.derived import DerivedQuery, DerivedTask
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.loader import LoadedProject
from polynya.model.names import shown

app = command_group("mart", "Data marts: the transforms that they become.")

#: Settings of a task that a transform has, too.
_TASK_SETTINGS = {"prefix", "internal_schema", "views", "engine", "cluster"}


@app.command
def show(name: str, /, *, context: Context) -> None:
    """Show the transforms that a data mart becomes, with their SQL, or the SQL of one table.

    The text is what a run executes. Saved as files of `tasks/` in place of the mart, it keeps the
    same tables. Needs no Java and no tables.

    For example: `polynya mart show sales.customer`.

    Args:
        name: a data mart, or one of its tables as `mart.table`.
    """
    project = context.load(tolerant=True)
    marts = {task.name: task for task in marts_of(project)}
    tables = {f"{mart}.{one}": query for mart, task in marts.items()
              for one, query in task.queries.items()}  # fmt: skip
    if name in tables:
        sql = tables[name].text
        context.output.result("mart", {"name": name, "sql": sql}, visible(sql))
        return
    if name not in marts:
        fix = suggest(name, [*marts, *tables]) or "no task has `kind: data_mart` yet"
        raise WRONG_USAGE(f"{shown(name)} is not a data mart or one of its tables", fix=fix)
    for task, text in transforms_of(marts[name]).items():
        context.output.result("mart", {"name": task, "transform": text}, visible(text.rstrip("\n")))


def marts_of(project: LoadedProject) -> Iterator[DerivedTask]:
    """Yield the data marts of a project."""
    for task in project.tasks:
        if isinstance(task, DerivedTask) and any(map(_is_of_mart, task.queries.values())):
            yield task


def _is_of_mart(query: DerivedQuery) -> bool:
    return query.path[:1] == ("dimensions",)


def transforms_of(mart: DerivedTask) -> dict[str, str]:
    """The task files of the transforms that a data mart becomes, by the names of the tasks.

    Facts that read dimensions are a transform of their own, after that of the dimensions.
    """
    after = [name for name, query in mart.queries.items() if query.reads_own]
    before = [name for name in mart.queries if name not in after]
    sources = [task.name for task in mart.reads if task.name != mart.name]
    if not after:
        return {mart.name: _file(mart, mart.name, sources, before)}
    first = f"{mart.name}_dimensions"
    return {
        first: _file(mart, first, sources, before),
        mart.name: _file(mart, mart.name, [*sources, first], after),
    }


def _file(mart: DerivedTask, name: str, sources: list[str], tables: list[str]) -> str:
    """One task file, as YAML with its queries as blocks."""
    settings = mart.model_dump(
        mode="json", by_alias=True, exclude_unset=True, include=_TASK_SETTINGS
    )
    lines = [
        f"# tasks/{name}.yml",
        "apiVersion: polynya/v1",
        "kind: transform",
        f"name: {name}",
        f"from: [{', '.join(sources)}]",
        f"schema: {mart.schema_}",
        *_settings(settings),
        "datasets:",
    ]
    for dataset in mart.datasets:
        if dataset.name in tables:
            written = dataset.model_dump(mode="json", by_alias=True, exclude_unset=True)
            del written["name"], written["mode"]
            if mart.queries[dataset.name].incremental != "auto":
                written["incremental"] = mart.queries[dataset.name].incremental
            lines += [f"  - name: {dataset.name}"]
            lines += [f"    {line}" for line in _settings(written)]
            lines += ["    sql: |-"]
            lines += [f"      {line}" for line in mart.queries[dataset.name].text.split("\n")]
    return "\n".join(lines) + "\n"


def _settings(settings: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each setting; JSON is YAML."""
    for key, value in settings.items():
        yield f"{key}: {json.dumps(value, ensure_ascii=False)}"
