"""`polynya --server URL …`: the command is an operation of that server, or shows its answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cyclopts import App, CycloptsError
from pydantic import ValidationError

from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import to_json
from polynya.cli.held_signals import release
from polynya.cli.options import wrong_usage
from polynya.cli.remote_reads import READS, Read
from polynya.client import Operation, PolynyaClient
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.server_operations import COMMAND_NOT_SERVED
from polynya.model.errors import OperationError
from polynya.server.operations.verbs import VERBS, NoParameters, Verb

#: The variable of the environment that has the token of the server.
TOKEN: Final = "POLYNYA_TOKEN"  # noqa: S105 - the name of a variable


def call_server(context: CommandContext, app: App, tokens: Sequence[str]) -> int:
    """Start a command at the server of `--server`, show what it says, and return its exit code.

    Ctrl-C cancels the operation, and the command still waits for its end.
    """
    options = context.options
    if options.project != Path() or options.target is not None or options.bindings is not None:
        raise WRONG_USAGE("a server has its own project and target", fix="leave them out")
    read = read_of(tokens)
    if read is not None:
        client = PolynyaClient(options.server or "", os.environ.get(TOKEN) or None)
        values = _bound(app, tokens)
        release()
        return read(context, client, values)
    verb, parameters = request_of(app, tokens)
    client = PolynyaClient(options.server or "", os.environ.get(TOKEN) or None)
    release()
    started = client.start(verb.name, parameters)
    try:
        end = _follow(context, client, started)
    except KeyboardInterrupt:
        client.cancel(started.id)
        context.output.note(f"operation {started.id} was asked to end after its running steps")
        _follow(context, client, started)
        return ExitCode.INTERRUPTED
    if end.exit_code is None:
        context.output.warning(f"operation {end.id} was {end.status}: {end.state}")
        return ExitCode.FAILED
    return end.exit_code


def read_of(tokens: Sequence[str]) -> Read | None:
    """What shows the answer of a server to a command that starts nothing."""
    words = [word for word in tokens[:2] if not word.startswith("-")]
    return READS.get(" ".join(words)) or READS.get(" ".join(words[:1]))


def _bound(app: App, tokens: Sequence[str]) -> dict[str, Any]:
    try:
        _, bound, _ = app.parse_args(list(tokens), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise wrong_usage(error) from error
    return dict(bound.arguments)


def request_of(app: App, tokens: Sequence[str]) -> tuple[Verb, NoParameters]:
    """The action and the parameters that a command line means.

    Raises ConfigError POLYNYA-SRV-051 for a command or an option without a parameter of the API.
    """
    words = [word for word in tokens[:2] if not word.startswith("-")]
    name = next((one for one in ("-".join(words), *words[:1]) if one in VERBS), None)
    if name is None:
        raise COMMAND_NOT_SERVED(what=f"`polynya {' '.join(words)}`")
    verb = VERBS[name]
    body: dict[str, Any] = {}
    for parameter, value in _bound(app, tokens).items():
        field = verb.parameters.model_fields.get(parameter)
        if field is None:
            raise COMMAND_NOT_SERVED(what=f"`{parameter}` of `polynya {' '.join(verb.words)}`")
        body[field.alias or parameter] = value
    try:
        return verb, verb.parameters.model_validate(body)
    except ValidationError as error:
        raise WRONG_USAGE(str(error.errors()[0]["msg"])) from error


def _follow(context: CommandContext, client: PolynyaClient, started: Operation) -> Operation:
    last = started
    for event in client.events(started.id):
        if isinstance(event, Operation):
            if event.status != last.status:
                context.output.note(f"operation {event.id}: {event.status}")
            last = event
        else:
            _show(context, event)
    return last


def _show(context: CommandContext, line: Mapping[str, Any]) -> None:
    """Show a line of the command: an error as one of this command, a result as its JSON."""
    kind, data = str(line.get("type")), {key: line[key] for key in line if key != "type"}
    if kind == "error":
        texts = {part: line.get(part) for part in ("where", "state", "fix", "why")}
        told = OperationError(str(line.get("code")), str(line.get("message")), **texts)
        context.output.error(told)
    elif kind != "version":
        context.output.result(kind, data, None if kind == "step.progress" else to_json(line))
