"""Where the time of a run goes: with `POLYNYA_TRACE=FILE` its phases are written to a file.

A span is one phase of the work in one thread. Who knows more adds it: counts to the spans that are
open (`count`), and events of other tracks (`add_source`). Without a trace a span costs one
comparison (docs/adr/0005-events-and-traces.md).
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, Self, TypeVar

from polynya.model.errors import ConfigError
from polynya.observe.trace_file import TraceEvent, TraceFile

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
VARIABLE: Final = "POLYNYA_TRACE"


class _Thread(threading.local):
    """What is open in this thread, and what was counted in it."""

    def __init__(self) -> None:
        self.open: list[span] = []
        self.counts: Counter[str] = Counter()


_here = _Thread()
_trace: TraceFile | None = None


class span:  # noqa: N801 - a word of the code around it, as those of contextlib
    """A phase: `with span("read", files=3):`, or `@span("read")` for all of a function.

    Of a decorator, an argument that can be called gets the first argument of the function:
    `@span("copy", dataset=attrgetter("name"))`.
    """

    __slots__ = ("_before", "_began", "_name", "args")

    def __init__(self, name: str, **args: Any) -> None:
        self.args = args
        self._name = name
        self._began: float | None = None

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, its calls as spans."""

        @wraps(function)
        def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            if _trace is None:
                return function(*args, **kwargs)
            own = {key: _of(value, args) for key, value in self.args.items()}
            with span(self._name, **own):
                return function(*args, **kwargs)

        return traced

    def __enter__(self) -> Self:
        if _trace is not None:
            self._before = Counter(_here.counts)
            _here.open.append(self)
            self._began = _trace.now()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._began is None:
            return
        _here.open.pop()
        failed = {} if kind is None else {"error": kind.__name__}
        args = {**self.args, **(_here.counts - self._before), **failed}
        _write(self._name, self._began, args)


def _of(value: Any, args: tuple[object, ...]) -> Any:
    return value(args[0]) if callable(value) else value


def _write(name: str, began: float, args: dict[str, Any]) -> None:
    """Write a span that ends now. A file that takes no more ends the trace and not the run."""
    if _trace is None:
        return
    try:
        _trace.span(name, began, args)
        if not _here.open:
            _trace.gather()
    except (OSError, ValueError) as error:
        log.warning("the trace ends here: %s", error)
        end()


def count(name: str, number: int = 1) -> None:
    """Count something in every span that is open in this thread."""
    if _trace is not None:
        _here.counts[name] += number


def subject() -> str:
    """The dataset that this thread works on, empty when it is not known."""
    names = (one.args["dataset"] for one in reversed(_here.open) if "dataset" in one.args)
    return next(names, "")


def is_on() -> bool:
    """Whether a trace is written."""
    return _trace is not None


def add_source(source: Callable[[], Iterable[TraceEvent]]) -> None:
    """Ask for more events whenever the outermost span of a thread ends."""
    if _trace is not None:
        _trace.sources.append(source)


def begin(path: str | None) -> None:
    """Write a trace to a file from now on; None or an empty path for no trace.

    Raises ConfigError when the file cannot be written.
    """
    end()
    if not path:
        return
    try:
        file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - open until `end`
    except OSError as error:
        raise ConfigError(
            "POLYNYA-RUN-003",
            f"the trace cannot be written: {error.strerror}",
            where=path,
            state="nothing was started, no data was touched",
            fix=f"set {VARIABLE} to a file in a folder that can be written, or unset it",
        ) from error
    _set(TraceFile(file))


def end() -> None:
    """End the trace, if there is one."""
    done = _trace
    _set(None)
    if done is not None:
        with suppress(OSError):
            done.close()


def _set(trace: TraceFile | None) -> None:
    global _trace  # noqa: PLW0603 - one for the process, and each span looks at it
    _trace = trace
