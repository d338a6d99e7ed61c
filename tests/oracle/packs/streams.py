"""Conformance cases as messages of streams: the datasets of a pack, which read landed batches.

What a step lands in a file of JSON lines it sends as messages here, so the same has to come out.
Cases of Debezium have another form, and a full load is no part of a stream: they are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class StreamPack:
    """A project whose datasets read a stream each, named like them."""

    directory: Path
    landings: Sequence[Landing]

    @property
    def steps(self) -> int:
        """Number of steps until everything was sent."""
        return Pack(self.directory, self.landings).steps

    def write_project(self, **tasks: str) -> None:
        """Write the configuration; `tasks` are those that land the streams."""
        storage = {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "cases",
            "schema": self.landings[0].schema,
            "landing": {"path": "in", "format": "stream"},
            "datasets": [{"name": one.name, **one.settings} for one in self.landings],
        }
        write_project(self.directory, project=PROJECT, cases=json.dumps(storage), **tasks)

    def messages(self, step: int) -> Mapping[str, list[bytes]]:
        """What is sent in a step, by dataset."""
        return {
            one.name: [json.dumps(row, ensure_ascii=False).encode() for row in one.steps[step]]
            for one in self.landings
            if step < len(one.steps) and one.steps[step]
        }


def stream_pack(directory: Path, several: Sequence[Group]) -> StreamPack:
    """One project with the groups, which have one schema."""
    return StreamPack(directory, [group.landing() for group in several])
