"""Where commands say things: results on standard output, everything for people on standard error.

Commands never print. With `--json` each result is one JSON object per line with a `type`; the first
line of a command is `{"type": "version", "format_version": …}`. Fields may be added within a format
version, never changed or removed.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TextIO

from polynya import __version__
from polynya.cli.json_values import to_json
from polynya.cli.options import GlobalOptions
from polynya.model.errors import ConfigErrors, PolynyaError
from polynya.observe.events import Event, Level

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

FORMAT_VERSION: Final = "1.0"

#: Characters of a line that no terminal bounds.
_NO_EDGE: Final = 1000


class Output(ABC):
    """What a command can say. `TextOutput` is for people, `JsonOutput` for programs."""

    def __init__(
        self, options: GlobalOptions, stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        self.options = options
        self._stdout = stdout or sys.stdout
        self._stderr = stderr or sys.stderr
        self._consoles: dict[int, Console] = {}
        self._only_rows = False

    @property
    def is_json(self) -> bool:
        """Whether results are JSON lines."""
        return self.options.json

    @property
    def is_terminal(self) -> bool:
        """Whether progress may be drawn on standard error."""
        return self._stderr.isatty() and not (self.options.quiet or self.is_json)

    @property
    def people(self) -> Console:
        """The rich console of standard error, for progress; results do not go here."""
        return self._console(self._stderr)

    @abstractmethod
    def result(
        self, kind: str, data: Mapping[str, object], text: RenderableType | None = None
    ) -> None:
        """Say a result: `data` with its type as JSON, or `text` for people (nothing if None)."""

    @abstractmethod
    def row(self, data: Mapping[str, object]) -> None:
        """Say one row of a query as a bare JSON object, alone on standard output."""

    @abstractmethod
    def error(self, error: PolynyaError) -> None:
        """Say why the command failed, or one of several things that are wrong."""

    def event(self, event: Event) -> None:
        """Say what happened: a result for programs, a line for people."""
        self.result(event.type, event.as_json())
        say = {Level.DETAIL: self.detail, Level.NOTE: self.note, Level.WARNING: self.warning}
        say[event.level](event.text())

    def only_rows(self) -> None:
        """Keep standard output for rows, also when the command fails before its first one."""
        self._only_rows = True

    def note(self, text: RenderableType) -> None:
        """Tell people something that is no result; silent with `--quiet`."""
        if not self.options.quiet:
            self._print(self.people, text)

    def detail(self, text: RenderableType) -> None:
        """Tell people something that only `--verbose` asks for."""
        if self.options.verbose or self.options.debug:
            self._print(self.people, text)

    def warning(self, text: str) -> None:
        """Warn people, also with `--quiet`."""
        self._print(self.people, f"warning: {text}", style="yellow")

    def _console(self, stream: TextIO) -> Console:
        # rich takes a fifth of the start-up time, and most JSON runs never need it.
        from rich.console import Console

        key = id(stream)
        if key not in self._consoles:
            colour = False if self.options.no_color else None
            self._consoles[key] = Console(
                file=stream,
                no_color=self.options.no_color,
                force_terminal=colour,
                highlight=False,
                markup=False,
                emoji=False,
                soft_wrap=True,
                # A file or a pipe has no edge: nothing in a table is cut off there.
                width=None if stream.isatty() else _NO_EDGE,
            )
        return self._consoles[key]

    @staticmethod
    def _print(console: Console, text: RenderableType, style: str | None = None) -> None:
        console.print(text, style=style)


class TextOutput(Output):
    """For people: results as text or tables, errors in the four-line form."""

    def result(
        self,
        kind: str,  # noqa: ARG002 - only programs need it
        data: Mapping[str, object],  # noqa: ARG002
        text: RenderableType | None = None,
    ) -> None:
        """Print the text of a result to standard output."""
        if text is not None:
            self._print(self._console(self._stdout), text)

    def row(self, data: Mapping[str, object]) -> None:
        """Print a row to standard output as JSON; commands print tables with `result`."""
        self._stdout.write(to_json(data) + "\n")

    def error(self, error: PolynyaError) -> None:
        """Print an error to standard error, its first line in red."""
        for line in error.render().splitlines():
            self._print(self.people, line, "red" if line.startswith("error[") else None)


class JsonOutput(Output):
    """For programs: one JSON object per line."""

    def __init__(
        self, options: GlobalOptions, stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        super().__init__(options, stdout, stderr)
        self._opened = False

    def result(
        self,
        kind: str,
        data: Mapping[str, object],
        text: RenderableType | None = None,  # noqa: ARG002 - for people
    ) -> None:
        """Write `{"type": kind, …data}` to standard output, after the version line."""
        self._write(self._stdout, {"type": kind, **data})

    def row(self, data: Mapping[str, object]) -> None:
        """Write a row as it is, and keep standard output for rows from now on."""
        self._only_rows = True
        self._stdout.write(to_json(data) + "\n")

    def error(self, error: PolynyaError) -> None:
        """Write `{"type": "error", …}` per error; to standard error where rows own the output."""
        stream = self._stderr if self._only_rows else self._stdout
        for one in error.errors if isinstance(error, ConfigErrors) else (error,):
            self._write(stream, {"type": "error", **one.as_dict()})

    def _write(self, stream: TextIO, data: Mapping[str, object]) -> None:
        if not self._opened and stream is self._stdout:
            self._opened = True
            version = {
                "type": "version",
                "format_version": FORMAT_VERSION,
                "polynya": __version__,
            }
            stream.write(to_json(version) + "\n")
        stream.write(to_json(data) + "\n")
        # A reader at the other end of a pipe follows a long run line by line.
        stream.flush()


def make_output(options: GlobalOptions) -> Output:
    """Return the output that the global options ask for."""
    return JsonOutput(options) if options.json else TextOutput(options)
