"""Where commands say things: results on standard output, everything for people on standard error.

Commands never print. With `--json` each result is one JSON object per line with a `type`; the first
line of a command is `{"type": "version", "format_version": …}`. Fields may be added within a format
version, never changed or removed.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO
from unicodedata import name

from polynya import __version__
from polynya.cli.json_values import to_json
from polynya.cli.live import Display, Drawn, Repeated
from polynya.cli.logs import SAID
from polynya.cli.options import GlobalOptions
from polynya.model.errors import ConfigError, ConfigErrors, PolynyaError
from polynya.observe.data import UnitFailed
from polynya.observe.events import Event, Level
from polynya.observe.run import StepProgress
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

FORMAT_VERSION: Final = "1.0"

_VERSION: Final = {
    "type": "version",
    "format_version": FORMAT_VERSION,
    "polynya": __version__,
}
#: Characters of a line that no terminal bounds.
_NO_EDGE: Final = 1000
#: Programs are told of the progress of a dataset once in so many seconds.
_PROGRESS_SECONDS: Final = 10.0


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
        self._lock = threading.Lock()
        self._display: Display | None = None
        self._progress_at: dict[str, float] = {}

    @property
    def is_json(self) -> bool:
        """Whether results are JSON lines."""
        return self.options.json

    @property
    def is_terminal(self) -> bool:
        """Whether progress may be drawn on standard error."""
        return self._stderr.isatty() and not (self.options.quiet or self.is_json)

    @property
    def is_screen(self) -> bool:
        """Whether standard output is a terminal that a person looks at."""
        return self._stdout.isatty()

    @property
    def stdout(self) -> TextIO:
        """Standard output itself, for rows in a format of their own."""
        return self._stdout

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
        """Say what happened: a result with its time for programs, a line for people."""
        if self._display is not None:
            self._display.take(event)
        if event.level is not Level.PROGRESS or self._is_due(event.subject):
            self.result(event.type, {"at": SystemClock().now(), **event.as_json()})
        self._tell(event)

    def _tell(self, event: Event) -> None:
        match event.level:
            case Level.DETAIL:
                self.detail(event.text())
            case Level.NOTE:
                self.note(event.text())
            case Level.CAUTION:
                self.attention(event.text(), "yellow")
            case Level.WARNING:
                self.warning(event.text())
            case Level.FAILURE:
                self.attention(event.text(), "red")
            case Level.PROGRESS:
                pass

    def _is_due(self, subject: str) -> bool:
        """Whether programs are told of progress again: small steps have more of it than news."""
        now = SystemClock().monotonic()
        with self._lock:
            due = now - self._progress_at.get(subject, -_PROGRESS_SECONDS) >= _PROGRESS_SECONDS
            if due:
                self._progress_at[subject] = now
        return due

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show until the end of the block what is under way; silent with `--quiet`."""
        if self.options.quiet:
            yield
            return
        display = self._new_display()
        self._display = display
        try:
            yield
        finally:
            self._display = None
            display.close()

    @contextmanager
    def waiting(self, step: StepProgress) -> Iterator[None]:
        """Show people, not programs, until the end of the block that a step goes on."""
        with self.live():
            if self._display is not None:
                self._display.take(step)
            yield

    def _new_display(self) -> Display:
        clock = SystemClock()
        # A log goes by below the drawing.
        draws = self.is_terminal and not self.options.debug
        if draws and self.people.is_terminal and not self.people.is_dumb_terminal:
            return Drawn(self.people, clock)
        return Repeated(self.note, clock)

    def start_over(self) -> None:
        """Let what follows take the place of what was shown, on a terminal."""
        if self._stdout.isatty() and not self.is_json:
            self._console(self._stdout).clear()

    def only_rows(self) -> None:
        """Keep standard output for rows, also when the command fails before its first one."""
        self._only_rows = True

    def note(self, text: RenderableType) -> None:
        """Tell people something that is no result; silent with `--quiet`."""
        SAID.info("%s", text)
        if not self.options.quiet:
            self._print(self.people, text)

    def detail(self, text: RenderableType) -> None:
        """Tell people something that only `--verbose` asks for."""
        SAID.debug("%s", text)
        if self.options.verbose or self.options.debug:
            self._print(self.people, text)

    def warning(self, text: str) -> None:
        """Warn people, also with `--quiet`."""
        SAID.warning("%s", text)
        self._print(self.people, f"warning: {text}", style="yellow")

    def attention(self, text: RenderableType, style: str | None = None) -> None:
        """Show people what somebody has to look at, also with `--quiet`."""
        if isinstance(text, str):
            SAID.warning("%s", text)
        self._print(self.people, text, style)

    def _console(self, stream: TextIO) -> Console:
        # rich takes a fifth of the start-up time, and most JSON runs never need it.
        from polynya.cli.consoles import VisibleConsole

        key = id(stream)
        if key not in self._consoles:
            colour = False if self.options.no_color else None
            self._consoles[key] = VisibleConsole(
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
        SAID.error("%s", error.render())
        # Several threads may fail at the same moment: the lines of an error stay together.
        with self._lock:
            for line in error.render().splitlines():
                self._print(self.people, line, "red" if line.startswith("error[") else None)

    def _tell(self, event: Event) -> None:
        if isinstance(event, UnitFailed) and not event.goes_on:
            # The run is done with it: all that is known of it.
            self.error(event.error)
        else:
            super()._tell(event)


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
        SAID.error("%s", error.render())
        stream = self._stderr if self._only_rows else self._stdout
        for one in error.errors if isinstance(error, ConfigErrors) else (error,):
            self._write(stream, {"type": "error", **one.as_dict()})

    def _write(self, stream: TextIO, data: Mapping[str, object]) -> None:
        text = to_json(data) + "\n"
        # The threads of a run tell what they do, each when it happens.
        with self._lock:
            if not self._opened and stream is self._stdout:
                self._opened = True
                text = to_json(_VERSION) + "\n" + text
            stream.write(text)
            # A reader at the other end of a pipe follows a long run line by line.
            stream.flush()


def make_output(options: GlobalOptions) -> Output:
    """Return the output that the global options ask for."""
    return JsonOutput(options) if options.json else TextOutput(options)


def unprintable(error: UnicodeEncodeError) -> ConfigError:
    """The error for a result with a character that standard output cannot print."""
    character = error.object[error.start]
    called = name(character, "a character")
    return ConfigError(
        "POLYNYA-CLI-010",
        f"{error.encoding} cannot print U+{ord(character):04X}, {called.lower()}",
        where="standard output",
        state="the command did its work up to this result",
        fix="PYTHONIOENCODING=utf-8, a locale with UTF-8 such as LANG=C.UTF-8, or `--json`",
    )
