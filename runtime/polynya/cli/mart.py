"""`polynya mart`: data marts as they are proposed, and the transforms that they become."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from polynya.cli.context import Context, command_group, select_storage
from polynya.cli.exit_codes import ExitCode
from polynya.cli.visible import visible
from polynya.model.config.derived import DerivedQuery, DerivedTask
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import FILES_IN_THE_WAY, WRONG_USAGE
from polynya.model.error_catalogue.marts import MART_NOT_PROPOSED
from polynya.model.loader import LoadedProject
from polynya.model.names import check_name, shown

app = command_group("mart", "Data marts: propose one, and show the transforms that it becomes.")

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


@app.command
def propose(
    *tasks: str,
    name: str = "mart",
    out: Path | None = None,
    all_: Annotated[bool, Parameter(name="--all")] = False,
    output: Annotated[Literal["text", "json"], Parameter(name=("--output", "-o"))] = "text",
    context: Context,
) -> int:
    """Propose a data mart over the tables of some tasks: relationships, dimensions and facts.

    Looks at keys, names, types and values of the tables, and says the reason of each line. A
    relationship is `strong` if a column has the name of a key or of its table, and nearly all of
    its values are there; `likely` if one of both is less sure; `weak`, and written as a comment, if
    only the values speak for it. Prints the file, and writes it only with `--out`. Needs no Java:
    large tables are judged without their values.

    For example: `polynya mart propose shop --name sales --out tasks/sales.yml`.

    Args:
        tasks: names of tasks with tables; globs work. Default: all tasks except data marts.
        name: name of the mart.
        out: the file to write, which does not exist yet; default: print it.
        all_: show rejected relationships too, as comments with the reason.
        output: `text` (default), or `json` with every relationship that was looked at.
    """
    check_name(name, what="name of the mart")
    project = context.load(tolerant=True)
    if project.kind_of(name) is not None:
        raise WRONG_USAGE(f"a task is called {shown(name)} already", fix="choose another `--name`")
    marts = {mart.name for mart in marts_of(project)}
    chosen = [one for one in select_storage(project, tasks) if tasks or one.name not in marts]
    # Start-up time: PyIceberg and pyarrow.
    from polynya.engine.commands.propose_mart import judged_references, mart_problems
    from polynya.proposal.mart_file import proposed_mart

    found = judged_references(project, chosen)
    made = proposed_mart(
        name, [task.name for task in chosen], found.tables, found.references, shows_rejected=all_
    )
    data = {
        "name": name,
        "file": None if out is None else str(out),
        "text": made.text,
        "relationships": [
            {
                "from": one.reference.child,
                "to": one.reference.parent,
                "on": dict(zip(one.reference.columns, one.reference.keys, strict=True)),
                "confidence": one.confidence.value,
                "reasons": list(one.reasons),
            }
            for one in found.references
        ],
        "dimensions": made.dimensions,
        "facts": made.facts,
        "left_out": made.left_out,
    }
    if not made.dimensions and not all_ and output == "text":
        raise MART_NOT_PROPOSED(count=len(found.tables))
    for problem in mart_problems(project, made.text) if made.dimensions else ():
        context.output.warning(visible(f"to be corrected: {problem}"))
    if out is not None:
        _write_new(out, made.text)
    text = json.dumps(data, indent=2) if output == "json" else made.text.rstrip("\n")
    said = (
        text
        if out is None
        else f"{out}: {len(made.facts)} facts, {len(made.dimensions)} dimensions"
    )
    context.output.result("mart.proposal", data, visible(said))
    return ExitCode.OK if made.dimensions else ExitCode.FAILED


def _write_new(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise FILES_IN_THE_WAY(
            f"cannot write {error.filename}: {error.strerror}",
            where=str(file),
            fix="choose a file that does not exist yet",
        ) from error


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
