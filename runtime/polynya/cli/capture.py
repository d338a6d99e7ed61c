"""`polynya landing` and `polynya connection`: captures of databases, and connection tests."""

from __future__ import annotations

import threading
from dataclasses import asdict
from pathlib import Path
from typing import Literal
from uuid import uuid4

from polynya.capture.wire import CaptureRequest, RequestFolder
from polynya.cli.capture_choice import (
    extraction_line,
    one_capture,
    preview_lines,
    some_captures,
    store_of,
)
from polynya.cli.checks import guarded, say_check
from polynya.cli.connections import check_connection
from polynya.cli.context import CommandContext, Context, command_group, metrics_sink
from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import stopped_by_signals
from polynya.cli.status import show_captures
from polynya.cli.stopping import EndedEarly, Stopping
from polynya.model.config.connected import ConnectedCapture
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import OperationError
from polynya.store.clock import SystemClock
from polynya.store.object_store import ObjectStore

landing_app = command_group("landing", "Captures of databases: preview, run, stop, resume, reload.")


@landing_app.command
def preview(task: str, /, *, context: Context) -> int:
    """Show the tables that a task would capture: key, size, columns, masks. Lands nothing.

    Below a column stands what becomes of values that it does not keep exactly.

    For example: `polynya landing preview shop_db`.

    Args:
        task: name of a task of kind `landing`.
    """
    project = context.load(tolerant=True)
    chosen = one_capture(project, task)
    # Start-up time: drivers of databases.
    from polynya.capture.inexact import EXPLAINED
    from polynya.engine.commands.captures import captured_tables, extraction_of

    tables = captured_tables(chosen)
    for table in tables:
        masks = chosen.mask.get(table.name, {})
        columns = [
            {"name": column.name, "type": column.type_name, "nullable": column.nullable,
             "masked": column.name in masks,
             "inexact": [EXPLAINED[word] for word in column.inexact]}
            for column in table.columns
        ]  # fmt: skip
        data: dict[str, object] = {
            "task": task,
            "table": table.name,
            "key": list(table.key),
            "columns": columns,
            "rows_estimate": table.rows_estimate,
            "bytes_estimate": table.bytes_estimate,
        }
        lines = list(preview_lines(table, masks))
        extraction = extraction_of(chosen, table)
        if extraction is not None:
            data["extraction"] = (
                extraction.as_dict()
                if isinstance(extraction, OperationError)
                else asdict(extraction)
            )
            lines.insert(1, extraction_line(extraction))
        context.output.result("landing.table", data, "\n".join(lines))
    summary = {"task": task, "tables": len(tables)}
    text = f"{len(tables)} tables" if tables else "no table: look at `tables` and at the rights"
    context.output.result("landing.preview", summary, text)
    return ExitCode.OK if tables else ExitCode.FAILED


@landing_app.command
@stopped_by_signals
def run(
    *tasks: str,
    once: bool = False,
    metrics: Literal["emf", "prometheus"] | None = None,
    metrics_file: Path | None = None,
    context: Context,
) -> int:
    """Capture databases only, without Spark and tables; another machine makes the tables.

    `polynya run` also captures, and makes tables of what has landed.

    For example: `polynya landing run shop_db --once`.

    Args:
        tasks: names or globs of tasks of kind `landing`. Default: all.
        once: run the pending loads, capture the changes up to now, and return; otherwise run until
            Ctrl-C or SIGTERM.
        metrics: `emf` writes how each capture is in CloudWatch's embedded metric format once a
            minute, `prometheus` a file for the textfile collector of Prometheus' node exporter.
        metrics_file: file for the metrics, required for `prometheus`; default for `emf`: standard
            output.
    """
    sink = metrics_sink(metrics, metrics_file)
    try:
        stopping = Stopping.on_signals(threading.Event(), context.output, starting=True)
        project = context.load(tolerant=True)
        chosen = some_captures(project, tasks)
        for error in project.errors:
            context.output.error(error)
        # Start-up time: PyArrow.
        from polynya.cli.capture_run import run_captures

        return run_captures(context, project, chosen, stopping, once=once, metrics=sink)
    except EndedEarly:
        context.output.note("ended before anything was begun")
        return ExitCode.OK


@landing_app.command
def status(*tasks: str, offline: bool = False, context: Context) -> int:
    """Show each captured table with its state, and how far the landing zone is behind the database.

    States are as of the newest landed batch. `queued`: the load has not begun. `loading`: rows
    land. `caching changes`: some changes landed before all rows have. `applying cached changes`:
    all rows have landed, and the tables have not copied all of them. `running`: changes land.
    `loaded`, with `update_method: reload`: the last load is complete. `error`: the table was left
    out, with the reason.
    Needs no Java, and answers while another process captures.

    For example: `polynya landing status shop_db --offline`.

    Args:
        tasks: names or globs of tasks of kind `landing`. Default: all.
        offline: do not ask the database for its position.
    """
    project = context.load(tolerant=True)
    chosen = some_captures(project, tasks)
    show_captures(context, project, chosen, SystemClock().now(), ask_database=not offline)
    return ExitCode.OK


@landing_app.command
def stop(task: str, /, *, context: Context) -> int:
    """Stop a capture, on whichever machine it runs, until `resume`.

    The database keeps the changes meanwhile, which takes disk space there.

    For example: `polynya landing stop shop_db`.

    Args:
        task: name of a task of kind `landing`.
    """
    project = context.load(tolerant=True)
    _asking(one_capture(project, task), store_of(project)).hold()
    data = {"task": task, "held": True}
    context.output.result(
        "landing.wish", data, f"{task} stops within a few seconds, until it is resumed"
    )
    return ExitCode.OK


@landing_app.command
def resume(task: str, /, *tables: str, context: Context) -> int:
    """Resume a stopped capture and its suspended tables.

    For example: `polynya landing resume shop_db public.orders`.

    Args:
        task: name of a task of kind `landing`.
        tables: tables to resume, such as `public.orders`. Default: all suspended ones.
    """
    return _ask(context, task, tables, reload=False)


@landing_app.command
def reload(task: str, /, *tables: str, context: Context) -> int:
    """Load tables of a capture again; their changes continue to land.

    For example: `polynya landing reload shop_db public.orders`.

    Args:
        task: name of a task of kind `landing`.
        tables: tables to load, such as `public.orders`. Default: all.
    """
    return _ask(context, task, tables, reload=True)


@landing_app.command
def drop(task: str, /, *, yes: bool = False, context: Context) -> int:
    """Remove what a capture created in the database: its replication slot and publication.

    Landed data stays. A capture that starts afterwards loads all tables again.

    For example: `polynya landing drop shop_db --yes`.

    Args:
        task: name of a task of kind `landing`, which must not run.
        yes: do it. Nothing happens without it.
    """
    chosen = one_capture(context.load(tolerant=True), task)
    if not yes:
        raise WRONG_USAGE(
            f"changes of `{chosen.connection}` that have not landed are lost to `{task}`",
            fix="say `--yes` when that is meant",
        )
    from polynya.engine.commands.captures import database_of

    with database_of(chosen) as database:
        database.drop()
    context.output.result("landing.drop", {"task": task}, f"{task} has nothing in the database now")
    return ExitCode.OK


def _ask(context: CommandContext, task: str, tables: tuple[str, ...], *, reload: bool) -> int:
    project = context.load(tolerant=True)
    chosen = one_capture(project, task)
    for table in tables:
        if not chosen.tables.takes(table):
            raise WRONG_USAGE(f"`{task}` captures no table called `{table[:60]}`")
    asking = _asking(chosen, store_of(project))
    was_held = asking.is_held()
    if not reload:
        asking.release()
    asking.add(CaptureRequest(tables, reload), uuid4().hex)
    data = {"task": task, "tables": list(tables), "reload": reload, "was_held": was_held}
    what = ", ".join(tables) or "all tables"
    text = f"{what} of {task} are reloaded" if reload else f"{task} continues"
    context.output.result("landing.wish", data, f"{text}: as soon as it runs")
    return ExitCode.OK


def _asking(task: ConnectedCapture, store: ObjectStore) -> RequestFolder:
    return RequestFolder(store, task.place)


connection_app = command_group("connection", "Connections to databases and servers: test them.")


@connection_app.command
def test(name: str, /, *, context: Context) -> int:
    """Check whether a database can be captured, or an API read: network, TLS, rights, settings.

    Of a connection of another type it checks references and whether its servers answer.

    Each line is one check, with a fix if it fails. The checks cover what the tasks with this
    connection need, such as publication and slot, and less if all of them only load. Of an API it
    asks for the first page of each resource. Nothing changes in the source. Exit code 1 when a
    check fails, also when the source does not answer.

    For example: `polynya connection test shop_postgres`.

    Args:
        name: of a file in `connections/`, without its ending.
    """
    project = context.load(tolerant=True)
    for error in project.errors:
        if (error.where or "").startswith(f"connections/{name}."):
            context.output.error(error)
    names = sorted(project.connections)
    if name not in names:
        raise WRONG_USAGE(
            f"no connection is called `{name[:60]}`",
            fix=suggest(name, names) if names else "add a file to `connections/`",
        )
    if project.effective[name].kind.servers is not None:
        check = guarded(f"connection {name}", lambda: check_connection(project, name))
        say_check(context, check)
        is_right = check.status == "ok"
        text = f"{name} can be reached" if is_right else f"{name} cannot be used from here"
        context.output.result("connection", {"connection": name, "ok": is_right}, text)
        return ExitCode.OK if is_right else ExitCode.FAILED
    # Start-up time: drivers of databases, and the HTTP client.
    from polynya.engine.commands.connections import connection_findings

    findings = connection_findings(project, name)
    for finding in findings:
        data = {"connection": name, "ok": finding.ok, "what": finding.what, "fix": finding.fix}
        fix = f"\n      fix: {finding.fix}" if finding.fix else ""
        mark = "FAIL" if not finding.ok else "note" if finding.fix else "ok  "
        context.output.result("connection.finding", data, f"{mark}  {finding.what}{fix}")
    wrong = sum(not finding.ok for finding in findings)
    verb = "read" if name in project.apis else "captured"
    text = f"{name} can be {verb}" if not wrong else f"{wrong} of {len(findings)} are wrong"
    context.output.result("connection", {"connection": name, "ok": not wrong}, text)
    return ExitCode.FAILED if wrong else ExitCode.OK
