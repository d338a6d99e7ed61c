"""Where the time of a run goes: `POLYNYA_TRACE=FILE` writes Chrome trace events.

Perfetto and `chrome://tracing` show the file. The format is an array whose end may be missing, so
each event is written to the file at once: a process that is killed leaves a shorter trace.

A span is one phase of the work in one thread. Other code can add counts to the open spans (`count`)
and events of other tracks (`add_source`). Without a trace a span costs one comparison
(docs/adr/0005-events-and-traces.md).
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, Self, TextIO, TypeAlias, TypeVar

from polynya.model.error_catalogue.machine import TRACE_NOT_WRITABLE

#: One event as the file holds it; times in microseconds since 1970.
TraceEvent: TypeAlias = Mapping[str, Any]


class TraceFile:
    """An open file. `sources` know more events than the spans of this process."""

    def __init__(self, file: TextIO) -> None:
        self.sources: list[Callable[[], Iterable[TraceEvent]]] = []
        self._file = file
        self._lock = threading.Lock()
        self._gathering = threading.Lock()
        self._threads: set[int] = set()
        # Differences of this clock are exact, and the start makes them times of day.
        self._zero = time.time() - time.perf_counter()
        file.write("[\n" + json.dumps(named("process_name", "polynya", os.getpid())))

    def now(self) -> float:
        """Microseconds since 1970."""
        return (self._zero + time.perf_counter()) * 1e6

    def write(self, *events: TraceEvent) -> None:
        """Add events. Raises OSError or ValueError when the file takes no more."""
        with self._lock:
            for event in events:
                self._file.write(",\n" + json.dumps(event, default=str))
            self._file.flush()

    def span(self, name: str, began: float, args: Mapping[str, Any]) -> None:
        """Add a span of this thread that ends now."""
        taken = {"ts": began, "dur": self.now() - began}
        place = {"pid": os.getpid(), "tid": threading.get_native_id()}
        event = {"ph": "X", "name": name, "cat": "polynya", **place, **taken, "args": args}
        if place["tid"] in self._threads:
            self.write(event)
        else:
            self._threads.add(place["tid"])
            self.write(event, named("thread_name", threading.current_thread().name, **place))

    def gather(self) -> None:
        """Add what the sources know now, unless another thread does so."""
        if self._gathering.acquire(blocking=False):
            try:
                for source in self.sources:
                    self.write(*source())
            finally:
                self._gathering.release()

    def close(self) -> None:
        """End the array and the file."""
        with self._lock, self._file:
            self._file.write("\n]\n")


def named(kind: str, name: str, pid: int, tid: int = 0) -> TraceEvent:
    """The event that names a process (`process_name`) or a thread (`thread_name`)."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


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
    names = (phase.args["dataset"] for phase in reversed(_here.open) if "dataset" in phase.args)
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
        raise TRACE_NOT_WRITABLE(where=path, reason=error.strerror) from error
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
