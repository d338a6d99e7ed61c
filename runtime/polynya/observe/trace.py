"""Where the time of a run goes: spans, for a file or for an OpenTelemetry collector.

`POLYNYA_TRACE=FILE` writes Chrome trace events, which Perfetto and `chrome://tracing` show. The
format is an array whose end may be missing, so each event is written to the file at once: a process
that is killed leaves a shorter trace. A collector (`observe/otlp.py`) gets the outermost span of a
thread with all that it holds, once it has ended.

A span is one phase of the work in one thread. Other code can add counts to the open spans (`count`)
and events of other tracks (`add_source`). While nothing takes spans, one costs one comparison
(docs/adr/0005-events-and-traces.md).
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, Protocol, Self, TextIO, TypeAlias, TypeVar

from polynya.model.error_catalogue.machine import TRACE_NOT_WRITABLE
from polynya.model.errors import PolynyaError

#: One event as the file holds it; times in microseconds since 1970.
TraceEvent: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EndedSpan:
    """A span that has ended: its times in seconds since 1970, and the spans inside it."""

    name: str
    began: float
    ended: float
    args: Mapping[str, Any]
    inner: tuple[EndedSpan, ...] = ()


class OpenSpan(Protocol):
    """A span of no thread: a request, or a process that was started.

    `traceparent` names it to others, in the form of the header of W3C Trace Context.
    """

    traceparent: str

    def end(self, name: str, args: Mapping[str, Any], *, failed: bool = False) -> None:
        """End it now, under its name, which may be known only now."""
        ...


SpanKind: TypeAlias = Literal["request", "work"]


class SpanExport(Protocol):
    """Takes spans out of this process; `parent` is the traceparent of what they belong to."""

    def put(self, done: EndedSpan, parent: str | None) -> None:
        """Take the outermost span of a thread; never raises, and does not wait."""
        ...

    def open(self, kind: SpanKind, parent: str | None) -> OpenSpan:
        """Begin a span that any thread ends."""
        ...

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        ...


class TraceFile:
    """An open file. `sources` know more events than the spans of this process."""

    def __init__(self, file: TextIO) -> None:
        self.sources: list[Callable[[], Iterable[TraceEvent]]] = []
        self._file = file
        self._lock = threading.Lock()
        self._gathering = threading.Lock()
        self._threads: set[int] = set()
        file.write("[\n" + json.dumps(named("process_name", "polynya", os.getpid())))

    def write(self, *events: TraceEvent) -> None:
        """Add events. Raises OSError or ValueError when the file takes no more."""
        with self._lock:
            for event in events:
                self._file.write(",\n" + json.dumps(event, default=str))
            self._file.flush()

    def span(self, done: EndedSpan) -> None:
        """Add a span of this thread."""
        taken = {"ts": done.began * 1e6, "dur": (done.ended - done.began) * 1e6}
        place = {"pid": os.getpid(), "tid": threading.get_native_id()}
        named_so = {"ph": "X", "name": done.name, "cat": "polynya"}
        event = {**named_so, **place, **taken, "args": done.args}
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
    """What is open in this thread, and what was counted in it.

    Differences of `perf_counter` are exact, and `zero` makes them times of day. Each outermost span
    takes it again, because the two clocks drift apart over weeks.
    """

    def __init__(self) -> None:
        self.open: list[span] = []
        self.counts: Counter[str] = Counter()
        self.zero = 0.0


_here = _Thread()
_trace: TraceFile | None = None
_export: SpanExport | None = None
_is_taken = False
#: What outermost spans of this context belong to, as a traceparent.
_parent: ContextVar[str | None] = ContextVar("polynya_parent", default=None)


class span:  # noqa: N801 - a word of the code around it, as those of contextlib
    """A phase: `with span("read", files=3):`, or `@span("read")` for all of a function.

    Of a decorator, an argument that can be called gets the first argument of the function:
    `@span("copy", dataset=attrgetter("name"))`.
    """

    __slots__ = ("_before", "_began", "_inner", "_name", "args")

    def __init__(self, name: str, **args: Any) -> None:
        self.args = args
        self._name = name
        self._began: float | None = None

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, its calls as spans."""

        @wraps(function)
        def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            if not _is_taken:
                return function(*args, **kwargs)
            own = {key: _of(value, args) for key, value in self.args.items()}
            with span(self._name, **own):
                return function(*args, **kwargs)

        return traced

    def __enter__(self) -> Self:
        if _is_taken:
            if not _here.open:
                _here.zero = time.time() - time.perf_counter()
            self._before = Counter(_here.counts)
            self._inner: list[EndedSpan] = []
            _here.open.append(self)
            self._began = _here.zero + time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if self._began is None:
            return
        _here.open.pop()
        # An error's text may quote a value of a row.
        failed = {} if kind is None else {"error": kind.__name__}
        if isinstance(error, PolynyaError):
            failed["code"] = error.code
        args = {**self.args, **(_here.counts - self._before), **failed}
        ended = _here.zero + time.perf_counter()
        done = EndedSpan(self._name, self._began, ended, args, tuple(self._inner))
        _write(done)
        if _export is None:
            return
        if _here.open:
            _here.open[-1]._inner.append(done)
        else:
            _export.put(done, _parent.get())


def _of(value: Any, args: tuple[object, ...]) -> Any:
    return value(args[0]) if callable(value) else value


def _write(done: EndedSpan) -> None:
    """Write a span. A file that takes no more ends the trace and not the run."""
    if _trace is None:
        return
    try:
        _trace.span(done)
        if not _here.open:
            _trace.gather()
    except (OSError, ValueError) as error:
        log.warning("the trace ends here: %s", error)
        end()


@contextmanager
def opened(kind: SpanKind, parent: str | None) -> Iterator[OpenSpan | None]:
    """Begin a span that the block has to end, and let spans of the block belong to it.

    The block may be one of a coroutine, and threads that it starts by its context belong to it,
    too. None while nothing exports spans.
    """
    made = begun(kind, parent)
    if made is None:
        yield None
        return
    token = _parent.set(made.traceparent)
    try:
        yield made
    finally:
        _parent.reset(token)


def begun(kind: SpanKind, parent: str | None) -> OpenSpan | None:
    """Begin a span that any thread ends; None while nothing exports spans."""
    return None if _export is None else _export.open(kind, parent)


def parent() -> str | None:
    """The traceparent of what this context works for; None where nothing exports spans."""
    return _parent.get()


def count(name: str, number: int = 1) -> None:
    """Count something in every span that is open in this thread."""
    if _is_taken:
        _here.counts[name] += number


def subject() -> str:
    """The dataset that this thread works on, empty when it is not known."""
    names = (phase.args["dataset"] for phase in reversed(_here.open) if "dataset" in phase.args)
    return next(names, "")


def is_on() -> bool:
    """Whether a trace is written to a file, which a person reads: details may cost time."""
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


def export(to: SpanExport | None) -> None:
    """Let a collector take spans from now on; None: send what is left, and end that."""
    global _export
    done, _export = _export, to
    _note()
    if done is not None:
        done.close()


def _set(trace: TraceFile | None) -> None:
    global _trace  # noqa: PLW0603 - one for the process, and each span looks at it
    _trace = trace
    _note()


def _note() -> None:
    global _is_taken  # noqa: PLW0603 - what each span looks at
    _is_taken = _trace is not None or _export is not None
