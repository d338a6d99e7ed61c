"""The entry point of the `polynya` command. Signals are held while its modules load."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence

from polynya.cli.held_signals import held
from polynya.cli.operation_child import recorded


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; never raises."""
    with held():
        # Start-up time: modules stay, and are looked through for garbage again and again.
        gc.disable()
        # Start-up time: this is what takes most of a second.
        from polynya.cli.commands import run_command_line

        gc.freeze()
        gc.enable()
        return recorded(lambda: run_command_line(arguments), os.environ)
