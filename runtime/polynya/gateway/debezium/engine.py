"""The engine at work: its batches go to one function, which lands them before it returns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import jpype

from polynya.gateway.debezium.failures import failure_of
from polynya.gateway.debezium.jvm import java_properties
from polynya.gateway.debezium.reach import Reach
from polynya.gateway.debezium.records import RecordReader
from polynya.gateway.debezium.settings import heartbeats_move
from polynya.gateway.landing.places import BINLOGS
from polynya.gateway.landing.stream import StreamEvent
from polynya.gateway.source import Offset
from polynya.model.errors import PolynyaError

_CLOSE_SECONDS: Final = 60.0
_CLOSE_AGAIN_SECONDS: Final = 0.5
_MAX_CAUSES: Final = 5
_MAX_SAID: Final = 600
_FORMAT: Final = "io.debezium.engine.format."

Take = Callable[[Sequence[StreamEvent]], StreamEvent | None]
"""Lands events; gives the one whose offset the database may be told, None for none yet."""


class DebeziumEngine:
    """One run of an engine, in a thread of its own."""

    def __init__(
        self, connector: str, settings: Mapping[str, str], take: Take, ended: Callable[[], None]
    ) -> None:
        """Set it up; nothing runs yet. Java has to run.

        Args:
            connector: `postgresql`, `mariadb` or another one.
            settings: of the engine, whole.
            take: is called with what came, again and again, one call at a time.
            ended: is called once, when it has ended for whatever reason; `failure` says which.
        """
        self.failure: PolynyaError | None = None
        self._stopping = False
        self._ended = ended
        self._reader = RecordReader(heartbeats_move=heartbeats_move(settings))
        self._take = take
        self._engine = self._built(settings)
        self._reach = Reach(self._engine, connector) if connector in BINLOGS else None
        self._thread = threading.Thread(target=self._run, name="debezium", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def read_to(self) -> Offset | None:
        """A place in a binlog up to which all was taken; None: not known."""
        return None if self._reach is None else self._reach.look()

    def stop(self) -> None:
        """End, after the batch that is landing. Waits for it."""
        self._stopping = True
        patience = _CLOSE_SECONDS
        while self._thread.is_alive() and patience > 0:
            # One that is just starting refuses, and one that ends by itself has nothing to close.
            with suppress(jpype.JException):
                self._engine.close()
            self._thread.join(_CLOSE_AGAIN_SECONDS)
            patience -= _CLOSE_AGAIN_SECONDS

    def _built(self, settings: Mapping[str, str]) -> Any:
        json_bytes = jpype.JClass(f"{_FORMAT}JsonByteArray")
        form = jpype.JClass(f"{_FORMAT}KeyValueHeaderChangeEventFormat").of(
            json_bytes, json_bytes, jpype.JClass(f"{_FORMAT}Json")
        )
        builder = jpype.JClass("io.debezium.engine.DebeziumEngine").create(form)
        consumer = jpype.JProxy("io.debezium.engine.DebeziumEngine$ChangeConsumer", inst=self)
        done = jpype.JProxy("io.debezium.engine.DebeziumEngine$CompletionCallback", inst=self)
        builder.using(java_properties(settings)).notifying(consumer).using(done)
        return builder.build()

    def _run(self) -> None:
        jpype.java.lang.Thread.attachAsDaemon()
        try:
            self._engine.run()
        except jpype.JException as error:
            self._fail(str(error.toString()))
        finally:
            self._ended()

    # What Java calls: names are Debezium's.

    def handleBatch(self, records: Any, committer: Any) -> None:  # noqa: N802
        """Take a batch. An error ends the engine, and the database is told of nothing in it."""
        try:
            found = (self._reader.read(record) for record in records)
            told = self._take([event for event in found if event is not None])
        except PolynyaError as error:
            self.failure = error
            raise
        if self._reach is not None:
            self._reach.came(self._reader.reached)
        if told is not None:
            committer.markProcessed(told.origin)
            committer.markBatchFinished()

    def supportsTombstoneEvents(self) -> bool:  # noqa: N802
        """Whether deletes are followed by tombstones: never asked for."""
        return False

    def handle(self, success: bool, message: Any, error: Any) -> None:  # noqa: FBT001
        """The engine has ended."""
        if not success:
            self._fail(str(message) if error is None else _causes(error))

    def _fail(self, why: str) -> None:
        if self._stopping or self.failure is not None:
            # One that is ended while it begins complains; nothing that it had read is lost.
            return
        self.failure = failure_of(why[:_MAX_SAID])


def _causes(error: Any) -> str:
    """What an exception of Java says, and its causes, each once."""
    said: list[str] = []
    while error is not None and len(said) < _MAX_CAUSES:
        text = str(error.getMessage() or error.getClass().getName())
        if not any(text in one for one in said):
            said.append(text)
        error = error.getCause()
    return "; ".join(said)
