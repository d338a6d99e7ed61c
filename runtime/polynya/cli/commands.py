"""The commands of `polynya`, and the way from a command line to an exit code.

To add a command:

1. write a plain typed function in `cli/<command>.py`, or in the module of its group::

       def run(*tasks: str, once: bool = False, context: Context) -> int | None:
           '''Process what has landed.

           For example: `polynya run --once`.

           …and a Google-style `Args` section with one line per parameter.
           '''

   `Context` is from `cli/context.py`: `context.load()` gives the project, `context.output` takes
   results, notes and progress. Parameters become arguments (positional) or options (keyword-only);
   the docstring becomes the help. Return an `ExitCode`, or nothing for 0; raise a PolynyaError to
   fail. A command with subcommands is made with `command_group` in its module (see `cli/task.py`).
2. add one line to COMMANDS. The module is imported only when its command is called, so heavy
   imports (pyarrow, anything of `lake`) belong inside the function, with the reason "start-up
   time".
3. run `make reference`.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from cyclopts import App, CycloptsError

from polynya import __version__
from polynya.cli.context import CommandContext, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import release_unless_handled
from polynya.cli.logs import logging_as
from polynya.cli.options import GlobalOptions, flags, split_options, wrong_usage
from polynya.cli.output import Output, make_output, unprintable
from polynya.cli.stopping import end_with_parent
from polynya.cli.visible import visible
from polynya.engine.errors import as_polynya
from polynya.model.bindings import BINDINGS_VARIABLE
from polynya.model.errors import PolynyaError
from polynya.observe import otlp, trace


@dataclass(frozen=True, slots=True)
class Command:
    """A command: where its function (or App) is, and its line in `polynya --help`.

    It may have former names, which keep working.
    """

    name: str
    target: str
    help: str
    former: tuple[str, ...] = ()


def _command(name: str, target: str, line: str, *former: str) -> Command:
    return Command(name, f"polynya.cli.{target}", line, former)


COMMANDS: Final = (
    _command("init", "init:init", "Create a project that runs as it is."),
    _command("validate", "plan:validate", "Check all files of a project, offline."),
    _command("diff", "diff:diff", "Show how two targets differ."),
    _command("export", "archive:export", "Write a project as one archive, without secrets."),
    _command("import", "archive:import_", "Unpack an archive of a project."),
    _command("preview", "preview:preview", "Show what the next files would become."),
    _command("plan", "plan:plan", "Show what a changed configuration would do."),
    _command("migrate", "plan:migrate", "Execute a plan: tables and views.", "apply"),
    _command("run", "run:run", "Process what has landed."),
    _command("agent", "agent:app", "Keep tasks running; pick up edits; drain."),
    _command("cluster", "cluster:app", "Nodes that share work: show, move, stop, scale."),
    _command("network-agent", "network_agent:network_agent", "Scale groups of nodes."),
    _command("task", "task:app", "Stop, start and resume a task in a cluster."),
    _command("connection", "capture:connection_app", "Test a connection to a database or server."),
    _command("landing", "capture:landing_app", "Captures of databases: run, stop, resume."),
    _command("reload", "reload:reload", "Compare with a new full load, write differences."),
    _command("query", "query:query", "Answer SQL over the live views."),
    _command("ask", "ask:ask", "Propose SQL for a question; nothing runs it."),
    _command("locate", "history:locate", "Print the metadata file of a table."),
    _command("views", "history:views", "Print the live views as SQL for other engines."),
    _command("serve", "serve:serve", "Serve the API, the console and the catalog."),
    _command("console", "console:console", "Open the console in the browser."),
    _command("dbt", "dbt:app", "The live views as sources of a dbt project."),
    _command("shell", "query:shell", "Answer SQL over the live views, interactively."),
    _command("status", "status:status", "Show freshness, backlog and health."),
    _command("latency", "latency:latency", "How long changes took, over time."),
    _command("history", "history:history", "Show every event and version of one record."),
    _command("quarantine", "quarantine:app", "Rejected records: list, show, replay."),
    _command("rules", "rules:app", "Rules over columns: which did what, and why."),
    _command("notification", "notification:app", "Notifications: list, show, try a channel."),
    _command("mirror", "mirror:app", "Mirrors in other warehouses: status, SQL, set-up."),
    _command("lineage", "lineage:lineage", "Where columns come from, and what uses them."),
    _command("flow", "flow:app", "Flows of transforms: steps, columns, SQL, a picture."),
    _command("automation", "automation:app", "Automations: list, runs, run, pause, resume."),
    _command("mart", "mart:app", "Data marts: the transforms that they become."),
    _command("dataset", "tables:app", "Suspend or resume one dataset."),
    _command("rebuild", "tables:rebuild", "Rebuild tables from the events they keep."),
    _command("maintain", "tables:maintain", "Maintain tables now, or show why not."),
    _command("compare", "compare:compare", "Compare a captured database with the live views."),
    _command("verify", "history:verify", "Check the tables against their rules."),
    _command("test", "test:run_tests", "Run the project's tests."),
    _command("config", "config:app", "Push, pull and diff the project in its bucket."),
    _command("catalog", "catalog:app", "Move the tables to another catalog."),
    _command("adopt", "tables:adopt", "Adopt a copied or moved warehouse."),
    _command("access", "access:app", "Tokens, roles and the audit log of a server."),
    _command("doctor", "doctor:doctor", "Check Java, jars, folders and the project."),
    _command("schema", "explain:app", "JSON Schema of project and task files."),
    _command("explain", "explain:explain", "Explain an error code."),
    _command("functions", "explain:functions", "Functions that expressions may call."),
    _command("completion", "explain:completion", "Let a shell complete commands."),
)


def build_app(called: Sequence[str] = ()) -> App:
    """Return the command tree; commands are imported when they are called.

    Args:
        called: commands that will be imported anyway; their help is their own docstring
            instead of the one line in COMMANDS.
    """
    app = command_group("polynya", "Landed changes become live, atomic Apache Iceberg tables.")
    app.version = f"polynya {__version__}"
    app.help_epilogue = _global_help()
    for command in COMMANDS:
        line = None if {command.name, *command.former} & set(called) else command.help
        app.command(command.target, name=command.name, alias=command.former, help=line)
    return app


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; never raises."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Known before parsing, so that errors of parsing are JSON, too.
    output = make_output(GlobalOptions(json="--json" in given))
    logs = ExitStack()
    try:
        options, rest = split_options(given)
        output = make_output(options)
        logs.enter_context(logging_as(options))
        logs.enter_context(_bound_by(options))
        trace.begin(os.environ.get(trace.VARIABLE))
        otlp.begin(os.environ, output.event)
        if options.server is not None:
            # Start-up time: only this needs the client.
            from polynya.cli.remote import call_server

            return call_server(CommandContext(options, output), build_app(rest[:1]), rest)
        return _call(CommandContext(options, output), rest)
    except KeyboardInterrupt:
        output.note("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # `polynya query … | head`: without this, Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except PolynyaError as error:
        return _report(output, error)
    except UnicodeEncodeError as error:
        return _report(output, unprintable(error))
    except Exception as error:  # noqa: BLE001 - the edge of the process: what is left is a bug
        return _report(output, as_polynya(error))
    finally:
        trace.end()
        otlp.end()
        logs.close()


@contextmanager
def _bound_by(options: GlobalOptions) -> Iterator[None]:
    """Let everything that loads a project, also in a child process, find the named bindings."""
    before = os.environ.get(BINDINGS_VARIABLE)
    if options.bindings is None:
        yield
        return
    os.environ[BINDINGS_VARIABLE] = str(options.bindings.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[BINDINGS_VARIABLE]
        else:
            os.environ[BINDINGS_VARIABLE] = before


def _call(context: CommandContext, tokens: list[str]) -> int:
    app = build_app(tokens[:1])
    try:
        command, bound, injected = app.parse_args(tokens, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise wrong_usage(error) from error
    release_unless_handled(command)
    end_with_parent(os.environ)
    extra: dict[str, Any] = {"context": context} if "context" in injected else {}
    with trace.span(" ".join(tokens[:1])):
        code = command(*bound.args, **bound.kwargs, **extra)
    return code if isinstance(code, int) else ExitCode.OK


def _report(output: Output, error: PolynyaError) -> int:
    output.error(error)
    if output.options.debug:
        sys.stderr.write(visible("".join(traceback.format_exception(error)), sys.stderr.encoding))
    return error.exit_code


def _global_help() -> str:
    lines = ["Everywhere, before or after the command:"]
    for flag in flags():
        names = ", ".join(sorted(flag.names, key=len, reverse=True))
        lines.append(f"  {f'{names} {flag.value or str()}':36}{flag.help}")
    return "\n".join(lines)
