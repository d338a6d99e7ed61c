"""What is under way, drawn on a terminal while it lasts; elsewhere said when it takes long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from polynya.observe.events import Event
from polynya.observe.run import StepEnded, StepProgress
from polynya.store.clock import Clock

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

#: Steps that are drawn at a time; a run works on as many.
_MOST_LINES: Final = 6
#: How often the drawing is made again, a second.
_REFRESHES: Final = 4
#: Where nothing can be drawn, a step that is under way is said after so many seconds, and again.
REPEAT_SECONDS: Final = 30.0
#: How often it is looked whether something is to be said, in seconds.
_LOOK_SECONDS: Final = 1.0


class Steps:
    """The steps under way, by subject. Told by the threads of a run, read by the one that draws."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._steps: dict[str, tuple[StepProgress, float, float]] = {}

    def take(self, event: Event) -> None:
        """A step goes on, or is over; other events are about what was done."""
        now = self._clock.monotonic()
        with self._lock:
            if isinstance(event, StepProgress):
                _, began, said = self._steps.get(event.subject, (event, now, now))
                self._steps[event.subject] = (event, began, said)
            elif isinstance(event, StepEnded):
                self._steps.pop(event.subject, None)

    def lines(self) -> list[str]:
        """A line for each step, the longest first."""
        now = self._clock.monotonic()
        with self._lock:
            steps = sorted(self._steps.values(), key=lambda step: step[1])
        return [f"{event.text()}  [{_time(now - began)}]" for event, began, _ in steps]

    def overdue(self) -> list[str]:
        """Lines of steps that nothing was said of for long; they count as said."""
        now = self._clock.monotonic()
        found = []
        with self._lock:
            for subject, (event, began, said) in list(self._steps.items()):
                if now - said >= REPEAT_SECONDS:
                    self._steps[subject] = (event, began, now)
                    found.append(f"{event.text()}  [{_time(now - began)}]")
        return found


class Display(Protocol):
    """Shows the steps of a command that takes a while."""

    def take(self, event: Event) -> None:
        """Something happened."""
        ...

    def close(self) -> None:
        """Nothing is under way any more."""
        ...


class Drawn:
    """On a terminal: below what is said, gone at the end."""

    def __init__(self, console: Console, clock: Clock) -> None:
        # Start-up time: only who waits for something needs it.
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

    def take(self, event: Event) -> None:
        """See `Display`."""
        self._steps.take(event)

    def close(self) -> None:
        """See `Display`."""
        self._live.stop()

    def _drawing(self) -> RenderableType:
        from rich.text import Text

        lines = self._steps.lines()
        more = len(lines) - _MOST_LINES
        shown = lines[:_MOST_LINES] + ([f"and {more} more"] if more > 0 else [])
        return Text("\n".join(shown), style="dim", no_wrap=True, overflow="ellipsis")


class Repeated:
    """In a file or a pipe: a line for a step that has been under way for long, now and again."""

    def __init__(self, say: Callable[[str], None], clock: Clock) -> None:
        self._steps = Steps(clock)
        self._say = say
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)
        self._thread.start()

    def take(self, event: Event) -> None:
        """See `Display`."""
        self._steps.take(event)

    def close(self) -> None:
        """See `Display`."""
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK_SECONDS):
            for text in self._steps.overdue():
                self._say(text)


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60}:{whole % 60:02d}"
