"""Conformance cases as messages of streams: the datasets of a pack, which read landed batches.

What a step lands in a file it sends as messages here, so the same has to come out. A full load is
no part of a stream: cases with one are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.formats.debezium.messages import Sent, sent
from tests.oracle.packs.conformance import Group
from tests.oracle.packs.pack import Landing, Pack
from tests.projects import PROJECT, write_project


def streamable(several: Sequence[Group]) -> list[Group]:
    """The groups whose cases are events in JSON from the first one on."""
    return [
        group
        for group in several
        if group.cases[0].unmodified is None and not any(case.seed for case in group.cases)
    ]


def captured(several: Sequence[Group]) -> list[Group]:
    """The groups whose cases are events of Debezium."""
    return [group for group in several if group.cases[0].unmodified is not None]


@dataclass(frozen=True)
class StreamPack:
    """A project whose datasets come out of the landed folder `in`.

    Those of JSON read a stream each, named like them. Those of Debezium share all streams, of which
    each has a topic, as connectors make them.
    """

    directory: Path
    landings: Sequence[Landing]

    @property
    def steps(self) -> int:
        """Number of steps until everything was sent."""
        return Pack(self.directory, self.landings).steps

    @property
    def topics(self) -> list[str]:
        """All topics that messages are sent to."""
        return sorted({topic for step in range(self.steps) for topic in self.messages(step)})

    def write_project(self, **tasks: str) -> None:
        """Write the configuration; `tasks` are those that land the streams."""
        first = self.landings[0]
        is_captured = first.format == "debezium"
        storage = {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "cases",
            "schema": first.schema,
            "landing": {"path": "in", "format": "debezium" if is_captured else "stream"},
            "datasets": [self._dataset(one) for one in self.landings],
            **({"include": [f"{first.schema}.*"]} if is_captured else {}),
        }
        write_project(self.directory, project=PROJECT, cases=json.dumps(storage), **tasks)

    @staticmethod
    def _dataset(one: Landing) -> dict[str, Any]:
        if one.format != "debezium":
            return {"name": one.name, **one.settings}
        return {"name": one.name, "source": f"{one.schema}.{one.name}", **one.settings}

    def messages(self, step: int) -> Mapping[str, list[Sent]]:
        """What is sent in a step, by topic."""
        found: dict[str, list[Sent]] = {}
        for one in self.landings:
            for row in one.steps[step] if step < len(one.steps) else ():
                if one.format == "debezium":
                    message = sent(row)
                else:
                    value = json.dumps(row, ensure_ascii=False).encode()
                    message = Sent(value, topic=one.name)
                found.setdefault(message.topic, []).append(message)
        return found


def stream_pack(directory: Path, several: Sequence[Group]) -> StreamPack:
    """One project with the groups, which have one schema."""
    return StreamPack(directory, [group.landing() for group in several])
