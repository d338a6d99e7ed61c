"""The output of commands: results go to standard output, everything else to standard error.

Commands never print. With `--json` each result is one JSON object per line with a `type`; the first
line of a command is `{"type": "version", "format_version": …}`. Within a format version fields may
be added, but never changed or removed.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TextIO
from unicodedata import name

from typing_extensions import override

from polynya import __version__
from polynya.cli.format import to_json
from polynya.cli.logs import SAID
from polynya.cli.options import GlobalOptions
from polynya.cli.visible import visible
from polynya.model.error_catalogue.machine import RESULT_UNPRINTABLE
from polynya.model.errors import ConfigError, ConfigErrors, PolynyaError
from polynya.observe.events import Event, Level, StepEnded, StepProgress
from polynya.store.clock import Clock, SystemClock

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live


#: Steps that are drawn at a time.
_MOST_LINES: Final = 6
#: Drawings in a second.
_REFRESHES: Final = 4
#: Without a terminal, a running step is reported at this interval.
REPEAT_SECONDS: Final = 30.0
#: Interval at which overdue reports are looked for.
_POLL_SECONDS: Final = 1.0


class Steps:
    """The running steps by subject. Threads of a run write them, the drawing thread reads them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._steps: dict[str, tuple[StepProgress, float, float]] = {}

    def take(self, event: Event) -> None:
        """Note the progress or the end of a step; other events are ignored."""
        now = self._clock.monotonic()
        with self._lock:
            if isinstance(event, StepProgress):
                _, began, shown_at = self._steps.get(event.subject, (event, now, now))
                self._steps[event.subject] = (event, began, shown_at)
            elif isinstance(event, StepEnded):
                self._steps.pop(event.subject, None)

    def lines(self) -> list[str]:
        """A line for each step, the one that runs longest first."""
        now = self._clock.monotonic()
        with self._lock:
            steps = sorted(self._steps.values(), key=lambda step: step[1])
        return [f"{event.text()}  [{_time(now - began)}]" for event, began, _ in steps]

    def overdue(self) -> list[str]:
        """Lines of steps that were not reported for long; they count as reported."""
        now = self._clock.monotonic()
        lines = []
        with self._lock:
            for subject, (event, began, shown_at) in list(self._steps.items()):
                if now - shown_at >= REPEAT_SECONDS:
                    self._steps[subject] = (event, began, now)
                    lines.append(f"{event.text()}  [{_time(now - began)}]")
        return lines


class Display(Protocol):
    """Shows the running steps of a command."""

    def take(self, event: Event) -> None:
        """Take an event."""
        ...

    def close(self) -> None:
        """End the display."""
        ...


class Drawn(Display):
    """On a terminal: drawn below the output, gone at the end."""

    def __init__(self, console: Console, clock: Clock) -> None:
        # Start-up time: only slow commands need it.
        from rich.live import Live

        self._steps = Steps(clock)
        self._live: Live = Live(
            console=console,
            get_renderable=self._drawing,
            refresh_per_second=_REFRESHES,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    @override
    def take(self, event: Event) -> None:
        self._steps.take(event)

    @override
    def close(self) -> None:
        self._live.stop()

    def _drawing(self) -> RenderableType:
        from rich.text import Text

        lines = self._steps.lines()
        more = len(lines) - _MOST_LINES
        shown = lines[:_MOST_LINES] + ([f"and {more} more"] if more > 0 else [])
        return Text("\n".join(shown), style="dim", no_wrap=True, overflow="ellipsis")


class Repeated(Display):
    """In a file or a pipe: a line at an interval for each step that takes long."""

    def __init__(self, say: Callable[[str], None], clock: Clock) -> None:
        self._steps = Steps(clock)
        self._say = say
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)
        self._thread.start()

    @override
    def take(self, event: Event) -> None:
        self._steps.take(event)

    @override
    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(_POLL_SECONDS):
            for text in self._steps.overdue():
                self._say(text)


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


FORMAT_VERSION: Final = "1.0"

_VERSION: Final = {
    "type": "version",
    "format_version": FORMAT_VERSION,
    "polynya": __version__,
}
#: Width of lines that are not for a terminal.
_NO_EDGE: Final = 1000
#: Interval of progress events of one dataset in JSON.
_PROGRESS_SECONDS: Final = 10.0


class Output(ABC):
    """The output of a command. `TextOutput` is for people, `JsonOutput` for programs."""

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
        """Write a result: `data` with its type as JSON, or `text` for people (nothing if None)."""

    @abstractmethod
    def row(self, data: Mapping[str, object]) -> None:
        """Write one row of a query as a bare JSON object, alone on standard output."""

    @abstractmethod
    def error(self, error: PolynyaError) -> None:
        """Report why the command failed, or one of several errors."""

    def event(self, event: Event) -> None:
        """Report an event: a result with its time for programs, a line for people."""
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
        """Whether progress is written as JSON again; small steps report it too often."""
        now = SystemClock().monotonic()
        with self._lock:
            due = now - self._progress_at.get(subject, -_PROGRESS_SECONDS) >= _PROGRESS_SECONDS
            if due:
                self._progress_at[subject] = now
        return due

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the running steps until the block ends; silent with `--quiet`."""
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
        """Show people, not programs, a running step until the block ends."""
        with self.live():
            if self._display is not None:
                self._display.take(step)
            yield

    def _new_display(self) -> Display:
        clock = SystemClock()
        # The log would scroll through the drawing.
        draws = self.is_terminal and not self.options.debug
        if draws and self.people.is_terminal and not self.people.is_dumb_terminal:
            return Drawn(self.people, clock)
        return Repeated(self.note, clock)

    def start_over(self) -> None:
        """Clear a terminal, so that the following output replaces what was shown."""
        if self._stdout.isatty() and not self.is_json:
            self._console(self._stdout).clear()

    def only_rows(self) -> None:
        """Keep standard output for rows, also when the command fails before its first one."""
        self._only_rows = True

    def note(self, text: RenderableType) -> None:
        """Tell people something besides the results; silent with `--quiet`."""
        SAID.info("%s", text)
        if not self.options.quiet:
            self._print(self.people, text)

    def detail(self, text: RenderableType) -> None:
        """Tell people something that only `--verbose` shows."""
        SAID.debug("%s", text)
        if self.options.verbose or self.options.debug:
            self._print(self.people, text)

    def warning(self, text: str) -> None:
        """Warn people, also with `--quiet`."""
        SAID.warning("%s", text)
        self._print(self.people, f"warning: {text}", style="yellow")

    def attention(self, text: RenderableType, style: str | None = None) -> None:
        """Show people something that needs attention, also with `--quiet`."""
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
                # Tables are not cut in a file or a pipe.
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
        if isinstance(text, str) and not self._stdout.isatty() and "\t" not in text:
            # What the console would write; it takes longer than to look at a small table.
            self._stdout.write(visible(text, self._stdout.encoding) + "\n")
        elif text is not None:
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
        # Start-up time: most commands take no step.
        from polynya.observe.engine import UnitFailed

        if isinstance(event, UnitFailed) and not event.goes_on:
            # The run does not retry it, so this shows everything about it.
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
        for part in error.errors if isinstance(error, ConfigErrors) else (error,):
            self._write(stream, {"type": "error", **part.as_dict()})

    def _write(self, stream: TextIO, data: Mapping[str, object]) -> None:
        text = to_json(data) + "\n"
        # Several threads of a run write events.
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
    return RESULT_UNPRINTABLE(
        where="standard output",
        encoding=error.encoding,
        character=ord(character),
        name=called.lower(),
    )
