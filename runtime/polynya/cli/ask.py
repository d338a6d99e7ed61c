"""`polynya ask`: SQL for a question, as a proposal that nothing runs."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.visible import visible
from polynya.model.error_catalogue.ask import ASK_NOT_CONFIGURED
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.names import shown


def ask(
    question: str,
    /,
    *,
    tables: Annotated[tuple[str, ...], Parameter(name="--table")] = (),
    context: Context,
) -> int:
    """Propose SQL for a question; check it, and do not run it.

    Sends the question, and names and types of columns, to the language model that `ask` of the
    project file names. No row is sent. Without this setting nothing is sent at all. Needs no Java.

    For example: `polynya ask "How much did each user spend?" --table shop.orders`.

    Args:
        question: the question, in any language.
        tables: only these tables, as `schema.table`. Default: all tables with columns.
    """
    project = context.load(tolerant=True)
    settings = project.project.ask
    if settings is None:
        raise ASK_NOT_CONFIGURED(where=project.project_file)
    if settings.connection not in project.apis:
        raise WRONG_USAGE(
            f"the project has no connection of type `http` called {shown(settings.connection)}",
            fix="`ask` of the project file names it",
        )
    # Start-up time: sqlglot, PyIceberg and urllib3.
    from polynya.engine.commands.ask import ask as ask_model
    from polynya.engine.commands.ask import known_tables
    from polynya.engine.commands.lineage import project_graph
    from polynya.lake.spark.catalog import has_tables, python_catalog
    from polynya.store.clock import SystemClock
    from polynya.store.vault import vault
    from polynya.streams.rest.api import open_api

    catalog = python_catalog(project.target) if has_tables(project.target) else None
    known = known_tables(project_graph(project, catalog), tables)
    api = open_api(project.apis[settings.connection], vault(), SystemClock())
    proposal = ask_model(project, api, question, known)
    data = {"sql": proposal.sql, "problem": proposal.problem}
    context.output.result("proposal", data, visible(proposal.sql))
    if proposal.problem is not None:
        context.output.note(visible(f"the proposal is not valid: {proposal.problem}"))
        return ExitCode.FAILED
    return ExitCode.OK
