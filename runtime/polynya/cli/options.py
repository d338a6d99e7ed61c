"""The global flags: valid before and after the command, and removed before it parses its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from polynya.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Flag:
    """One global flag; `value` names its value, None for a switch."""

    names: tuple[str, ...]
    field: str
    value: str | None
    help: str


FLAGS: Final = (
    Flag(("--project", "-p", "--project-dir"), "project", "DIR", "Project folder. Default: here."),
    Flag(("--target", "-t"), "target", "NAME", "Target of the project. Default: `local`."),
    Flag(("--json",), "json", None, "Machine-readable output: one JSON object per line."),
    Flag(("--quiet", "-q"), "quiet", None, "Only results, warnings and errors."),
    Flag(("--verbose", "-v"), "verbose", None, "More of what happens."),
    Flag(("--debug",), "debug", None, "Everything with its time: files, SQL, tracebacks."),
    Flag(("--log-file",), "log_file", "FILE", "Append everything, with its time, to a file."),
    Flag(("--no-color",), "no_color", None, "No colours; `NO_COLOR` in the environment, too."),
)
_BY_NAME: Final = {name: flag for flag in FLAGS for name in flag.names}


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """The values of the global flags."""

    project: Path = Path()
    target: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    no_color: bool = False
    log_file: Path | None = None


def split_options(arguments: Sequence[str]) -> tuple[GlobalOptions, list[str]]:
    """Return the global options and the arguments that are left for the command.

    Everything after `--` is left alone, `--` included. The last of a repeated flag wins.

    Raises:
        ConfigError: a flag that needs a value has none, or a switch has one.
    """
    values: dict[str, str | bool] = {"no_color": bool(os.environ.get("NO_COLOR"))}
    rest: list[str] = []
    pending = iter(arguments)
    for argument in pending:
        if argument == "--":
            rest += [argument, *pending]
            break
        name, equals, value = argument.partition("=")
        flag = _BY_NAME.get(name) if argument.startswith("-") else None
        if flag is None:
            _refuse_empty(argument, rest)
            rest.append(argument)
        elif flag.value is None:
            if equals:
                raise usage_error(f"`{name}` takes no value")
            values[flag.field] = True
        else:
            given = value if equals else next(pending, None)
            if given is None:
                raise usage_error(f"`{name}` needs a value: {flag.value}")
            if not given.strip():
                raise usage_error(
                    f"the value of `{name}` is empty", f"give it a {flag.value}, or leave it out"
                )
            values[flag.field] = given
    return _options(values), rest


def _refuse_empty(argument: str, before: Sequence[str]) -> None:
    """An empty value is most often a variable of a script that was not set."""
    name, equals, value = argument.partition("=")
    if equals and argument.startswith("-") and not value.strip():
        raise usage_error(f"the value of `{name}` is empty", "give it one, or leave it out")
    if argument.strip():
        return
    last = before[-1] if before else ""
    what = f"the value after `{last}`" if last else "the verb"
    raise usage_error(f"{what} is empty", "give it one, or leave it out")


def as_typed(text: str) -> str:
    """Text of the command line as it was typed: UTF-8, also where the locale has other characters.

    What is not UTF-8 stays as the locale reads it. For text that is no path: files are named in
    the characters of the locale.
    """
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeError:
        return text


def usage_error(message: str, fix: str | None = None) -> ConfigError:
    """Make the error of a wrong command line."""
    return ConfigError(
        "POLYNYA-CLI-001", message, fix=fix or "`polynya --help` and `polynya VERB --help`"
    )


def _options(values: dict[str, str | bool]) -> GlobalOptions:
    target, log_file = values.get("target"), values.get("log_file")
    return GlobalOptions(
        project=Path(str(values.get("project", "."))),
        target=str(target) if target else None,
        json=bool(values.get("json")),
        quiet=bool(values.get("quiet")),
        verbose=bool(values.get("verbose")),
        debug=bool(values.get("debug")),
        no_color=bool(values.get("no_color")),
        log_file=Path(str(log_file)) if log_file else None,
    )
