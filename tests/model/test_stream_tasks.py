"""What a storage task over landed batches of a stream may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polynya.model.config.task import resolved
from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from tests.projects import write_project

TASK = """\
apiVersion: polynya/v1
kind: storage
name: facts
schema: web
landing: {{path: clicks, format: {format}{landing}}}
datasets:
  - {{name: users, keys: [id]{dataset}}}
"""


def loaded(folder: Path, dataset: str = "", landing: str = "", **how: Any) -> LoadedProject:
    text = TASK.format(format=how.get("format", "stream"), dataset=dataset, landing=landing)
    environment = {"PASSWORD": "s3cr3t"}
    return load_project(write_project(folder, facts=text), environment=environment)


def said(folder: Path, dataset: str = "", landing: str = "", **how: Any) -> str:
    with pytest.raises(ConfigErrors) as caught:
        loaded(folder, dataset, landing, **how)
    return "\n".join(f"{one.code} {one}" for one in caught.value.errors)


def test_a_dataset_reads_the_folder_of_its_name(tmp_path: Path) -> None:
    (task,) = loaded(tmp_path).tasks

    final = resolved(task, task.datasets[0])

    assert (final.landing.folder, final.landing.glob) == ("clicks", "users/*")
    assert "hdr__kafka_offset" in final.events.except_columns


@pytest.mark.parametrize("path", ["*", "clicks/*", "a/b/*"])
def test_it_may_read_another_one(tmp_path: Path, path: str) -> None:
    (task,) = loaded(tmp_path, f", path: '{path}'").tasks

    assert resolved(task, task.datasets[0]).landing.glob == path


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (", path: '*/*'", "reads all files of one folder"),
        (", path: 'users/batch-1*'", "reads all files of one folder"),
        (", path: users", "reads all files of one folder"),
        (", initial_load: 'x/*'", "not for format `stream`"),
        (", extracts: {each: file}", "not for format `stream`"),
        (", columns: {hdr__kafka_offset: int}", "reserved for Polynya"),
        (", sequence_by: [hdr__kafka_ofset]", "reserved for Polynya"),
    ],
)
def test_what_it_may_not_say(tmp_path: Path, dataset: str, message: str) -> None:
    assert message in said(tmp_path, dataset)


def test_header_columns_are_those_of_streams(tmp_path: Path) -> None:
    ordered = ", sequence_by: [hdr__kafka_offset], timestamp: hdr__kafka_timestamp"

    assert loaded(tmp_path / "stream", ordered).tasks
    assert said(tmp_path / "json", ordered, format="json").count("only format `stream` has it") == 2


def test_the_password_of_a_registry_is_never_in_the_file(tmp_path: Path) -> None:
    registry = ', schema_registry: {url: "https://registry", user: ann, password: "%s"}'

    (task,) = loaded(tmp_path / "right", landing=registry % "${env:PASSWORD}").tasks
    wrong = said(tmp_path / "wrong", landing=registry % "s3cr3t")

    assert task.landing.schema_registry is not None
    assert "s3cr3t" not in repr(task)
    assert "POLYNYA-CFG-035" in wrong
    assert "landing.schema_registry.password" in wrong
    assert "s3cr3t" not in wrong
    foreign = said(
        tmp_path / "json",
        ", sequence_by: [s]",
        ", schema_registry: {url: 'http://r'}",
        format="json",
    )
    assert "only for formats `debezium`, `stream`" in foreign
