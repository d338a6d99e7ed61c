"""How far a binlog was read, also where Debezium's offset stays behind.

An offset is the place at which Debezium would begin again: until another event comes, that is the
beginning of the last transaction, and behind a statement it does not move at all. What reads the
binlog knows better. Its place moves after the records of an event are in the engine's queue, so a
record of our own that is queued afterwards comes behind all of them.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import jpype

from polynya.gateway.debezium.settings import NAME
from polynya.gateway.source import Offset

#: Topic of the records of our own; each has a number.
REACHED: Final = f"{NAME}.reached"
_NUMBER: Final = "number"


def number_of(value: bytes) -> int:
    """The number of a record of our own."""
    return int(json.loads(value)[_NUMBER])


class Reach:
    """Asks one engine of a binlog. `look` is for one thread, `came` for that of the engine."""

    def __init__(self, engine: Any, connector: str) -> None:
        self._engine = engine
        self._metrics = (
            f"debezium.{connector}:type=connector-metrics,context=streaming,server={NAME}"
        )
        self._number = 0
        #: The place that was read when the record of this number was queued.
        self._asked: Offset | None = None
        self._came = 0
        self._known: Offset | None = None

    def look(self) -> Offset | None:
        """A place up to which all was taken, None: not known; asks for a newer one.

        The place was read by the server's reader at the look before.
        """
        if self._asked is not None and self._came == self._number:
            self._known, self._asked = self._asked, None
        if self._asked is None:
            # Before the connector has started there is nothing to ask.
            with suppress(jpype.JException):
                self._ask()
        return self._known

    def came(self, number: int) -> None:
        """The record of a number has come, and everything before it was taken."""
        self._came = number

    def _ask(self) -> None:
        place = self._place()
        # File and position are two reads: a place that stays is a whole one.
        if not place["file"] or place == self._known or place != self._place():
            return
        if self._queued(self._number + 1):
            self._number += 1
            self._asked = place

    def _place(self) -> Offset:
        server = jpype.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        name = jpype.javax.management.ObjectName(self._metrics)
        file, position = (
            server.getAttribute(name, one) for one in ("BinlogFilename", "BinlogPosition")
        )
        return {"file": str(file or ""), "pos": int(position)}

    def _queued(self, number: int) -> bool:
        """Queue the record of a number, unless others wait: a full queue would hold us up."""
        kafka = "org.apache.kafka.connect"
        whole = jpype.JClass(f"{kafka}.data.Schema").INT64_SCHEMA
        # Debezium looks for schemas of its own by their names, and sizes structs.
        builder = jpype.JClass(f"{kafka}.data.SchemaBuilder")
        schema = builder.struct().name(REACHED).field(_NUMBER, whole).build()
        value = jpype.JClass(f"{kafka}.data.Struct")(schema)
        value.put(_NUMBER, jpype.java.lang.Long(number))
        nothing = jpype.JClass("java.util.HashMap")()
        record = jpype.JClass(f"{kafka}.source.SourceRecord")(
            nothing, nothing, REACHED, schema, value
        )
        event = jpype.JClass("io.debezium.pipeline.DataChangeEvent")(record)
        tasks: list[Any] = []
        consumer = jpype.JProxy("java.util.function.Consumer", {"accept": tasks.append})
        self._engine.runWithTask(consumer)
        for task in tasks:
            field = task.getClass().getDeclaredField("queue")
            field.setAccessible(True)
            queue = field.get(task)
            if queue.remainingCapacity() == queue.totalCapacity():
                queue.enqueue(event)
                return True
        return False
