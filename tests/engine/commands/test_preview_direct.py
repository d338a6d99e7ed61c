"""A stream that never lands is looked at in its source, and stays as it was."""

from __future__ import annotations

import pytest

from polynya.engine.commands.preview_fold import DatasetPreview
from polynya.engine.commands.preview_project import previews
from polynya.model.errors import OperationError, PolynyaError
from polynya.model.loader import load_project
from tests.engine.tasks.direct_table import DirectTable, message
from tests.lab.lab import Lab
from tests.model.test_directs import CLICKS, FACTS
from tests.projects import PROJECT, write_project
from tests.streams.kafka.fake import FakeKafka

TRANSFORM = """\
apiVersion: polynya/v1
kind: streaming_transform
name: facts
from: clicks
schema: SCHEMA
mode: merge
columns: [{name: id, expression: id, type: bigint, key: 1}]
soft_delete: gone
history: true
partition_by: none
"""


def seen_of(facts: DirectTable, tmp_path, where) -> DatasetPreview | PolynyaError:
    landing = CLICKS.replace("[clicks, taps]", "[clicks]")
    transform = TRANSFORM.replace("SCHEMA", facts.lab.schema)
    target = PROJECT.replace("./warehouse", str(where))
    folder = write_project(tmp_path, project=target, clicks=landing, facts=transform)
    project = load_project(folder)
    (seen,) = previews(
        project, lambda _, __: True, lambda: facts.lab.spark, limit=5, opens=lambda _: facts.source
    )
    return seen


def test_the_next_messages_are_shown_and_nothing_is_read_for_good(lab: Lab, tmp_path) -> None:
    facts = DirectTable(lab)
    facts.partition.add(message(1, name="Ann"), b"no json", message(2, name="Ben"))
    first = seen_of(facts, tmp_path, lab.project / "warehouse")
    facts.run()
    facts.partition.add(message(1, name="Anna"))
    then = seen_of(facts, tmp_path, lab.project / "warehouse")
    facts.run()

    assert isinstance(first, DatasetPreview)
    assert isinstance(then, DatasetPreview)
    assert [row.values["name"] for row in first.rows] == ["Ann", "Ben"]
    assert [one.rule for one in first.refused] == ["bad_json"]
    assert (first.is_new, then.is_new) == (True, False)
    assert [row.values["name"] for row in then.rows] == ["Anna"]
    assert facts.look.current("id", "name") == [(1, "Anna"), (2, "Ben")]


def test_a_source_without_the_stream_is_an_error(tmp_path) -> None:
    landing = CLICKS.replace("[clicks, taps]", "[clicks]")
    facts = FACTS.replace("stream: clicks\n", "")
    project = load_project(write_project(tmp_path, clicks=landing, facts=facts))

    [seen] = previews(
        project, lambda _, __: True, lambda: pytest.fail("asks Spark"), limit=1,
        opens=lambda _: FakeKafka("clicks"),
    )  # fmt: skip

    assert isinstance(seen, OperationError)
    assert seen.code == "POLYNYA-STR-064"
