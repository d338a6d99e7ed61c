"""The source changes its shape while rows are stored and pending; nothing is lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from polynya.lake.read.catalog_views import drop_views
from polynya.lake.read.verify import verify
from polynya.lake.table.suspension import resume
from polynya.model.errors import InternalError, SuspendedError, TaskStoppedError
from tests.formats.debezium.builders import an_event, with_schema
from tests.lab.chosen import slow
from tests.lab.events import land, truncate, upsert
from tests.lab.lab import Capture, Lab
from tests.scenarios.kills import killed_at

NOT_SENT = "__debezium_unavailable_value"


def rows(capture: Capture, *states: dict[str, Any], types: dict[str, str], first: int) -> None:
    """Land rows of the table `users` as a source that declares `types` sends them."""
    capture.land(
        *(
            with_schema(
                an_event(
                    "u", after=state, key={"id": state["id"]}, order=None,
                    lsn=first + number, sequence=f'["1","{first + number}"]',
                    schema=capture.lab.schema, table="users", ts_ms=1_000 * (first + number),
                ),
                types,
            )
            for number, state in enumerate(states)
        )
    )  # fmt: skip


def test_an_incompatible_type_waits_and_then_gets_a_column_of_its_own(lab: Lab) -> None:
    users = lab.parquet_feed()
    users.land_table(id=[1, 2], seq=[1, 2], size=[10, 20])
    users.run("always")
    users.land_table(id=[1], seq=[3], size=[11])
    users.run("never")
    users.land_table(id=[2, 3], seq=[4, 5], size=["21", "large"])

    for _ in range(2):
        with pytest.raises(SuspendedError, match="size was bigint and now is string"):
            users.run("never")
    suspension = resume(users.table("somebody"), {"incompatible_type": "apply"})
    users.run("never")
    before = users.current("id", "size", "size_string")
    users.run("always")

    assert suspension.cause == "incompatible_type"
    assert before == [(1, 11, None), (2, 21, "21"), (3, None, "large")]
    assert users.current("id", "size", "size_string") == before
    assert len(users.history("id")) == 5
    assert users.table().state.copy.decisions.accepted == {}


@pytest.mark.slow
def test_a_renamed_column_keeps_its_values_in_every_partition(lab: Lab) -> None:
    capture = lab.capture(schema_evolution={"rename_column": "apply", "drop_column": "apply"})
    old = {"id": "int64", "name": "string", "note": "string"}
    rows(capture, {"id": 1, "name": "Ann", "note": "n1"}, types=old, first=10)
    capture.run("always")
    rows(capture, {"id": 1, "name": NOT_SENT, "note": "n2"}, types=old, first=20)
    capture.run("never")

    # `name` is called `label` from now on, and what was not sent is still found by its old name.
    new = {"id": "int64", "label": "string", "note": "string"}
    rows(capture, {"id": 2, "label": "Ben", "note": "n3"}, types=new, first=30)
    capture.run("never")
    users = capture["users"]
    wanted = [(1, "Ann", "n2"), (2, "Ben", "n3")]
    assert users.current("id", "label", "note") == wanted
    rows(capture, {"id": 2, "label": NOT_SENT, "note": "n4"}, types=new, first=40)
    capture.run("always")
    assert users.current("id", "label", "note") == [(1, "Ann", "n2"), (2, "Ben", "n4")]

    # Another column takes the old name; `note` goes, and comes again with another type.
    again = {"id": "int64", "label": "string", "name": "string"}
    state = {"id": 1, "label": NOT_SENT, "name": "new"}
    rows(capture, state, types=again | {"note": "string"}, first=50)
    capture.run("never")
    rows(capture, {"id": 1, "label": "Anna", "name": NOT_SENT}, types=again, first=60)
    capture.run("never")
    assert users.columns() == ["id", "label", "name"]
    rows(capture, {**state, "note": 7}, types=again | {"note": "int64"}, first=70)
    capture.run("always")

    assert users.types()["note"] == "bigint"
    assert users.current("id", "label", "name", "note") == [
        (1, "Anna", "new", 7), (2, "Ben", None, None),
    ]  # fmt: skip
    found = sorted(users.history("id", "label", "name", "note"), key=lambda line: line[5])
    assert [line[1:4] for line in found if line[0] == 1] == [
        ("Ann", None, None), ("Ann", None, None), ("Ann", "new", None), ("Anna", "new", None),
        ("Anna", "new", 7),
    ]  # fmt: skip


@pytest.mark.parametrize("change", ["rename", slow("drop")])
def test_a_process_that_dies_while_columns_change_is_followed_by_one_that_ends_it(
    lab: Lab, change: str
) -> None:
    users = lab.parquet_feed(schema_evolution={"rename_column": "apply", "drop_column": "apply"})
    users.land_table(id=[1], seq=[1], name=["Ann"], town=["Rome"])
    users.run("always")
    more = {"label": ["Ben"]} if change == "rename" else {}
    users.land_table(id=[2], seq=[2], town=["Oslo"], **more)

    # The first commit takes the table over, the second one is of the state with the new columns.
    with pytest.raises(InternalError), killed_at(2, after=False):
        users.run("never")
    assert users.table().table.column_names().isdisjoint({"name"})
    # Views that must be made at the start cannot be, of columns that the state knows by old names.
    drop_views(lab.spark, [users.view])
    users.run("never")
    users.run("always")

    if change == "rename":
        assert users.current("id", "label") == [(1, "Ann"), (2, "Ben")]
    assert users.columns() == ["id", *(["label"] if change == "rename" else []), "town"]


def test_a_type_that_flips_with_every_batch_needs_two_columns_and_no_more(lab: Lab) -> None:
    users = lab.parquet_feed(schema_evolution={"incompatible_type": "apply"}, history=True)
    for number, size in enumerate([1, "large", 2, "7"]):
        users.land_table(id=[number % 2], seq=[number], size=[size])
        # The clock of this machine runs backwards, too.
        lab.clock.advance(timedelta(seconds=-30))
        users.run("always" if number % 2 else "never")

    assert users.columns() == ["id", "size", "size_string"]
    assert users.current("id", "size", "size_string") == [(0, 2, None), (1, 7, "7")]
    versions = {line[1:3] for line in users.history("id", "size", "size_string")}
    assert versions == {(1, None), (2, None), (None, "large"), (7, "7")}
    assert verify(users.table()).findings == []


def test_a_rename_waits_by_default_and_may_be_taken_for_two_columns(lab: Lab) -> None:
    users = lab.parquet_feed()
    users.land_table(id=[1], seq=[1], name=["Ann"])
    users.run("always")
    users.land_table(id=[2], seq=[2], label=["Ben"])

    with pytest.raises(SuspendedError, match="name seems to be called label now"):
        users.run("always")
    resume(users.table("somebody"), {"rename_column": "ignore"})
    users.run("always")

    assert users.current("id", "name", "label") == [(1, "Ann", None), (2, None, "Ben")]


def test_new_tables_and_truncates_follow_their_policies(lab: Lab) -> None:
    policies = {"new_dataset": "suspend", "truncate": "ignore"}
    capture = lab.capture(schema_evolution=policies)
    # The first run meets its tables in several batches; none of them is new.
    capture.more = {"batch": {"max_rows": 1}}
    land(capture, upsert(1, 10, name="Ann"))
    land(capture, upsert(1, 11, name="Nile"), table="lakes")
    capture.run("always")

    land(capture, truncate(20), upsert(2, 21, name="Ben"))
    land(capture, upsert(1, 22, name="Rome"), table="towns")
    with pytest.raises(SuspendedError, match="a new source table"):
        capture.run("always")
    users, towns = capture["users"], capture["towns"]
    assert users.current("id") == [(1,), (2,)]
    assert users.totals() == {"in": 3, "out": 2, "filtered": 1, "quarantined": 0}
    resume(towns.table("somebody"), {})
    land(capture, upsert(2, 30, name="Oslo"), table="towns")
    capture.run("always")
    assert towns.current("id", "name") == [(1, "Rome"), (2, "Oslo")]

    capture.defaults["schema_evolution"] = {"new_dataset": "ignore"}
    land(capture, upsert(1, 40, name="Tiber"), table="rivers")
    capture.run("always")
    capture.defaults["schema_evolution"] = {"new_dataset": "stop"}
    land(capture, upsert(1, 50, name="Etna"), table="hills")
    with pytest.raises(TaskStoppedError, match="a new source table"):
        capture.run("always")

    members = capture.ledger().table().state.copy.membership.members
    assert [member.rpartition(".")[2] for member in members] == ["lakes", "towns", "users"]


def test_a_control_column_that_the_changes_bring_is_not_new(lab: Lab) -> None:
    users = lab.parquet_feed(
        initial_load="load/*.parquet",
        except_columns=["op", "seq"],
        apply_as_deletes="op = 'D'",
        schema_evolution=dict.fromkeys(
            ("add_column", "widen_type", "incompatible_type", "drop_column", "rename_column"),
            "suspend",
        ),
    )
    users.land_table("load/1.parquet", id=[1, 2], name=["Ann", "Ben"])
    users.apply()
    users.land_table(id=[2, 3], name=["", "Cid"], seq=[10, 11], op=["D", "U"])
    users.apply()
    users.land_table(id=[1], name=["Anna"], seq=[12])
    users.apply()

    assert users.current("id", "name") == [(1, "Anna"), (3, "Cid")]
    assert "schema.changed" not in {event.type for event in lab.events}
