"""Starts operations as processes of `polynya`, a few at a time, and knows how each is.

Killed at any moment: a process ends with its server and notes its exit code itself. The next server
starts what only waited, waits for processes that still end, and reports what was interrupted, with
the state of the data.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from polynya.model.error_catalogue.server_operations import (
    ACTION_NEEDS_TABLES,
    IDEMPOTENCY_KEY_REUSED,
    OPERATION_CONFLICTS,
    OPERATIONS_LOCKED,
    OPERATIONS_NOT_KEPT,
    TOO_MANY_OPERATIONS,
)
from polynya.model.errors import PolynyaError
from polynya.observe import trace
from polynya.observe.otlp import PARENT
from polynya.observe.trace import OpenSpan
from polynya.server.operations.kept import KeptOperations
from polynya.server.operations.progress import Progress, Seen, progress
from polynya.server.operations.records import (
    KEY_KEPT,
    OperationFolder,
    OperationRequest,
    OperationResult,
    OperationStore,
    Status,
)
from polynya.server.operations.verbs import VERBS, Verb, exclude_each_other, works_on_tables
from polynya.store.clock import Clock

#: Processes at a time, and operations that wait.
MOST_RUNNING: Final = 2
MOST_WAITING: Final = 20
#: A cancelled process has so long to end its running steps before it is killed.
STOP_SECONDS: Final = 120.0
#: The variable that names the place where a cluster agrees: commands leave their requests there.
COORDINATION: Final = "POLYNYA_COORDINATION"
#: An operation that waited when its server ended is started by the next one if it is this young.
_STILL_WANTED: Final = timedelta(hours=1)
_POLL_SECONDS: Final = 0.2
_NOT_STARTED: Final = "nothing was written: the command was never started"


@dataclass(frozen=True, slots=True)
class OperationView:
    """An operation as it is now."""

    request: OperationRequest
    status: Status
    result: OperationResult | None
    progress: Progress | None


def outcome(
    verb: Verb, exit_code: int | None, *, begun: bool, cancelled: bool, stopped: bool, now: datetime
) -> OperationResult:
    """How an operation ended, by the exit code that its process noted, None if it noted none."""
    ended = now.isoformat()
    if not begun:
        status: Status = "cancelled" if cancelled else "interrupted"
        return OperationResult(status, ended, None, _NOT_STARTED)
    state = verb.writes.value
    if exit_code is None:
        return OperationResult("cancelled" if cancelled else "interrupted", ended, None, state)
    if cancelled and exit_code in {*verb.done, 130}:
        return OperationResult("cancelled", ended, exit_code, state)
    if stopped and exit_code in verb.done:
        return OperationResult("interrupted", ended, exit_code, state)
    if exit_code in verb.done:
        return OperationResult("succeeded", ended, exit_code, None)
    interrupted = exit_code == 130
    return OperationResult("interrupted" if interrupted else "failed", ended, exit_code, state)


def refusal(verb: Verb, *, requests_only: bool) -> PolynyaError | None:
    """POLYNYA-SRV-060 for an action that a server leaves to other machines; None for others."""
    in_cluster = bool(os.environ.get(COORDINATION))
    if requests_only and works_on_tables(verb, in_cluster=in_cluster):
        return ACTION_NEEDS_TABLES(where=verb.name, command=" ".join(verb.words))
    return None


@dataclass(slots=True)
class _Running:
    """A process at work: of this server, or one of a dead server that still ends."""

    process: subprocess.Popen[bytes] | None
    seen: Seen
    span: OpenSpan | None = None
    place: int = 0
    asked_at: float | None = None

    def ask(self, clock: Clock) -> None:
        """Ask it once to end after its running steps; `_wait` kills it if it does not."""
        if self.asked_at is None:
            self.asked_at = clock.monotonic()
            _signal(self, signal.SIGTERM)


@dataclass(slots=True)
class OperationManager:
    """The operations of a project and target.

    `command` is how `polynya` is started for the project; `options` follow, and the command that an
    operation shows has them too. With `kept` the operations are also in the state of the target,
    with `requests_only` what works on tables is refused.
    """

    store: OperationStore
    command: Sequence[str]
    clock: Clock
    stop_seconds: float = STOP_SECONDS
    options: Sequence[str] = ()
    kept: KeptOperations | None = None
    requests_only: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _waiting: list[str] = field(default_factory=list)
    _running: dict[str, _Running] = field(default_factory=dict)
    _known: dict[str, OperationFolder] = field(default_factory=dict)
    _requests: dict[str, OperationRequest] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)
    _parents: dict[str, str | None] = field(default_factory=dict)
    _held: int | None = None
    _closed: bool = False

    def open(self) -> None:
        """Take up what an earlier server left, if no other server has these operations.

        Raises:
            ConflictError: POLYNYA-SRV-043, another server has them.
            DependencyError: POLYNYA-SRV-062, those of another machine cannot be read.
        """
        self.store.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        held = os.open(self.store.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(held)
            raise OPERATIONS_LOCKED(where=str(self.store.path)) from error
        with self._lock:
            self._held = held
            self.store.remove_parts()
            self._forget(self.store.remove_old(self.clock.now()))
            if self.kept is not None:
                try:
                    self.kept.restore(self.store, self.clock.now())
                except (OSError, PolynyaError) as error:
                    os.close(held)
                    self._held = None
                    raise OPERATIONS_NOT_KEPT(why=str(error)) from error
            for folder in self.store.all():
                self._take_up(folder)
            self._start_waiting()

    def close(self) -> None:
        """End all processes as a cancel does, and wait for them."""
        with self._lock:
            self._closed = True
            for name, running in self._running.items():
                self._known[name].note_stopped()
                running.ask(self.clock)
        while self._running:
            self.clock.sleep(_POLL_SECONDS)
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def submit(
        self,
        verb: Verb,
        words: Sequence[str],
        on: tuple[str, ...],
        *,
        by: str,
        key: str | None = None,
    ) -> tuple[str, bool]:
        """Keep an operation, and start it as soon as a process is free.

        Returns its id, and whether it is new: the same key and request give the same operation.

        Raises:
            ConfigError: POLYNYA-SRV-042, another request has the key; POLYNYA-SRV-060, it is left
                to other machines.
            ConflictError: POLYNYA-SRV-040, an operation on the same object is under way.
            DependencyError: POLYNYA-SRV-041, too many operations wait; POLYNYA-SRV-062, it cannot
                be kept in the state of the target.
        """
        if (error := refusal(verb, requests_only=self.requests_only)) is not None:
            raise error
        hashed = None if key is None else _hash(by, key)
        body = _hash(*words)
        now = self.clock.now()
        with self._lock:
            if hashed is not None and (same := self._with_key(hashed, now)) is not None:
                if self._requests[same].body != body:
                    raise IDEMPOTENCY_KEY_REUSED(other=same)
                return same, False
            for other in (*self._running, *self._waiting):
                its = self._requests[other]
                if exclude_each_other(verb, on, VERBS[its.verb], its.objects):
                    raise OPERATION_CONFLICTS(
                        where=f"/api/v1/operations/{other}",
                        other=other,
                        command=" ".join(its.arguments)[:200],
                    )
            if len(self._waiting) >= MOST_WAITING:
                raise TOO_MANY_OPERATIONS(most=MOST_WAITING)
            new = f"{now:%Y%m%dT%H%M%S%f}-{os.urandom(4).hex()}"
            request = OperationRequest(
                new,
                verb.name,
                (*self.options, *words),
                on,
                by,
                now.isoformat(),
                body,
                hashed,
            )
            folder = self.store.add(request)
            if self.kept is not None:
                try:
                    self.kept.put(folder)
                except (OSError, PolynyaError) as error:
                    self.store.remove(folder)
                    raise OPERATIONS_NOT_KEPT(why=str(error)) from error
            self._know(folder)
            self._parents[new] = trace.parent()
            self._waiting.append(new)
            self._start_waiting()
        return new, True

    def cancel(self, name: str) -> bool:
        """Ask an operation to end after its running steps; False if it has ended already.

        A process that has not ended after `stop_seconds` is killed.
        """
        with self._lock:
            folder = self._known[name]
            if name in self._waiting:
                self._waiting.remove(name)
                folder.note_cancel()
                self._note_end(name, None)
                return True
            running = self._running.get(name)
            if running is None:
                return False
            folder.note_cancel()
            running.ask(self.clock)
            return True

    def ids(self) -> list[str]:
        """All operations, the newest first."""
        with self._lock:
            return sorted(self._known, reverse=True)

    def view(self, name: str) -> OperationView | None:
        """An operation as it is now, None if it does not exist."""
        with self._lock:
            folder = self._known.get(name)
            if folder is None:
                return None
            request, running = self._requests[name], self._running.get(name)
            if running is not None:
                status: Status = "stopping" if folder.asked_to_stop else "running"
                now = self.clock.monotonic()
                return OperationView(request, status, None, progress(running.seen, now))
            result = folder.result()
            return OperationView(request, result.status if result else "queued", result, None)

    def folder(self, name: str) -> OperationFolder:
        """The folder of an operation that exists."""
        with self._lock:
            return self._known[name]

    def keep(self, name: str) -> None:
        """Keep also what was noted beside an operation, such as a decision about a plan.

        Raises DependencyError POLYNYA-SRV-062: it is not kept, and counts on this machine only.
        """
        if self.kept is not None:
            try:
                self.kept.put(self.folder(name))
            except (OSError, PolynyaError) as error:
                raise OPERATIONS_NOT_KEPT(why=str(error)) from error

    def _take_up(self, folder: OperationFolder) -> None:
        try:
            name = self._know(folder)
        except (ValueError, KeyError, TypeError):
            # Another version wrote it, or somebody changed it: the others are taken up.
            return
        if folder.result() is not None:
            return
        request = self._requests[name]
        young = self.clock.now() - datetime.fromisoformat(request.created) < _STILL_WANTED
        process = folder.process()
        if not folder.begun and young and not folder.asked_to_stop:
            self._waiting.append(name)
        elif process is not None and process.is_alive():
            self._watch(name, None, process.is_alive)
        else:
            self._note_end(name, folder.exit_code())

    def _know(self, folder: OperationFolder) -> str:
        request = folder.request()
        VERBS[request.verb]
        self._known[request.id] = folder
        self._requests[request.id] = request
        if request.key is not None:
            self._keys[request.key] = request.id
        return request.id

    def _with_key(self, key: str, now: datetime) -> str | None:
        name = self._keys.get(key)
        if name is None:
            return None
        age = now - datetime.fromisoformat(self._requests[name].created)
        return name if age < KEY_KEPT else None

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < MOST_RUNNING and not self._closed:
            name = self._waiting.pop(0)
            folder = self._known[name]
            folder.note_begun()
            self._keep(folder)
            span = trace.begun("work", self._parents.pop(name, None))
            try:
                process = self._started(name, {} if span is None else {PARENT: span.traceparent})
            except OSError:
                self._note_end(name, None)
                continue
            self._watch(name, process, partial(_is_running, process), span)

    def _started(self, name: str, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
        folder = self._known[name]
        with folder.output.open("ab") as output, folder.errors.open("ab") as errors:
            return subprocess.Popen(
                [*self.command, *self._requests[name].arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={
                    **os.environ,
                    **variables,
                    "POLYNYA_OPERATION": str(folder.path.absolute()),
                    "POLYNYA_OPERATION_SERVER": str(os.getpid()),
                },
                start_new_session=True,
            )

    def _watch(
        self,
        name: str,
        process: subprocess.Popen[bytes] | None,
        alive: Callable[[], bool],
        span: OpenSpan | None = None,
    ) -> None:
        self._running[name] = _Running(process, Seen(self.clock.monotonic()), span)
        threading.Thread(
            target=self._wait, args=(name, alive), name=f"operation {name}", daemon=True
        ).start()

    def _wait(self, name: str, alive: Callable[[], bool]) -> None:
        running = self._running[name]
        while alive():
            asked = running.asked_at
            if asked is not None and self.clock.monotonic() - asked > self.stop_seconds:
                _signal(running, signal.SIGKILL)
            with self._lock:
                # Also while no request asks, so that the time of the last movement is right.
                self._read(self._known[name], running)
            self.clock.sleep(_POLL_SECONDS)
        with self._lock:
            self._note_end(name, self._known[name].exit_code())
            del self._running[name]
            _end_span(running.span, self._requests[name], self._known[name].result())
            for old in self._forget(self.store.remove_old(self.clock.now())):
                self._requests.pop(old, None)
                self._known.pop(old, None)
            self._keys = {key: one for key, one in self._keys.items() if one in self._known}
            self._start_waiting()

    def _note_end(self, name: str, exit_code: int | None) -> None:
        folder = self._known[name]
        folder.note_result(
            outcome(
                VERBS[self._requests[name].verb],
                exit_code,
                begun=folder.begun,
                cancelled=folder.asked_to_stop,
                stopped=folder.stopped_with_server,
                now=self.clock.now(),
            )
        )
        self._keep(folder)

    def _keep(self, folder: OperationFolder) -> None:
        """Keep what is new of an operation.

        Where that fails, the next server on another machine reports it as interrupted: that claims
        less than it did.
        """
        if self.kept is not None:
            with suppress(OSError, PolynyaError):
                self.kept.put(folder)

    def _forget(self, names: list[str]) -> list[str]:
        if self.kept is not None:
            with suppress(OSError, PolynyaError):
                self.kept.forget(names)
        return names

    def _read(self, folder: OperationFolder, running: _Running) -> None:
        events = []
        for place, event in folder.lines(running.place):
            running.place = place
            events.append(event)
        running.seen.take(events, self.clock.monotonic())


def _end_span(
    span: OpenSpan | None, request: OperationRequest, result: OperationResult | None
) -> None:
    if span is not None and result is not None:
        code = {} if result.exit_code is None else {"exit_code": result.exit_code}
        told = {"operation": request.id, "result": result.status, **code}
        failed = result.status in {"failed", "interrupted"}
        span.end(f"operation {request.verb}", told, failed=failed)


def _is_running(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None


def command_of(root: Path) -> list[str]:
    """How `polynya` is started for a project, with lines of JSON as its output."""
    return [sys.executable, "-m", "polynya", "--json", f"--project={root.absolute()}"]


def _signal(running: _Running, number: signal.Signals) -> None:
    """Send a signal to a process of this server; SIGKILL also to what it started."""
    process = running.process
    if process is None or process.poll() is not None:
        return
    if number == signal.SIGKILL:
        # It leads a session of its own: Java and workers of Spark are in its group.
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
