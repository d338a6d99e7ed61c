"""`polynya completion`: the script that lets a shell complete verbs and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import FLAGS, Flag

Shell: TypeAlias = Literal["bash", "zsh", "fish"]


def completion(shell: Shell, /, *, context: Context) -> int:
    """Print the script that lets a shell complete verbs, options and their values.

    Options that all verbs take, such as `--project`, are among them.

    For bash: `eval "$(polynya completion bash)"` in `~/.bashrc`. For zsh: write it to a file
    `_polynya` in a folder of `$fpath`. For fish: write it to
    `~/.config/fish/completions/polynya.fish`.

    For example: `polynya completion bash`.

    Args:
        shell: `bash`, `zsh` or `fish`.
        context: given by `main`.
    """
    # Start-up time: to know all options it loads every verb.
    from polynya.cli.commands import COMMANDS, build_app

    app = build_app([command.name for command in COMMANDS])
    # `main` takes these out before a verb is parsed, so that no verb has them itself.
    app.meta.default(_everywhere())
    script = app.generate_completion(shell=shell)
    context.output.result("completion", {"shell": shell, "script": script}, script)
    return ExitCode.OK


def _everywhere() -> Callable[..., None]:
    """A function with the global flags as its parameters."""

    def taken(**_: object) -> None:
        """Nobody calls it."""

    taken.__signature__ = inspect.Signature([_parameter(flag) for flag in FLAGS])  # type: ignore[attr-defined]
    return taken


def _parameter(flag: Flag) -> inspect.Parameter:
    kind: Any = bool
    default: object = False
    if flag.value is not None:
        kind, default = (Path if flag.value in {"DIR", "FILE"} else str), None
    return inspect.Parameter(
        flag.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, Parameter(name=flag.names, help=flag.help, negative=())],
    )
