"""Rows of a local table are read from its files: all of them, or those that may have some keys."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from polynya.engine.answers import answer_embedded
from polynya.engine.project_views import ProjectViews, embedded_view
from polynya.lake.read.committed import CommittedTable, listed_tables
from polynya.lake.warehouse import tables
from polynya.model.headers import Partition
from polynya.model.loader import load_project
from polynya.query import live_rows
from polynya.query.committed_rows import Batches, CommittedRows, RowLimits
from polynya.query.embedded import STATEMENT_LIMITS
from polynya.query.live_rows import Live
from polynya.query.translate import NotEmbeddedError
from polynya.store.data_files import LocalFiles
from tests.lab.lab import Feed, Lab, drop, put
from tests.query.test_answers import project_of


def three_files(lab: Lab) -> Feed:
    """Current in three files: records 1 to 5, 11 to 15 and 21 to 25; 12 is deleted by its place."""
    users = lab.feed()
    for first in (1, 11, 21):
        users.apply(*(put(first + n, 1, name=f"user {first + n}") for n in range(5)))
    users.apply(drop(12, 2))
    return users


def stored(users: Feed, limits: RowLimits | None = None) -> CommittedRows:
    """The rows of the table as its last commit left it."""
    listed = listed_tables(load_project(users.lab.project).target)
    assert listed is not None
    namespace, _, name = users.internal.partition(".")
    return CommittedRows(listed.load_table((namespace, name)), limits)


def ids(rows: Batches) -> list[int]:
    """The keys of rows, ascending."""
    return sorted(key for batch in rows for key in batch.column("id").to_pylist())


def test_row_groups_whose_range_has_none_of_the_keys_are_not_read(lab: Lab) -> None:
    rows = stored(three_files(lab))

    def read_for(keys: list[int | None]) -> list[int]:
        among = rows.among(["id", "name"], {Partition.CURRENT}, pa.table({"id": keys}))
        return ids(among)

    first, second, third = [1, 2, 3, 4, 5], [11, 13, 14, 15], [21, 22, 23, 24, 25]
    assert ids(rows.batches(["id", "name"], {Partition.CURRENT})) == first + second + third
    assert read_for([12, 13]) == second
    assert read_for([5, 11]) == first + second
    assert read_for([7]) == []
    assert read_for([None, 25, 26]) == third


def test_an_answer_with_pending_changes_asks_no_other_reader(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = three_files(lab)
    # The first is late, so that the stored version of its record counts.
    users.copy(put(2, 0, name="late"), put(22, 5, name="new"), put(31, 5, name="more"))
    monkeypatch.delattr(tables, "table_at")

    statement = f"SELECT id, name FROM {lab.schema}.users WHERE id IN (2, 12, 22, 31)"
    _, batches = answer_embedded(project_of(users), statement)

    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert sorted(rows) == [(2, "user 2"), (22, "new"), (31, "more")]


def test_files_with_more_rows_than_a_limit_are_not_read(lab: Lab) -> None:
    limits = RowLimits(rows=14, file_bytes=10**9, memory_bytes=10**9)

    with pytest.raises(NotEmbeddedError, match="15 stored rows; up to 14 are read here"):
        ids(stored(three_files(lab), limits).batches(["id"], {Partition.CURRENT}))


def test_less_is_read_of_a_table_that_is_elsewhere(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = three_files(lab)
    project = project_of(users)
    here = embedded_view(project, ProjectViews(project), f"{lab.schema}.users")
    assert isinstance(here, Live)
    monkeypatch.setattr(live_rows, "FAR_LIMITS", replace(STATEMENT_LIMITS, rows=14))
    # Its files are not, so that only the limit refuses it.
    table = CommittedTable("s3://elsewhere/metadata.json", LocalFiles(), here.table.metadata)
    elsewhere = replace(here, table=table)

    assert ids(here.rows(["id"], STATEMENT_LIMITS)) == [
        *range(1, 6),
        11,
        *range(13, 16),
        *range(21, 26),
    ]
    with pytest.raises(NotEmbeddedError, match="15 stored rows; up to 14 are read here"):
        elsewhere.rows(["id"], STATEMENT_LIMITS)
