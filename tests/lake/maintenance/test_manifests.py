"""Many small manifests become one, and our steps go on over it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.manifests import rewrite_manifests
from tests.lab.lab import Lab, drop, put
from tests.lab.owned import copied, owned, step

pytestmark = pytest.mark.slow


def test_many_manifests_become_one(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 1, name="Ben"))
    lab.spark.sql(
        f"ALTER TABLE {users.relation} "
        "SET TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false')"
    )
    table = owned(users)
    for number in range(2, 6):
        copied(users, table, put(1, number, name=f"v{number}"), put(number, number, name="new"))
    limits = ActionLimits(datetime.now(UTC))
    views = users.current("id", "name"), users.history("id", "name")
    assert rewrite_manifests(table, limits=limits, many=99).commits == 0

    manifests, joined = (
        table.table.data_manifests(),
        lab.rows(f"SELECT count(*) FROM {users.relation}.manifests WHERE content = 0"),
    )
    assert joined == [(manifests,)]

    done = rewrite_manifests(table, limits=limits, many=3)

    assert (done.commits, done.files_added) == (1, 1)
    assert table.table.data_manifests() == 1 < manifests
    assert (users.current("id", "name"), users.history("id", "name")) == views
    step(users, table, drop(2, 9))
    assert [row[0] for row in users.current("id")] == [1, 3, 4, 5]


def test_it_gives_way(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    table = owned(users)

    done = rewrite_manifests(
        table, limits=ActionLimits(datetime.now(UTC), give_way=lambda: True), many=1
    )

    assert (done.commits, done.whole, done.why) == (0, False, "a step of the table waits")
