"""Debezium's settings of a capture: what must be so for its events to be exact. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Name of the engine, and what topics and offsets are called after.
NAME: Final = "capture"
#: Topic of the ends of transactions.
TRANSACTIONS: Final = f"{NAME}.transaction"

# What the engine gives in one go is collected, and its queue has to hold more than that. Both are
# small: rows in Java take several times the memory of their lines, and what lives long in a heap
# that is full of short lives is copied again and again.
_BATCH: Final = 2_048
_QUEUE: Final = 2 * _BATCH
# A change waits so long in the engine at most before it is given.
_POLL_MILLIS: Final = 100

_EXACT: Final = {
    "tombstones.on.delete": "false",
    # Truncations are skipped by default.
    "skipped.operations": "none",
    "provide.transaction.metadata": "true",
    "decimal.handling.mode": "precise",
    "time.precision.mode": "adaptive_time_microseconds",
    "interval.handling.mode": "string",
    "binary.handling.mode": "bytes",
    "event.processing.failure.handling.mode": "fail",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
    "converter.schemas.enable": "false",
    # NULL in a column with a default stays NULL.
    "key.converter.replace.null.with.default": "false",
    "value.converter.replace.null.with.default": "false",
    "converter.replace.null.with.default": "false",
    # Whoever supervises the process starts it again, from what has landed.
    "errors.max.retries": "0",
}
_BINLOG: Final = {
    "bigint.unsigned.handling.mode": "precise",
    "include.schema.changes": "true",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
}


@dataclass(frozen=True, slots=True)
class Scratch:
    """Files of one run of the engine. All that matters of them is in the landed batches."""

    folder: Path

    @property
    def offsets(self) -> Path:
        """Where the engine begins."""
        return self.folder / "offsets.dat"

    @property
    def history(self) -> Path:
        """Schemas of the past, of connectors that read a binlog."""
        return self.folder / "history.jsonl"


def engine_settings(
    connector: str,
    own: Mapping[str, str],
    scratch: Scratch,
    *,
    roll_bytes: int,
    roll_seconds: float,
    has_history: bool = False,
    unsent: str = "",
) -> dict[str, str]:
    """All settings of an engine.

    Args:
        connector: `postgresql`, `mariadb` or `mysql`.
        own: those of the database, which win.
        scratch: files of this run.
        roll_bytes: so much waits in the engine at most.
        roll_seconds: so often what was read lands at most; records are asked for more often.
        has_history: schemas of the past are in the scratch folder.
        unsent: the text for a column that the source did not send; empty where it sends all.
    """
    millis = min(max(int(roll_seconds * 1000), 10), _POLL_MILLIS)
    settings = {
        "name": NAME,
        "topic.prefix": NAME,
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(scratch.offsets),
        # The connector tells the database after each landed batch, never before.
        "offset.flush.interval.ms": "0",
        "max.batch.size": str(_BATCH),
        "max.queue.size": str(_QUEUE),
        "max.queue.size.in.bytes": str(roll_bytes),
        "poll.interval.ms": str(millis),
        "heartbeat.interval.ms": "10000",
        **_EXACT,
    }
    if connector == "postgresql":
        settings["snapshot.mode"] = "no_data"
        settings["publication.autocreate.mode"] = "disabled"
    else:
        settings.update(_BINLOG)
        settings["schema.history.internal.file.filename"] = str(scratch.history)
        # Without a history the schemas of now are taken for those at the offset.
        settings["snapshot.mode"] = "no_data" if has_history else "recovery"
    if unsent:
        settings["unavailable.value.placeholder"] = unsent
    return {**settings, **own}


def heartbeats_move(settings: Mapping[str, str]) -> bool:
    """Whether the offset of a heartbeat is an exact one to go on from.

    Of a binlog it is, and where other tables change all the time nothing else would move it.
    """
    return "postgresql" not in settings["connector.class"]
