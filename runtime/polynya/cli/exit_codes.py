"""The exit codes of `polynya`. Documented in docs/reference/cli.md; never changed."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes; `PolynyaError.exit_code` uses the same numbers."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CHANGES = 3
    DEPENDENCY = 4
    CONFLICT = 5
    BUG = 70
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """One line for help and documentation."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "the operation failed: a task, a check, a query",
    ExitCode.USAGE: "wrong usage or invalid configuration; nothing was written",
    ExitCode.CHANGES: "`plan`, `config diff`: the configuration changes something",
    ExitCode.DEPENDENCY: "something outside cannot be reached: Java, jars, catalog, source",
    ExitCode.CONFLICT: "another owner moved the state; run again",
    ExitCode.BUG: "a bug in Polynya; `--debug` shows where",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C",
}
