"""Keys of events are held against the rows, against each other and against those of the table."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.formats.batch import DatasetBatch
from polynya.formats.debezium.envelope import Flattening
from polynya.formats.debezium.tables import DebeziumScope, TableSettings
from polynya.model.config.evolution import SchemaEvolution
from tests.formats.debezium.builders import (
    an_event,
    capture,
    read_capture,
    reread_line,
    the_table,
    with_schema,
)

ROW = {"id": 1, "tenant": 1, "v": "a"}
NARROW, WIDE = {"id": 1}, {"tenant": 1, "id": 1}


def said(batch: DatasetBatch) -> list[tuple[str, str, str | None, str | None]]:
    """What a batch says of keys."""
    changes = [change for change in batch.changes if change.kind == "change_key"]
    return [(one.kind, one.policy, one.old, one.new) for one in changes]


@pytest.mark.parametrize(
    ("first", "then", "old", "new"),
    [
        (NARROW, WIDE, "(id)", "(tenant, id)"),
        (WIDE, NARROW, "(tenant, id)", "(id)"),
        (NARROW, {"tenant": 1}, "(id)", "(tenant)"),
        (NARROW, None, "(id)", "no key"),
        (None, NARROW, "no key", "(id)"),
    ],
    ids=["gains", "loses", "another", "lost", "appears"],
)
@pytest.mark.parametrize("schemas", [False, True], ids=["plain", "with schemas"])
def test_a_key_that_names_other_columns_waits_for_a_decision(
    first: Any, then: Any, old: str, new: str, *, schemas: bool
) -> None:
    events = [an_event("c", ROW, key=first, lsn=1), an_event("u", ROW, key=then, lsn=2)]
    if schemas:
        kinds = {"id": "int32", "tenant": "int32", "v": "string"}
        events = [with_schema(event, kinds) for event in events]

    assert said(the_table(*events)) == [("change_key", "suspend", old, new)]


def test_the_keys_of_a_table_are_remembered_from_batch_to_batch() -> None:
    later = the_table(an_event("u", ROW, key=WIDE), keys={"w.t": ("id",)}, known={"w.t": {}})

    assert said(later) == [("change_key", "suspend", "(id)", "(tenant, id)")]
    assert later.keys == ("id",)


def test_a_key_in_another_order_is_the_same() -> None:
    other = {"id": 1, "tenant": 1}
    batch = the_table(an_event("c", ROW, key=WIDE, lsn=1), an_event("u", ROW, key=other, lsn=2))

    assert said(batch) == []
    assert batch.keys == ("tenant", "id")


def test_a_truncate_has_no_key_and_changes_none() -> None:
    batch = the_table(an_event("c", ROW, key=NARROW, lsn=1), an_event("t", lsn=2, order=2))

    assert said(batch) == []


def test_what_is_accepted_is_known_from_then_on() -> None:
    ignoring = TableSettings(evolution=SchemaEvolution(change_key="ignore"))
    events = [an_event("c", ROW, key=NARROW, lsn=1), an_event("u", ROW, key=WIDE, lsn=2)]
    batch = the_table(*events, scope=DebeziumScope(default=ignoring))

    assert [policy for _, policy, *_ in said(batch)] == ["ignore"]
    assert batch.keys == ("id",)
    assert batch.of_source is not None
    assert batch.of_source.key_names == (("id",), ("tenant", "id"))


def test_configured_keys_suffice_for_all_that_name_no_other_columns() -> None:
    scope = DebeziumScope(default=TableSettings(keys=("tenant", "id")))
    events = [an_event("c", ROW, key=one, lsn=lsn) for lsn, one in enumerate((NARROW, WIDE, None))]

    assert said(the_table(*events, scope=scope)) == []


def test_configured_keys_do_not_hide_a_key_that_gains_a_column() -> None:
    scope = DebeziumScope(default=TableSettings(keys=("id",)))
    events = [an_event("c", ROW, key=NARROW, lsn=1), an_event("u", ROW, key=WIDE, lsn=2)]

    assert said(the_table(*events, scope=scope)) == [
        ("change_key", "suspend", "(id)", "(tenant, id)")
    ]
    assert said(the_table(events[1], scope=scope)) == []


ROUTED = {"id": 1, "__dbz__physicalTableIdentifier": "srv.w.t"}


@pytest.mark.parametrize("schemas", [False, True], ids=["plain", "with schemas"])
def test_a_field_that_only_the_key_has_becomes_a_column(*, schemas: bool) -> None:
    events = [
        an_event("c", {"id": 1, "v": "a"}, key=ROUTED, lsn=1),
        an_event("d", key=ROUTED, before={"id": 1, "v": "a"}, lsn=2),
    ]
    if schemas:
        events = [with_schema(event, {"id": "int32", "v": "string"}) for event in events]
    batch = the_table(*events)

    assert batch.keys == ("id", "__dbz__physicalTableIdentifier")
    assert batch.rejected == ()
    assert batch.rows.column("__dbz__physicalTableIdentifier").to_pylist() == ["srv.w.t"] * 2
    assert batch.rows.column("v").to_pylist() == ["a", None]


def test_a_field_that_only_the_key_has_tells_physical_tables_apart() -> None:
    other = {**ROUTED, "__dbz__physicalTableIdentifier": "srv2.w.t"}
    batch = the_table(
        an_event("c", {"id": 1, "v": "a"}, key=ROUTED, lsn=1),
        an_event("c", {"id": 1, "v": "b"}, key=other, lsn=2),
    )

    keys = zip(*(batch.rows.column(name).to_pylist() for name in batch.keys), strict=True)
    assert len(set(keys)) == 2


def test_a_key_column_that_was_not_sent_comes_from_the_key() -> None:
    unsent = "__debezium_unavailable_value"
    batch = the_table(an_event("u", {"id": unsent, "v": unsent}, key={"id": "k"}))

    assert batch.rows.column("id").to_pylist() == ["k"]
    assert batch.rows.column("__unsent").to_pylist() == [["v"]]


def test_a_row_that_its_key_does_not_name_goes_to_quarantine() -> None:
    batch = the_table(an_event("c", {"id": "****", "v": "a"}, key={"id": "real"}))

    assert [one.rule for one in batch.rejected] == ["key_mismatch"]


def test_a_flattened_row_is_held_against_its_key() -> None:
    scope = DebeziumScope(flattening=Flattening())
    added = {"__op": "c", "__schema": "w", "__table": "t", "__lsn": 5}
    lines = [
        {"key": {"id": 1}, "value": {"id": 1, "tenant": 1, **added}},
        {"key": WIDE, "value": {"id": 1, "tenant": 1, **added, "__lsn": 6}},
        {"key": {"id": 2}, "value": {"id": 1, "tenant": 1, **added, "__lsn": 7}},
    ]
    batch = read_capture(capture(*lines), scope).datasets["w.t"]

    assert said(batch) == [("change_key", "suspend", "(id)", "(tenant, id)")]
    assert [one.rule for one in batch.rejected] == ["key_mismatch"]


def test_a_damaged_file_has_no_say_in_the_keys() -> None:
    good = capture(an_event("c", ROW, key=NARROW))
    import gzip

    broken = gzip.compress(capture(*[an_event("u", ROW, key=WIDE, lsn=2)] * 3))[:-9]
    batch = read_capture({"a": good, "b": broken}).datasets["w.t"]

    assert said(batch) == []


def test_a_record_out_of_quarantine_has_the_keys_of_its_time() -> None:
    raw = capture(an_event("c", ROW, key=NARROW))
    batch = reread_line(raw).datasets["w.t"]

    assert batch.keys == ("id",)
