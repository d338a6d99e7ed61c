"""Which objects of the landing bucket are for the tasks of a cluster, as its leader writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from polynya.cluster.control.leader_document import LeaderDocumentWriter
from polynya.cluster.control.own_landing import (
    LANDING,
    OwnLanding,
    own_landing,
    starts_within,
)
from polynya.cluster.coordination.member_state import MemberState
from polynya.cluster.coordination.store import DocumentStore
from polynya.model.error_catalogue.cluster import CLUSTER_OBJECT_UNREADABLE
from polynya.model.loader import load_project
from polynya.model.names import S3Location
from polynya.testing.fakes import FakeClock, MemoryObjectStore
from tests.cluster.fakes import PROJECT

BUCKET = S3Location("land")
HEAD = "apiVersion: polynya/v1\n"
DATASET = "  - {name: NAME, path: 'PATH', keys: [id], sequence_by: [at]}\n"
STREAM = """kind: streaming_landing
name: clicks
source: {kafka: {bootstrap_servers: "broker:9092", topics: [clicks], properties: {security.protocol: SSL}}}
"""  # noqa: E501 - YAML
FILES = """kind: streaming_landing
name: drops
folder: landed/drops
source: {files: {url: "s3://BUCKET/incoming", pattern: "<yyyy>/<MM>/<dd>/*.json"}}
"""
CAPTURE = "kind: landing\nname: shop_db\nconnection: shop\ntables: {include: ['public.*']}\n"
CONNECTION = """apiVersion: polynya/v1
kind: connection
type: postgresql
host: localhost
database: shop
user: polynya
password: ${env:PASSWORD}
"""


def storage(path: str, datasets: Mapping[str, str], *, format_: str = "json") -> str:
    listed = "".join(
        DATASET.replace("NAME", name).replace("PATH", glob) for name, glob in datasets.items()
    )
    of_all = f"datasets:\n{listed}" if listed else ""
    return (
        f"{HEAD}kind: storage\nname: shop\nschema: shop\n"
        f"landing: {{path: {path}, format: {format_}}}\n{of_all}"
    )


def prefixes(tmp_path: Path, *tasks: str, landing: Any = BUCKET) -> tuple[str, ...]:
    """Of these tasks, each a file of one project."""
    for name, text in {"polynya.yml": PROJECT, "connections/shop.yml": CONNECTION}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tasks").mkdir()
    for number, text in enumerate(tasks):
        (tmp_path / f"tasks/{number}.yml").write_text(text)
    project = load_project(tmp_path, environment={"PASSWORD": "x"})
    found = own_landing(landing, project.works)
    assert found is not None
    assert found.bucket == landing.bucket
    return found.prefixes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (storage("orders", {"a": "*.json"}), ("orders/",)),
        (storage("in", {"a": "a/*", "b": "b-*.json", "c": "c"}), ("in/a/", "in/b-", "in/c")),
        # The outermost ones, each once.
        (storage("in", {"a": "a/*", "b": "a/b/*", "c": "[ab]*"}), ("in/",)),
        (storage("db", {}, format_="debezium"), ("db/",)),
        (HEAD + STREAM, ("clicks/",)),
        (HEAD + CAPTURE, ("shop_db/",)),
        (HEAD + FILES.replace("BUCKET", "land"), ("incoming/", "landed/drops/")),
        (HEAD + FILES.replace("BUCKET", "elsewhere"), ("landed/drops/",)),
    ],
    ids=["folder", "globs", "outermost", "found tables", "stream", "capture", "files", "elsewhere"],
)  # fmt: skip
def test_what_a_task_reads_or_lands_is_its_own(
    tmp_path: Path, text: str, found: tuple[str, ...]
) -> None:
    assert prefixes(tmp_path, text) == found


def test_the_first_files_of_a_dataset_count_too(tmp_path: Path) -> None:
    text = storage("in", {"a": "new/*"}).replace("keys:", "initial_load: full/*, keys:")

    assert prefixes(tmp_path, text) == ("in/full/", "in/new/")


def test_the_marker_of_an_extract_counts(tmp_path: Path) -> None:
    """It lands last, and its name is not that of the files."""
    text = storage("in", {"a": "daily/day-*/*"}).replace(
        "sequence_by: [at]", "extracts: {each: folder}"
    )

    assert prefixes(tmp_path, text) == ("in/daily/",)


def test_prefixes_are_keys_of_the_bucket(tmp_path: Path) -> None:
    text = storage("orders", {"a": "*"})

    assert prefixes(tmp_path, text, landing=S3Location("land", "raw/eu")) == ("raw/eu/orders/",)


def test_of_a_cluster_without_tasks_nothing_is_its_own(tmp_path: Path) -> None:
    assert prefixes(tmp_path) == ()


def test_what_lands_in_a_folder_of_the_machine_has_no_document() -> None:
    assert own_landing(Path("/landing"), ()) is None


class Leader:
    """A node that leads, and what it knows."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryObjectStore(), FakeClock()
        self.state = MemberState("n1.aa", leading=True)
        self.writer = self.starts()
        self.writes = 0

    def starts(self) -> LeaderDocumentWriter[OwnLanding]:
        documents = DocumentStore(self.store, "shop", Random(1))
        self.writer = LeaderDocumentWriter(documents, self.clock, OwnLanding, LANDING)
        return self.writer

    def knows(self, *found: str) -> None:
        self.writer.know(OwnLanding(bucket="land", prefixes=found))
        self.turn()

    def turn(self) -> None:
        self.clock.sleep(10.0)
        self.writer(self.state)

    def object(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.store.get(f"shop/{LANDING}"))
        return found


@pytest.fixture
def leader() -> Leader:
    return Leader()


def test_a_leader_writes_when_its_configuration_changes(leader: Leader) -> None:
    leader.turn()
    assert list(leader.store.list()) == []

    leader.knows("orders/")
    first = leader.object()
    leader.knows("orders/")
    assert leader.object() == first
    leader.knows("orders/", "web/")

    assert (first["v"], first["bucket"], first["prefixes"]) == (1, "land", ["orders/"])
    assert leader.object()["prefixes"] == ["orders/", "web/"]


def test_a_node_that_does_not_lead_writes_nothing(leader: Leader) -> None:
    leader.state = replace(leader.state, leading=False)
    leader.knows("orders/")

    assert list(leader.store.list()) == []


def test_a_new_leader_leaves_what_is_right(leader: Leader) -> None:
    leader.knows("orders/")
    before = leader.object()
    leader.starts()
    leader.knows("orders/")

    assert leader.object() == before


def test_a_leader_that_leads_again_corrects_what_others_wrote(leader: Leader) -> None:
    leader.knows("orders/")
    first = leader.writer
    leader.starts()
    leader.knows("web/")
    for leading in (False, True):
        leader.clock.sleep(10.0)
        first(replace(leader.state, leading=leading))

    assert leader.object()["prefixes"] == ["orders/"]


def test_what_a_store_refused_is_written_later(
    leader: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> bool:
        raise CLUSTER_OBJECT_UNREADABLE(where="landing", why="no answer")

    with monkeypatch.context() as broken:
        broken.setattr(leader.store, "put_if_absent", refused)
        leader.knows("orders/")
    assert list(leader.store.list()) == []
    leader.turn()

    assert leader.object()["prefixes"] == ["orders/"]


def test_a_document_of_a_newer_version_stays(leader: Leader) -> None:
    newer = b'{"v": 2, "nonce": "a", "bucket": "land", "globs": ["**"]}'
    leader.store.put(f"shop/{LANDING}", newer)
    leader.knows("orders/")

    assert leader.store.get(f"shop/{LANDING}") == newer


def test_it_is_read_as_it_is_written(leader: Leader) -> None:
    from polynya_constructs.functions.wake.own_landing import parsed

    leader.knows("orders/", "web/clicks-")
    own = parsed(leader.store.get(f"shop/{LANDING}"), "land")

    keys = ["orders/a.json", "orders", "ordersx/a", "web/clicks-1", "web/x", ""]
    assert [key for key in keys if own.has(key)] == ["orders/a.json", "web/clicks-1"]


@pytest.mark.parametrize(
    ("prefix", "starts", "within"),
    [
        ("", ["shop/orders/", ""], ["shop/orders/", ""]),
        ("in/raw", ["in/raw/shop/orders/"], ["shop/orders/"]),
        # Anywhere in the bucket, or in a folder around this one.
        ("in/raw", ["", "in/"], ["", ""]),
        ("in/raw", ["in/rawer/shop/", "out/"], []),
    ],
)
def test_keys_that_landed_are_paths_of_the_landing_location(
    prefix: str, starts: list[str], within: list[str]
) -> None:
    assert list(starts_within(S3Location("land", prefix), starts)) == within
