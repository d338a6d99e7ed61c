"""`polynya flow`: a flow of a transform as text, as a picture and as SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from polynya.cli.context import Context, command_group
from polynya.cli.visible import visible
from polynya.model.config.derived import DerivedTask
from polynya.model.config.task import resolved
from polynya.model.documents.problems import suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.flows import FLOW_TABLE_EMPTY
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown

if TYPE_CHECKING:
    from polynya.derived.flow import CompiledFlow
    from polynya.derived.schema import DerivedInput

app = command_group("flow", "Flows of transforms: their steps, columns and SQL.")


@app.command
def show(
    dataset: str,
    *,
    output: Annotated[
        Literal["text", "svg", "sql", "json"], Parameter(name=("--output", "-o"))
    ] = "text",
    context: Context,
) -> None:
    """Show the steps of a flow with what each reads and its columns, or the SQL that it becomes.

    Reads the columns of its tables from the catalog, and checks the flow against them: an error has
    the file, the line and the column. Needs no Java.

    For example: `polynya flow show sales.people -o svg`.

    Args:
        dataset: the table that the flow makes, as `task.dataset` or `schema.table`.
        output: `text` (default), `svg` for a picture, `sql` for the query, or `json`.
    """
    project = context.load(tolerant=True)
    # Start-up time: sqlglot.
    from polynya.derived.drawing import flow_facts, flow_svg, flow_text

    task, name = task_of(project, dataset)
    flow = compiled(project, task, name, derived_inputs(project, task))
    facts = flow_facts(flow)
    texts = {
        "text": lambda: flow_text(flow),
        "svg": lambda: flow_svg(flow, dataset),
        "sql": lambda: flow.sql,
        "json": lambda: json.dumps(facts, indent=2, ensure_ascii=False),
    }
    context.output.result(
        "flow", {"dataset": dataset, **facts}, visible(texts[output]().rstrip("\n"))
    )


def task_of(project: LoadedProject, name: str) -> tuple[DerivedTask, str]:
    """The transform and the dataset with a flow that have a name.

    Raises ConfigError for a name that no dataset has, and for one without a flow.
    """
    known: dict[str, tuple[DerivedTask, str]] = {}
    for task in project.tasks:
        if isinstance(task, DerivedTask):
            for dataset in task.datasets:
                known[f"{task.name}.{dataset.name}"] = task, dataset.name
                known.setdefault(resolved(task, dataset).relations.current, (task, dataset.name))
    flows = [one for one, (task, dataset) in known.items() if task.query_of(dataset).flow]
    if name not in flows:
        what = "has no flow" if name in known else "is not a dataset of a transform"
        fix = suggest(name, flows) or "no transform has a `flow` yet"
        raise WRONG_USAGE(f"{shown(name)} {what}", fix=fix)
    return known[name]


def compiled(
    project: LoadedProject,
    task: DerivedTask,
    dataset: str,
    tables: Mapping[str, DerivedInput | None],
) -> CompiledFlow:
    """The flow of a dataset over the tables of its transform; None is one without columns yet.

    Raises ConfigErrors with the places in its file.
    """
    # Start-up time: sqlglot.
    from polynya.derived.flow import compile_flow, tables_read

    query = task.query_of(dataset)

    def where(path: NodePath) -> str:
        return project.where(task.name, *query.path, *path)

    there = {name: table for name, table in tables.items() if table is not None}
    named = tables_read(query.flow)
    read: Mapping[str, NodePath] = dict.fromkeys(tables, ()) if named is None else named
    for name, path in read.items():
        empty = [one for one in tables if name in {one, one.rpartition(".")[2]}]
        if empty and not any(one in there for one in empty):
            raise FLOW_TABLE_EMPTY(where=where(path), table=shown(empty[0]))
    return compile_flow(query.flow, there, where)


def derived_inputs(
    project: LoadedProject, task: DerivedTask, *, with_history: bool = False
) -> dict[str, DerivedInput | None]:
    """The tables that a transform may read, by `schema.table`, as the catalog has them.

    `with_history`: also the versions of those that keep history, by the name of the view.
    """
    # Start-up time: PyIceberg.
    from polynya.derived.schema import DerivedInput
    from polynya.engine.inventory import tables_of
    from polynya.engine.project_views import ProjectViews, registered_view
    from polynya.lake.fold.live_views import columns_of_history_input
    from polynya.lake.read.inspect import shape
    from polynya.lake.spark.catalog import python_catalog
    from polynya.query.translate import NotEmbeddedError

    catalog = python_catalog(project.target)
    found: dict[str, DerivedInput | None] = {}
    for read in task.reads:
        for entry in tables_of(read, catalog):
            if entry.is_ledger:
                continue
            now = None if entry.table is None else shape(entry.table, entry.dataset)
            found[entry.name] = (
                DerivedInput(
                    entry.name, {name: str(kind) for name, kind in now.columns.items()}, now.keys
                )
                if now is not None and now.columns
                else None
            )
            if with_history and entry.dataset.kept.history:
                relations = entry.dataset.relations
                name = f"{relations.schema}.{relations.history_view}"
                found[name] = None
                if now is not None and now.columns:
                    of_history = columns_of_history_input(now)
                    found[name] = DerivedInput(
                        name, {one: str(kind) for one, kind in of_history.items()}
                    )
    views = ProjectViews(project)
    for other in task.registered:
        for dataset in other.datasets():
            name = dataset.relations.current
            try:
                types = registered_view(project, views, dataset).types
            except (NotEmbeddedError, PolynyaError):
                # `doctor` and the step say what is wrong with it; other tables are known.
                found[name] = None
                continue
            columns = {column: str(kind) for column, kind in types.items()}
            found[name] = DerivedInput(name, columns, dataset.table.keys)
    return found
