"""Conformance cases that come over a stream have the results that they have as files.

These are some of them, out of landed batches. All of them come through a real broker in
`tests/streams/kafka/real_direct.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.formats.landed import batch_name
from tests.formats.stream.streams import landed
from tests.oracle.packs.conformance import groups
from tests.oracle.packs.driver import CommandDriver
from tests.oracle.packs.streams import stream_pack, streamable

pytestmark = pytest.mark.spark
#: The shape that most cases have: with history, and deletes.
SHAPES = 1


@pytest.mark.slow
def test_cases_out_of_landed_batches_have_the_results_of_files(
    driver: CommandDriver, tmp_path: Path
) -> None:
    several = sorted(streamable(groups("given", alone=False)), key=lambda one: -len(one.cases))
    chosen = several[:SHAPES]
    pack = stream_pack(tmp_path, chosen)
    pack.write_project()
    sent = dict.fromkeys((group.name for group in chosen), 0)
    for step in range(pack.steps):
        for name, messages in pack.messages(step).items():
            folder = tmp_path / "landing" / "in" / name
            folder.mkdir(parents=True, exist_ok=True)
            data = landed([one.value for one in messages], step + 1, first=sent[name])
            (folder / batch_name(step + 1)).write_bytes(data)
            sent[name] += len(messages)
    driver.run_project(tmp_path, "always")

    results = driver.query(tmp_path, [group.statement() for group in chosen])

    found = [
        text for group, rows in zip(chosen, results, strict=True) for text in group.mismatches(rows)
    ]
    assert not found, "\n".join(found)
    assert sum(len(group.cases) for group in chosen) >= 15
