"""Expiry and orphans in S3; `tests/e2e/test_lake_on_s3.py` runs it on a server in its place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.orphans import remove_orphan_files
from polynya.lake.maintenance.snapshots import Keep, expire_snapshots
from polynya.lake.read.verify import verify
from polynya.model.loader import load_project
from tests.aws import client
from tests.lab.lab import Feed, Lab, drop, put
from tests.lab.owned import owned

BUCKET = "acme-lake"


@pytest.fixture
def s3(shared_project: Path) -> Any:
    address = load_project(shared_project).target.aws.endpoint
    assert address is not None
    return client("s3", address)


@pytest.fixture
def users(lab: Lab) -> Feed:
    """A table with versions, deletes, and a pending change."""
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    users.apply(put(1, 3, name="Anna"), drop(2, 4))
    users.copy(put(3, 5, name="pending"))
    return users


def folder_of(users: Feed) -> str:
    return f"tables/{users.internal.replace('.', '.db/')}/"


def objects(s3: Any, users: Feed) -> dict[str, int]:
    """Sizes of everything in the folder of the table, by what follows the folder."""
    folder = folder_of(users)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=folder)
    found = [one for page in pages for one in page.get("Contents", [])]
    return {one["Key"].removeprefix(folder): one["Size"] for one in found}


def seen(users: Feed) -> list[Any]:
    return [users.current("id", "name"), users.history("id", "name"), users.changes("id")]


def in_days(days: int) -> ActionLimits:
    return ActionLimits(datetime.now(UTC) + timedelta(days=days))


def test_what_only_expired_snapshots_reach_is_gone(users: Feed, s3: Any) -> None:
    views, table, before = seen(users), owned(users), objects(s3, users)

    done = expire_snapshots(table, limits=in_days(1), keep=Keep(at_least=1), readers=list)

    after = objects(s3, users)
    gone = {name for name in before if name not in after}
    assert done.commits == 1
    assert done.files_removed == len(gone) > 10
    assert done.freed_bytes == sum(before[name] for name in gone)
    assert seen(users) == views
    assert verify(users.table()).findings == []
    users.apply(put(4, 6, name="last"))
    assert (4, "last") in users.current("id", "name")


def test_only_old_objects_go_that_nothing_reaches(users: Feed, s3: Any) -> None:
    views, table = seen(users), owned(users)
    lost = ["data/hdr__partition=current/0 lost%20.parquet", "metadata/lost-m0.avro"]
    kept = ["notes/by-hand.txt", "metadata/version-hint.text"]
    for name in (*lost, *kept):
        s3.put_object(Bucket=BUCKET, Key=f"{folder_of(users)}{name}", Body=b"seven b")
    before = objects(s3, users)

    assert remove_orphan_files(table, limits=in_days(2)).files_removed == 0
    done = remove_orphan_files(table, limits=in_days(4))

    assert (done.files_removed, done.freed_bytes, done.whole) == (2, 14, True)
    assert before.keys() - objects(s3, users).keys() == {*lost}
    assert seen(users) == views
