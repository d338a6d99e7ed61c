"""A server whose project folder follows a configuration bucket."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from polynya.model.errors import ConfigError
from polynya.observe.events import Event
from polynya.server.app import app_of
from polynya.server.configuration import FollowedConfiguration
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from polynya.store.config_bucket import BucketSource, ConfigBucket, Origin
from polynya.testing.fakes import FakeClock, MemoryObjectStore

PROJECT = b"""apiVersion: polynya/v1
kind: project
name: shop
targets:
  prod: {landing: ./landing, warehouse: ./warehouse}
"""
TASK = b"""apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: json}
datasets:
  - {name: users, keys: [id], sequence_by: [seq]}
"""
NAME = "s3://acme-config/project"


def push(bucket: MemoryObjectStore, **tasks: bytes) -> None:
    files = {"polynya.yml": PROJECT, **{f"tasks/{name}.yml": one for name, one in tasks.items()}}
    origin = Origin("ann", FakeClock().now())
    ConfigBucket(bucket, NAME).push(files, origin, met=None, overwrite_edits=True)


def following(bucket: MemoryObjectStore, folder: Path) -> FollowedConfiguration:
    told: list[Event] = []
    made = FollowedConfiguration(folder, bucket, NAME, told.append)
    made.begin()
    return made


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.yml"))


def test_the_folder_becomes_what_is_in_force_and_follows_each_push(tmp_path: Path) -> None:
    bucket = MemoryObjectStore()
    push(bucket, users=TASK, old=TASK.replace(b"name: users", b"name: old"))

    followed = following(bucket, tmp_path)
    assert names(tmp_path) == ["polynya.yml", "tasks/old.yml", "tasks/users.yml"]
    (tmp_path / ".polynya" / "operations").mkdir()

    push(bucket, users=TASK + b"# edited\n")
    followed.follow()
    assert names(tmp_path) == ["polynya.yml", "tasks/users.yml"]
    assert (tmp_path / "tasks" / "users.yml").read_bytes() == TASK + b"# edited\n"
    # What the server keeps of its own stays, and so does the right to follow after a restart.
    assert (tmp_path / ".polynya" / "operations").is_dir()
    following(bucket, tmp_path)


def test_a_folder_with_a_project_of_its_own_is_left_alone(tmp_path: Path) -> None:
    bucket = MemoryObjectStore()
    push(bucket, users=TASK)
    (tmp_path / "polynya.yml").write_bytes(PROJECT + b"# mine\n")

    with pytest.raises(ConfigError, match="does not follow") as refused:
        following(bucket, tmp_path)

    assert refused.value.code == "POLYNYA-SRV-061"
    assert (tmp_path / "polynya.yml").read_bytes() == PROJECT + b"# mine\n"


def test_a_bucket_to_which_nothing_was_pushed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        following(MemoryObjectStore(), tmp_path)
    assert refused.value.code == "POLYNYA-BKT-006"


def client_of(followed: FollowedConfiguration, folder: Path) -> TestClient:
    return TestClient(app_of(ServerState(folder, None, SystemClock(), followed=followed)))


def test_a_change_through_the_api_is_in_the_bucket_for_the_nodes(tmp_path: Path) -> None:
    bucket = MemoryObjectStore()
    push(bucket, users=TASK)
    followed = following(bucket, tmp_path)
    client = client_of(followed, tmp_path)
    path, url = "tasks/users.yml", "/api/v1/documents/tasks/users.yml"

    etag = client.get(url).headers["ETag"]
    assert client.put(url, content=TASK + b"# one\n", headers={"If-Match": etag}).is_success
    assert BucketSource(bucket, NAME).read().files[path] == TASK + b"# one\n"
    assert BucketSource(bucket, NAME).read().edited == (path,)
    new = {"If-None-Match": "*"}
    other = TASK.replace(b"users", b"orders")
    assert client.put("/api/v1/documents/tasks/orders.yml", content=other, headers=new).is_success
    etag = client.get(url).headers["ETag"]
    assert client.delete(url, headers={"If-Match": etag}).is_success

    followed.follow()
    assert names(tmp_path) == ["polynya.yml", "tasks/orders.yml"]
    assert set(BucketSource(bucket, NAME).read().files) == {"polynya.yml", "tasks/orders.yml"}


def test_a_change_on_an_older_version_than_that_of_the_bucket_is_refused(tmp_path: Path) -> None:
    bucket = MemoryObjectStore()
    push(bucket, users=TASK)
    followed = following(bucket, tmp_path)
    client = client_of(followed, tmp_path)
    url = "/api/v1/documents/tasks/users.yml"
    etag = client.get(url).headers["ETag"]
    bucket.put("current/tasks/users.yml", TASK + b"# of another\n")

    answer = client.put(url, content=TASK + b"# mine\n", headers={"If-Match": etag})

    assert (answer.status_code, answer.json()["code"]) == (412, "POLYNYA-SRV-008")
    assert bucket.get("current/tasks/users.yml") == TASK + b"# of another\n"
    followed.follow()
    assert client.get(url).content == TASK + b"# of another\n"


def test_a_bucket_that_cannot_be_read_is_told_once_and_the_folder_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polynya.server.configuration.EVERY_SECONDS", 0.01)
    bucket, told = MemoryObjectStore(), list[Event]()
    push(bucket, users=TASK)
    followed = FollowedConfiguration(tmp_path, bucket, NAME, told.append)
    followed.begin()
    bucket.put("pushed.json", b"broken")

    followed.start()
    for _ in range(500):
        if told:
            break
        SystemClock().sleep(0.01)
    SystemClock().sleep(0.1)
    followed.stop()

    assert [one.type for one in told] == ["configuration.unread"]
    assert names(tmp_path) == ["polynya.yml", "tasks/users.yml"]
