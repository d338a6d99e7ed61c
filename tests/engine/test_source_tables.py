"""Tables of a capture are renamed and dropped in the source; no row of them is lost."""

from __future__ import annotations

import pytest

from polynya.lake.table.suspension import resume
from polynya.model.config.sources import named_datasets
from polynya.model.errors import ConfigErrors, InternalError, SuspendedError
from tests.lab.events import land, truncate, upsert
from tests.lab.lab import Capture, Lab
from tests.oracle.emit import debezium_lines
from tests.scenarios.kills import killed_at


def land_statement(capture: Capture, commit: int, change: str, *tables: str) -> None:
    """Land what the source tells of a statement about its tables."""
    lines = debezium_lines([truncate(commit)], capture.lab.schema, tables[0], ["id"])
    line = next(line for line in lines if "op" in line["value"])
    names = ",".join(f'"{capture.lab.schema}"."{table}"' for table in tables)
    value = {
        "source": line["value"]["source"],
        "ts_ms": line["value"]["ts_ms"],
        "ddl": f"{change} {names}",
        "tableChanges": [{"type": change, "id": names, "table": None}],
    }
    capture.land({"key": {"databaseName": "d"}, "value": value, "headers": []})


def rename_users(capture: Capture) -> None:
    """The table `users` gets rows, and is called `people` then; `lakes` stays what it is."""
    land(capture, upsert(1, 10, name="Ann"), upsert(2, 11, name="Ben"))
    land(capture, upsert(1, 12, name="Nile"), table="lakes")
    capture.run("always")
    land(capture, upsert(2, 20, name="Bea"))
    land_statement(capture, 21, "ALTER", "users", "people")
    land(capture, upsert(3, 22, name="Cid"), table="people")
    land(capture, upsert(2, 23, name="Ob"), table="lakes")
    with pytest.raises(SuspendedError, match=r"users is called .*people now"):
        capture.run("always")
    assert capture["users"].current("id", "name") == [(1, "Ann"), (2, "Ben")]
    assert capture["lakes"].current("id", "name") == [(1, "Nile"), (2, "Ob")]
    land(capture, upsert(1, 30, name="Anna"), table="people")
    with pytest.raises(SuspendedError):
        capture.run("always")


@pytest.mark.slow
def test_a_renamed_table_goes_on_in_its_dataset(lab: Lab) -> None:
    capture = lab.capture(schema_evolution={"drop_dataset": "apply"}, history=True)
    rename_users(capture)
    users = capture["users"]

    resume(users.table("somebody"), {"rename_dataset": "apply"})
    capture.run("always")
    land(capture, upsert(3, 40, name="Cleo"), table="people")
    capture.run("never")

    assert users.current("id", "name") == [(1, "Anna"), (2, "Bea"), (3, "Cleo")]
    assert len(users.history("id")) == 6
    assert users.totals() == {"in": 6, "out": 6, "filtered": 0, "quarantined": 0}
    land_statement(capture, 50, "DROP", "people")
    land(capture, upsert(4, 51, name="Dan"), table="people")
    capture.run("always")
    assert users.current("id", "name") == [(4, "Dan")]
    members = capture.ledger().table().state.copy.membership.members
    assert [member.rpartition(".")[2] for member in members] == ["lakes", "users"]


def test_a_drop_follows_its_own_policy_and_not_that_of_truncates(lab: Lab) -> None:
    capture = lab.capture(schema_evolution={"drop_dataset": "suspend", "truncate": "suspend"})
    land(capture, upsert(1, 10, name="Ann"), upsert(2, 11, name="Ben"))
    capture.run("always")
    users = capture["users"]
    land_statement(capture, 20, "DROP", "users")
    with pytest.raises(SuspendedError, match="was dropped"):
        capture.run("always")

    resume(users.table("somebody"), {"drop_dataset": "apply"})
    capture.run("always")

    assert users.current("id") == []
    land(capture, upsert(3, 30, name="Cid"), truncate(31))
    with pytest.raises(SuspendedError, match="was emptied"):
        capture.run("always")


_SLOW = [pytest.param(number, marks=pytest.mark.slow) for number in (None, 2, 3, 4, 6, 7)]


@pytest.mark.parametrize("commit", [5, *_SLOW])
def test_a_new_name_may_be_taken_for_a_new_table(lab: Lab, commit: int | None) -> None:
    capture = lab.capture()
    rename_users(capture)

    resume(capture["users"].table("somebody"), {"rename_dataset": "ignore"})
    if commit is not None:
        with pytest.raises(InternalError), killed_at(commit, after=True):
            capture.run("always")
    capture.run("always")
    land(capture, upsert(5, 60, name="Eve"), table="people")
    capture.run("always")

    assert capture["users"].current("id", "name") == [(1, "Ann"), (2, "Bea")]
    assert capture["people"].current("id", "name") == [(1, "Anna"), (3, "Cid"), (5, "Eve")]


def test_a_table_with_a_refused_name_hides_no_other(lab: Lab) -> None:
    capture = lab.capture()
    land(capture, upsert(1, 10, name="Ann"))
    land(capture, upsert(1, 11, name="Bad"), table="Bad Name")

    with pytest.raises(ConfigErrors, match="has a name that no view can have"):
        capture.run("always")

    # What commands ask for the tables of a task.
    members = capture.ledger().table().state.copy.membership.members
    assert list(named_datasets(capture.task, members)) == [f"{lab.schema}.users"]
    assert capture["users"].current("id", "name") == [(1, "Ann")]
    # A name that a table had by its declaration, which is gone, hides no other either.
    assert list(named_datasets(capture.task, [*members, f"{lab.schema}.Bad Name"])) == members
