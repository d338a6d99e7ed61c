"""What the demo does, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster_demo.agents import Failed
from tests.streams_demo import judge
from tests.streams_demo.generator import Generator
from tests.streams_demo.judge import Verdict
from tests.streams_demo.program import Program
from tests.streams_demo.project import SCHEMA, SOURCES, STREAM
from tests.streams_demo.servers import SHARDS, Servers

TABLES = {f"{SCHEMA}.{source}_{table}" for source in SOURCES for table in ("lines", "users")}


@dataclass
class Story:
    """The demo as it goes on. `say` takes a line for people.

    `faults` are those that struck.
    """

    folder: Path
    servers: Servers
    program: Program
    generators: Mapping[str, Generator]
    say: Callable[[str], None]
    faults: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """The generator writes, Polynya starts, and rows are in all tables."""
        for generator in self.generators.values():
            generator.start()
        self.program.start()
        self.say("the generator writes to both, `polynya run` lands and transforms")
        self._goes_on()

    def kill_after(self, kind: str, what: str) -> None:
        """kill -9 as soon as something was done, and another start."""
        known = self._count(kind)
        self.program.until(what, lambda: self._count(kind) > known)
        self.program.kill()
        self._fault(f"kill -9 of polynya, when {what}")
        self.program.start()
        self._goes_on()

    def kill_broker(self, down_seconds: float = 3.0) -> None:
        """kill -9 of the broker, and its start a little later. The writer keeps its messages."""
        self.servers.broker.kill()
        self._fault("kill -9 of the broker")
        time.sleep(down_seconds)
        self.servers.broker.start()
        known = self._count("stream.landed", "kafka")
        self.say("the broker is back")
        # One batch may have been under way when it was killed.
        self.program.until(
            "Kafka lands again", lambda: self._count("stream.landed", "kafka") > known + 1
        )
        self.say("Kafka lands again")

    def split_shard(self) -> None:
        """A shard ends, and two others go on with its keys."""
        name = self.servers.split_shard()
        self._fault(f"{name} of Kinesis is split")

    def finish(self) -> list[Verdict]:
        """The generator ends, Polynya processes the rest and ends; then judge."""
        for generator in self.generators.values():
            generator.finish()
        count = sum(len(one.written) for one in self.generators.values())
        self.say(f"the generator has written {count:,} messages; polynya processes the rest")
        self.program.stop()
        self.program.process_the_rest()
        self.say("DuckDB reads what landed and the tables")
        found = [
            verdict
            for source, generator in self.generators.items()
            for verdict in judge.judge(self.folder, source, generator.written)
        ]
        if (read := judge.shards(self.folder)) <= SHARDS:
            raise Failed(f"only {read} shards were read: the split was no fault")
        return found

    def _goes_on(self) -> None:
        """Each table gets rows by the process that was started last."""
        self.program.until("rows in all tables", lambda: self._copied() >= TABLES)
        self.say(f"rows come to all {len(TABLES)} tables")

    def _copied(self) -> set[str]:
        return {one["subject"] for one in self.program.said() if one["type"] == "batch.copied"}

    def _count(self, kind: str, task: str = "") -> int:
        """Events of the last start; of a landing those with records."""
        landed = f"{task}/{STREAM}" if task else ""
        return sum(
            one["type"] == kind and landed in one["subject"] and one.get("records", 1) > 0
            for one in self.program.said()
        )

    def _fault(self, what: str) -> None:
        self.faults.append(what)
        self.say(what)
