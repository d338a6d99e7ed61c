"""The broker of tests: without its jars they are skipped, but fail where everything is checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from examples.servers import kafka
from examples.servers.kafka import Broker, Secured, UnavailableError
from tests.absent import absent

__all__ = ["Broker", "Secured", "kafka_broker"]


@contextmanager
def kafka_broker(folder: Path, spark: Any, secured: Secured | None = None) -> Iterator[Broker]:
    """A broker that runs; it ends with the block."""
    try:
        kafka.jars()
    except UnavailableError as error:
        absent(str(error))
    with kafka.kafka_broker(folder, spark, secured) as broker:
        yield broker
