"""`polynya flow`: a flow of a transform as text, as a picture and as SQL."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from cyclopts import Parameter

from polynya.cli.context import Context, command_group
from polynya.cli.visible import visible
from polynya.model.config.derived import DerivedTask
from polynya.model.config.task import resolved
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.loader import LoadedProject
from polynya.model.names import shown

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
    from polynya.engine.commands.derived_queries import compiled, derived_inputs

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
