"""The global flags: valid before and after the command, and parsed before it.

cyclopts' meta app parses such flags, too, but needs the whole app first. Polynya builds its app
when it knows the command, because only the module of that command is imported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Annotated, Final, get_type_hints

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError

from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.errors import ConfigError


def _flag(*names: str, about: str) -> Parameter:
    return Parameter(name=names, help=about, negative=())


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """The values of the global flags."""

    project: Annotated[
        Path, _flag("--project", "-p", "--project-dir", about="Project folder. Default: here.")
    ] = Path()
    target: Annotated[
        str | None, _flag("--target", "-t", about="Target of the project. Default: `local`.")
    ] = None
    bindings: Annotated[
        Path | None,
        _flag(
            "--bindings",
            about="Folder of bindings, or those of the target; `POLYNYA_BINDINGS` too.",
        ),
    ] = None
    server: Annotated[
        str | None,
        _flag("--server", about="Start the command at this server; its token: `POLYNYA_TOKEN`."),
    ] = None
    json: Annotated[
        bool, _flag("--json", about="Machine-readable output: one JSON object per line.")
    ] = False
    quiet: Annotated[bool, _flag("--quiet", "-q", about="Only results, warnings and errors.")] = (
        False
    )
    verbose: Annotated[bool, _flag("--verbose", "-v", about="More of what happens.")] = False
    debug: Annotated[
        bool, _flag("--debug", about="Everything with its time: files, SQL, tracebacks.")
    ] = False
    log_file: Annotated[
        Path | None, _flag("--log-file", about="Append everything, with its time, to a file.")
    ] = None
    no_color: Annotated[
        bool, _flag("--no-color", about="No colours; `NO_COLOR` in the environment, too.")
    ] = field(default_factory=lambda: bool(os.environ.get("NO_COLOR")))


#: How the help names the values of flags; the other flags are switches.
_VALUES: Final = {
    "project": "DIR",
    "target": "NAME",
    "log_file": "FILE",
    "bindings": "PATH",
    "server": "URL",
}


@dataclass(frozen=True, slots=True)
class Flag:
    """One global flag; `value` names its value, None for a switch."""

    names: tuple[str, ...]
    field: str
    value: str | None
    help: str


def flags() -> list[Flag]:
    """The global flags, for help and documentation."""
    hints = get_type_hints(GlobalOptions, include_extras=True)
    parameters = {name: hint.__metadata__[0] for name, hint in hints.items()}
    return [
        Flag(parameter.name, name, _VALUES.get(name), parameter.help)
        for name, parameter in parameters.items()
    ]


def global_flags(
    *arguments: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    options: GlobalOptions | None = None,
) -> tuple[GlobalOptions, list[str]]:
    """The signature that cyclopts parses: global flags anywhere, other arguments as they are."""
    return options or GlobalOptions(), list(arguments)


def split_options(arguments: Sequence[str]) -> tuple[GlobalOptions, list[str]]:
    """Return the global options and the arguments that are left for the command.

    Everything after `--` is left alone, `--` included. The last of a repeated flag wins.

    Raises:
        ConfigError: an argument is empty, or the value of a flag is missing or wrong.
    """
    own = list(takewhile(lambda argument: argument != "--", arguments))
    _refuse_empty(own)
    app = App(help_flags=(), version_flags=(), default_command=global_flags)
    try:
        _, bound, _ = app.parse_args(own, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise wrong_usage(error) from error
    options, rest = global_flags(*bound.args, **bound.kwargs)
    return options, [*rest, *arguments[len(own) :]]


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse empty arguments: most often a variable of a script was not set."""
    for before, argument in pairwise(
        ["", *takewhile(lambda argument: argument != "--", arguments)]
    ):
        name, equals, value = argument.partition("=")
        if argument.startswith("-") and equals and not value.strip():
            empty = f"the value of `{name}`"
        elif argument.strip():
            continue
        elif before.startswith("-"):
            empty = f"the value of `{before}`"
        else:
            empty = f"the value after `{before}`" if before else "the command"
        raise WRONG_USAGE(f"{empty} is empty", fix="give it one, or leave it out")


def wrong_usage(error: CycloptsError) -> ConfigError:
    """The error of arguments that cyclopts refused, with the global flag that was meant."""
    text, word = str(error).strip(), ""
    if isinstance(error, UnknownOptionError):
        word = error.token.keyword or error.token.value
    elif error.unused_tokens:
        word = error.unused_tokens[0]
    close = []
    if word.startswith("-") and "Did you mean" not in text:
        close = get_close_matches(word[:100], [name for flag in flags() for name in flag.names], 1)
    return WRONG_USAGE(text, fix=f"did you mean `{close[0]}`?" if close else None)


def as_typed(text: str) -> str:
    """Text of the command line as it was typed: UTF-8, also where the locale has other characters.

    What is not UTF-8 stays as the locale reads it. For text that is not a path: files are named in
    the characters of the locale.
    """
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeError:
        return text
