"""`polynya completion`: the script that lets a shell complete verbs and options."""

from __future__ import annotations

from typing import Literal, TypeAlias

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode

Shell: TypeAlias = Literal["bash", "zsh", "fish"]


def completion(shell: Shell, /, *, context: Context) -> int:
    """Print the script that lets a shell complete verbs, options and their values.

    For bash: `eval "$(polynya completion bash)"` in `~/.bashrc`. For zsh: write it to a file
    `_polynya` in a folder of `$fpath`. For fish: write it to
    `~/.config/fish/completions/polynya.fish`.

    For example: `polynya completion bash`.

    Args:
        shell: `bash`, `zsh` or `fish`.
        context: given by `main`.
    """
    # Start-up time: to know all options it loads every verb.
    from polynya.cli.main import COMMANDS, build_app

    script = build_app([command.name for command in COMMANDS]).generate_completion(shell=shell)
    context.output.result("completion", {"shell": shell, "script": script}, script)
    return ExitCode.OK
