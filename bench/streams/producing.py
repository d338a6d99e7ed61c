"""Messages at a steady rate, sent by Kafka's own console producer in a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from examples.servers.kafka import VERSION, Broker, jars
from polynya.lake.spark import jars as ivy
from polynya.lake.spark.java import find_java

_SMALL: Final = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: Messages go out so often in a second.
_TICKS: Final = 20


@contextmanager
def steady(
    broker: Broker, topic: str, rate: float, message: Callable[[int], str], log: Path
) -> Iterator[int]:
    """So many messages a second until the block ends; gives the number of the process.

    `message`: the text of each, by its number.
    """
    over = threading.Event()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                str(find_java().executable), *_SMALL, "-cp", f"{jars()}/*:{_tools()}",
                "org.apache.kafka.tools.ConsoleProducer",
                "--bootstrap-server", broker.address, "--topic", topic,
                "--command-property", "linger.ms=5",
            ],
            stdin=subprocess.PIPE, stdout=output, stderr=output,
        )  # fmt: skip
        assert process.stdin is not None
        sending = threading.Thread(
            target=_send, args=(process.stdin, rate, message, over), daemon=True
        )
        sending.start()
        try:
            yield process.pid
        finally:
            over.set()
            sending.join()
            process.kill()
            process.wait()


def _send(
    pipe: IO[bytes], rate: float, message: Callable[[int], str], over: threading.Event
) -> None:
    """Write what is due by now, many times a second."""
    began, number = time.monotonic(), 0
    while not over.wait(1 / _TICKS):
        due = int((time.monotonic() - began) * rate)
        pipe.write("".join(f"{message(one)}\n" for one in range(number, due)).encode())
        pipe.flush()
        number = due


def _tools() -> Path:
    """The jar with Kafka's commands, fetched when it is missing."""
    jar = jars() / "tools" / f"kafka-tools-{VERSION}.jar"
    if not jar.is_file():
        jar.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
            found = ivy.retrieve("org.apache.kafka", "kafka-tools", VERSION, Path(scratch), None)
            shutil.move(found, jar)
    return jar
