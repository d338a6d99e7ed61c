"""Documents of a configuration bucket in S3: changed only as they were read. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.model.loader import load_project
from polynya.server.app import app_of
from polynya.server.bucket_documents import BucketDocuments
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from polynya.store.config_bucket import ConfigBucket, Origin
from polynya.store.configuration import FolderSource
from polynya.store.object_store import ObjectStore
from polynya.store.places import store_at
from tests.aws import REGION, aws_server
from tests.projects import USERS, write_project
from tests.server.test_app import told

PROJECT = """apiVersion: polynya/v1
kind: project
name: shop
targets:
  local:
    landing: ./landing
    warehouse: ./warehouse
    config: s3://acme-config/shop
    aws: {{region: {region}, endpoint: "{endpoint}"}}
"""
TASK = "/api/v1/documents/tasks/users.yml?place=bucket"
OTHER = USERS.replace("name: users\n    keys", "name: people\n    keys")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with aws_server("acme-config") as found:
        yield found


@pytest.fixture
def folder(endpoint: str, tmp_path: Path) -> Path:
    project = PROJECT.format(region=REGION, endpoint=endpoint)
    return write_project(tmp_path, project=project, users=USERS)


@pytest.fixture
def store(folder: Path) -> Iterator[ObjectStore]:
    """The bucket, into which the folder was pushed."""
    target = load_project(folder).target
    found = store_at(target.config, target.aws)
    origin = Origin("ann", SystemClock().now())
    ConfigBucket(found, "s3://acme-config/shop").push(FolderSource(folder).read().files, origin)
    yield found
    for one in list(found.list("")):
        found.delete(one.path)


@pytest.fixture
def client(folder: Path) -> TestClient:
    app = app_of(ServerState(folder, None, SystemClock()))
    return TestClient(app, raise_server_exceptions=False)


def test_a_document_is_changed_where_it_is_in_force(
    folder: Path, store: ObjectStore, client: TestClient
) -> None:
    listed = client.get("/api/v1/documents?place=bucket").json()["items"]
    read = client.get(TASK)
    version = {"If-Match": read.headers["etag"]}
    tried = client.put(f"{TASK}&dry_run=true", content=OTHER, headers=version).json()
    unwritten = store.read("current/tasks/users.yml", 10_000).data
    done = client.put(TASK, content=OTHER, headers=version).json()
    again = client.put(TASK, content=read.text, headers=version)

    assert [one["path"] for one in listed] == ["polynya.yml", "tasks/users.yml"]
    assert (read.text, unwritten.decode()) == (USERS, USERS)
    assert (tried["written"], done["written"]) == (False, True)
    assert "+  - name: people" in done["diff"]
    assert store.read("current/tasks/users.yml", 10_000).data.decode() == OTHER
    assert told(again) == (412, "POLYNYA-SRV-008")
    # The folder of the project is another place.
    assert (folder / "tasks" / "users.yml").read_text() == USERS
    # What a push would lose is known as an edit by hand.
    assert ConfigBucket(store, "bucket").read().bucket.edits == {"tasks/users.yml": "changed"}


def test_a_document_is_made_and_removed(store: ObjectStore, client: TestClient) -> None:
    path, new = "/api/v1/documents/tasks/more.yml?place=bucket", {"If-None-Match": "*"}
    text = USERS.replace("name: users", "name: more").replace("path: users", "path: more")

    made = client.put(path, content=text, headers=new).json()
    twice = client.put(path, content=text, headers=new)
    gone = client.delete(path, headers={"If-Match": made["etag"]}).json()

    assert (made["written"], gone["etag"]) == (True, None)
    assert told(twice) == (412, "POLYNYA-SRV-008")
    assert not any(one.path.endswith("more.yml") for one in store.list("current"))


def test_an_edit_by_another_program_between_check_and_write_is_not_lost(
    folder: Path, store: ObjectStore, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = {"If-Match": client.get(TASK).headers["etag"]}
    checked: Any = BucketDocuments._checked

    def meanwhile(self: BucketDocuments, changes: Any) -> Any:
        found = checked(self, changes)
        store.put("current/tasks/users.yml", USERS.encode() + b"# by hand\n")
        return found

    monkeypatch.setattr(BucketDocuments, "_checked", meanwhile)
    answer = client.put(TASK, content=OTHER, headers=version)

    assert told(answer) == (412, "POLYNYA-SRV-008")
    assert store.read("current/tasks/users.yml", 10_000).data.endswith(b"# by hand\n")


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("tasks/users.yml", USERS.replace("keys:", "kyes:"), "POLYNYA-CFG-"),
        ("access.yml", "kind: access\n", "POLYNYA-ACC-"),
        ("tasks/users.txt", "a", "POLYNYA-SRV-009"),
        ("tasks/%2e%2e/%2e%2e/pushed.json", "{}", "POLYNYA-SRV-009"),
    ],
)
def test_what_the_folder_would_refuse_the_bucket_refuses(
    store: ObjectStore, client: TestClient, path: str, text: str, code: str
) -> None:
    before = {one.path: one.version for one in store.list("")}
    has = path == "tasks/users.yml"
    headers = {"If-Match": client.get(TASK).headers["etag"]} if has else {"If-None-Match": "*"}

    where = f"/api/v1/documents/{path}?place=bucket"
    status, found = told(client.put(where, content=text, headers=headers))

    assert (status in {403, 422}, found.startswith(code)) == (True, True), found
    assert {one.path: one.version for one in store.list("")} == before


def test_without_a_bucket_or_a_push_it_is_said(folder: Path, client: TestClient) -> None:
    assert told(client.get("/api/v1/documents?place=bucket")) == (422, "POLYNYA-BKT-006")
    lines = (folder / "polynya.yml").read_text().splitlines(keepends=True)
    (folder / "polynya.yml").write_text("".join(lines[:-2]))
    assert told(client.get(TASK)) == (422, "POLYNYA-BKT-006")
