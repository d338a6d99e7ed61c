"""What another program does to a table or a view is survived, or refused by name.

The page `docs/serve-catalog.md` has the list. Maintenance by others has tests of its own
(`tests/lake/maintenance/test_other_engines.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from polynya.lake.apply.fast import FastApplier
from polynya.lake.copy.copy import copy_batch
from polynya.lake.fold.live_views import DEFINITION
from polynya.lake.read.verify import verify
from polynya.model.errors import PolynyaError
from tests.lab.lab import STARTED, Feed, Lab, put
from tests.lab.owned import owned

pytestmark = pytest.mark.slow

ROWS = [(1, "Ann"), (2, "Ben"), (3, "Cid"), (4, "Dan")]


@dataclass(frozen=True)
class Case:
    """What the other program does, and the error that the next run ends with, if any.

    `undo` is what its fix says; then the run goes on.
    """

    does: Callable[[Feed], None]
    error: str | None = None
    undo: Callable[[Feed], None] | None = None


def alter(change: str) -> Callable[[Feed], None]:
    """Spark changes the internal table."""

    def does(users: Feed) -> None:
        users.lab.spark.sql(f"ALTER TABLE {users.relation} {change}")

    return does


def sql(statement: str) -> Callable[[Feed], None]:
    """Spark runs a statement about `{table}` or `{view}`."""

    def does(users: Feed) -> None:
        text = statement.format(table=users.relation, view=users.view, name=users.internal)
        users.lab.spark.sql(text).collect()

    return does


def roll_back(users: Feed) -> None:
    """To the snapshot before the newest one."""
    table = users.table().table
    before = table.metadata()["snapshot-log"][-2]["snapshot-id"]
    sql(f"CALL polynya.system.rollback_to_snapshot('{{name}}', {before})")(users)


def replace_view(users: Feed) -> None:
    """By one of another text, which says of itself that it is Polynya's."""
    spark = users.lab.spark
    kept = dict(spark.sql(f"SHOW TBLPROPERTIES {users.view}").collect())
    spark.sql(f"DROP VIEW {users.view}")
    definition = f"'{DEFINITION}' = '{kept[DEFINITION]}'"
    spark.sql(f"CREATE VIEW {users.view} TBLPROPERTIES ({definition}) AS SELECT 1 AS one")


CASES = {
    "a column is added": Case(alter("ADD COLUMN note string")),
    "a column is renamed": Case(
        alter("RENAME COLUMN name TO title"),
        "POLYNYA-LAKE-081",
        alter("RENAME COLUMN title TO name"),
    ),
    "properties are changed": Case(
        alter(
            "SET TBLPROPERTIES ('write.format.default' = 'orc', "
            "'write.delete.mode' = 'copy-on-write', 'write.parquet.compression-codec' = 'gzip')"
        )
    ),
    "the view is dropped": Case(sql("DROP VIEW {view}")),
    "the view is replaced": Case(replace_view),
    "a snapshot is rolled back": Case(roll_back),
    "the table is dropped": Case(sql("DROP TABLE {table}")),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_next_run_goes_on_or_names_what_was_done(lab: Lab, case: Case) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"))
    users.copy(put(3, 3, name="Cid"))

    case.does(users)
    users.land(put(4, 4, name="Dan"))
    if case.error is not None:
        with pytest.raises(PolynyaError) as refused:
            users.run("always")
        assert refused.value.code == case.error
        assert case.undo is not None
        case.undo(users)
    users.run("always")

    assert users.current("id", "name") == ROWS
    assert verify(users.table()).findings == []


def test_a_dropped_column_is_not_made_again_without_its_values(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))

    alter("DROP COLUMN name")(users)
    users.land(put(2, 2, name="Ben"))
    with pytest.raises(PolynyaError) as refused:
        users.run("always")

    assert refused.value.code == "POLYNYA-LAKE-081"
    assert "name" not in users.table().table.column_names()
    # Whoever accepts the loss adds it; the run copies what waits.
    alter("ADD COLUMN name string")(users)
    users.run("always")
    assert users.current("id", "name") == [(1, None), (2, "Ben")]


def test_a_column_that_others_added_does_not_take_values_of_another_type(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1))

    alter("ADD COLUMN size boolean")(users)
    users.land(put(2, 2, size=7))
    with pytest.raises(PolynyaError) as refused:
        users.run("always")

    assert refused.value.code == "POLYNYA-LAKE-082"
    alter("DROP COLUMN size")(users)
    users.run("always")
    assert users.current("id", "size") == [(1, None), (2, 7)]


def test_rows_that_others_append_are_found(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))

    sql(
        "INSERT INTO {table} (hdr__partition, id, name) VALUES "
        "('current', 1, 'twice'), ('elsewhere', 9, 'hidden')"
    )(users)
    users.apply(put(2, 2, name="Ben"))

    # A partition that Polynya does not know is in no view.
    assert (9, "hidden") not in users.current("id", "name")
    assert (2, "Ben") in users.current("id", "name")
    assert verify(users.table()).findings


def test_a_second_state_is_refused(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))

    sql("INSERT INTO {table} SELECT * FROM {table} WHERE hdr__partition = 'asset_state'")(users)
    users.land(put(2, 2, name="Ben"))
    with pytest.raises(PolynyaError) as refused:
        users.run("always")

    assert refused.value.code == "POLYNYA-LAKE-006"


def test_a_table_that_is_dropped_under_its_owner_is_a_named_error(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"))
    table = owned(users)
    batch = users.batch(put(2, 2, name="Ben"))

    sql("DROP TABLE {table}")(users)
    with pytest.raises(PolynyaError) as refused:
        copy_batch(table, batch, FastApplier(), now=STARTED)

    assert refused.value.code == "POLYNYA-LAKE-083"
    users.run("always")
    assert users.current("id", "name") == [(1, "Ann")]
