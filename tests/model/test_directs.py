"""Landings with `direct: true`, and who reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.model.config.stream_landing import DirectTask
from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from tests.projects import write_project

CLICKS = """\
apiVersion: polynya/v1
kind: streaming_landing
name: clicks
source: {kafka: {bootstrap_servers: "b:9092", topics: [clicks, taps]}}
direct: true
"""
FACTS = """\
apiVersion: polynya/v1
kind: streaming_transform
name: facts
from: clicks
stream: clicks
mode: append_only
"""
TAPS = FACTS.replace("name: facts", "name: taps").replace("stream: clicks", "stream: taps")
AGAIN = FACTS.replace("name: facts", "name: again")
FILES = """\
apiVersion: polynya/v1
kind: storage
name: files
schema: web
landing: {path: clicks, format: stream}
datasets: [{name: clicks, keys: [id]}]
"""


def load(folder: Path, **tasks: str) -> LoadedProject:
    return load_project(write_project(folder, **tasks))


def test_a_transform_reads_the_source_and_the_landing_does_no_work(tmp_path: Path) -> None:
    project = load(tmp_path, clicks=CLICKS, facts=FACTS, taps=TAPS)

    facts, taps = project.works
    assert isinstance(facts, DirectTask)
    assert isinstance(taps, DirectTask)
    assert (facts.reads.name, facts.reads_table, taps.reads_table) == ("clicks", "clicks", "taps")
    assert project.landings == ()
    # The session needs the jars of its source, and an agent sees when that changes.
    assert project.stream_jars == {"kafka"}
    assert "b:9092" in facts.model_dump_json()


def test_defaults_of_the_project_hold_for_it(tmp_path: Path) -> None:
    settings = "apiVersion: polynya/v1\nkind: project\nname: shop\ndefaults: {history: true}\n"
    targets = "targets:\n  local: {landing: ./landing, warehouse: ./warehouse}\n"
    folder = write_project(
        tmp_path,
        project=settings + targets,
        clicks=CLICKS,
        facts=FACTS.replace("append_only", "merge\ncolumns: [{name: id, expression: id, key: 1}]"),
    )

    [dataset] = load_project(folder).datasets()

    assert dataset.kept.history


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ({"clicks": CLICKS}, "POLYNYA-STR-061 tasks/clicks.yml:5:1"),
        (
            {"clicks": CLICKS, "facts": FACTS, "files": FILES},
            "POLYNYA-STR-062 tasks/files.yml:5:11",
        ),
        ({"clicks": CLICKS, "facts": FACTS, "again": AGAIN}, "POLYNYA-STR-063 tasks/facts.yml:4:1"),
        (
            {"clicks": f"{CLICKS}folder: x\n", "facts": FACTS},
            "POLYNYA-STR-060 tasks/clicks.yml:6:1",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(tmp_path: Path, tasks: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        load(tmp_path, **tasks)

    assert said in [f"{one.code} {one.where.split(' ')[0]}" for one in refused.value.errors]
