"""A preview tells beforehand what a run then does."""

from __future__ import annotations

import pytest

from polynya.engine.commands.preview import preview_of
from polynya.engine.commands.preview_fold import DatasetPreview
from polynya.engine.commands.preview_records import PreviewReader
from polynya.formats.batch import BatchLimits
from polynya.lake.spark.catalog import python_catalog
from polynya.model.errors import SuspendedError
from polynya.model.loader import load_project
from polynya.store.object_store import LocalObjectStore
from tests.lab.lab import Feed, Lab, drop, put


def previewed(lab: Lab, feed: Feed) -> DatasetPreview:
    looking = PreviewReader(
        LocalObjectStore(lab.landing),
        python_catalog(load_project(lab.project).target),
        BatchLimits(),
        lambda _, __: True,
    )
    (look,) = looking.next_records(feed.task)
    return preview_of(look, lambda: lab.spark, limit=10)


def test_what_is_new_to_a_table_and_what_sql_decides(lab: Lab) -> None:
    sql = "lower(op) = 'd'"
    policies = {"add_column": "propagate", "incompatible_type": "suspend"}
    users = lab.feed(apply_as_deletes=sql, delete_mode="soft", schema_evolution=policies)
    users.copy(put(1, 1, name="Ann", n=1))
    users.land(put(2, 2, name="Bob", n=2, city="Rome"), drop(2, 3))
    users.land(put(1, 4, name="Anna", n=3))

    seen = previewed(lab, users)
    users.run()

    assert not seen.is_new
    assert [(c.name, c.type, c.origin) for c in seen.columns] == [
        ("id", "bigint", "table"),
        ("name", "string", "table"),
        ("n", "bigint", "table"),
        ("city", "string", "inferred"),
    ]
    assert [(c.kind, c.policy) for c in seen.changes] == [("add_column", "apply")]
    assert [record.operation for record in seen.records] == ["U", "D", "U"]
    shown = [tuple(row.values.values()) for row in seen.rows]
    assert sorted(shown) == users.current("id", "name", "n", "city", "hdr__deleted")
    assert previewed(lab, users).files == ()


def test_what_would_suspend_it_is_said_before(lab: Lab) -> None:
    users = lab.feed(schema_evolution={"incompatible_type": "suspend"})
    users.copy(put(1, 1, n=1))
    users.land(put(1, 2, n="many"))

    seen = previewed(lab, users)

    assert seen.halted == "column n was bigint and now is string: policy `suspend`"
    assert seen.is_refused
    with pytest.raises(SuspendedError, match="column n was bigint"):
        users.run()
    assert str(previewed(lab, users).halted).startswith("the dataset is suspended: ")
