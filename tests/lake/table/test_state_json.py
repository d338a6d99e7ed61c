"""The state in a table is read by newer versions, and by older ones that share the warehouse."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from polynya.formats.batch import FileProgress
from polynya.lake.fold.fold import TruncateEvent
from polynya.lake.table.state import (
    MOST_SHAPE_CHANGES,
    ApplyState,
    CopyState,
    DecidedChange,
    ScheduledLoad,
    Suspension,
)

STARTED = datetime(2026, 6, 1, tzinfo=UTC)
#: What the version before parts had names wrote, field by field.
COPY = """
{"ownership": {"epoch": 2, "owner": "host:17:0a1b2c", "commit": "5d41402abc4b2a76"},
 "files": {"users/1.json": [120, 3, 1], "users/2.json": [80, 1, 0]},
 "schema": {"id": "bigint", "näme": "string"}, "keys": ["id"], "unsent": ["näme"],
 "has_old_keys": true,
 "totals": {"rows_in": 4, "rows_out": 3, "rows_filtered": 0, "rows_quarantined": 1},
 "counters": {"before_images": 2},
 "copied_to": "00000000000000000000000000000000009", "copied_at": "2026-01-01T00:00:09+00:00",
 "pending_since": "2026-01-01T00:00:08+00:00", "newest_event": "2026-01-01T00:00:07+00:00",
 "load_started": "2025-12-31T00:00:00+00:00", "members": ["shop.users"], "settled": true,
 "task": "users",
 "reloading": {"mode": "truncate_and_insert", "number": 1, "started": "2026-01-01T00:00:05+00:00",
               "place": "00000000000000000000000000000000008", "files": {"users/l.json": [9, 2, 1]},
               "rows": 2, "quarantined": 0, "extract": null},
 "reloads": 1, "declared": ["id"], "unsent_texts": {"näme": ["?"]},
 "suspended": {"cause": "add_column", "reason": "a new column", "where": "users/2.json",
               "since": "2026-01-01T00:00:06+00:00"},
 "accepted": {"bad_record": "quarantine"}, "behind": true,
 "settings": {"format": "json", "sequence_by": ["seq"]}, "last_extract": "users/2026-01-01",
 "called": "shop.people"}
"""
APPLY = """
{"ownership": {"epoch": 2, "owner": "host:17:0a1b2c", "commit": "7d793037a0760186"},
 "truncates": [["00000000000000000000000000000000003", "0001", 1767225600000000]],
 "horizon": null, "oldest_tombstone": "2026-01-01T00:00:01+00:00",
 "retaining": {"since": null, "latest": "2026-01-01T00:00:04+00:00", "oldest": null, "rows": 5},
 "applied_to": "00000000000000000000000000000000007", "applied_at": "2026-01-01T00:00:04+00:00",
 "reason": "rows", "applies": 6, "seconds": 0.5, "totals": {"inserted": 3}}
"""
#: What versions since then write besides, with what older tables are taken to hold.
NEW_IN_COPY = {
    "to_changes": None, "soft_deletes": False, "named": None, "former": {}, "expired": {},
    "source": None, "stream": None, "landed": None,
    "unparsed": 0, "eras": [], "key_names": [], "refused": [],
    "inserted": None, "inserted_since": None, "shape_changes": [], "earlier_shape_changes": 0,
    "reloaded": None, "derivation": None, "failures": {},
}  # fmt: skip
NEW_IN_RELOADING = {
    "glob": None, "stream": None, "until": None, "scheduled": None, "due": None,
}  # fmt: skip
NEW_IN_APPLY = {"from_changes": 0, "counted_since": None}


def test_a_copy_state_of_the_version_before_is_read_and_written_as_it_was():
    state = CopyState.from_json(COPY)

    before = json.loads(COPY)
    reloading = before["reloading"] | NEW_IN_RELOADING
    assert json.loads(state.to_json()) == before | NEW_IN_COPY | {"reloading": reloading}
    assert state.ownership.epoch == 2
    assert state.position.files["users/2.json"] == FileProgress(80, 1, complete=False)
    assert state.columns.keys == ["id"]
    assert state.books.totals["rows_quarantined"] == 1
    assert isinstance(state.decisions.suspended, Suspension)
    assert state.membership.called == "shop.people"
    assert state.reloading is not None
    assert state.reloading.files == {"users/l.json": FileProgress(9, 2, complete=True)}


def test_how_far_a_scheduled_load_is_gathered_is_read_as_it_was_written():
    begun = CopyState.from_json(COPY)
    assert begun.reloading is not None
    scheduled = ScheduledLoad(load=7, chunks=3, is_complete=True)
    state = replace(begun, reloading=replace(begun.reloading, scheduled=scheduled))

    assert CopyState.from_json(state.to_json()) == state


def test_an_apply_state_of_the_version_before_is_read_and_written_as_it_was():
    state = ApplyState.from_json(APPLY)

    assert json.loads(state.to_json()) == json.loads(APPLY) | NEW_IN_APPLY
    assert state.truncates == [
        TruncateEvent("00000000000000000000000000000000003", "0001", 1767225600000000)
    ]


def test_fields_that_are_missing_get_their_default_and_newer_ones_are_ignored():
    first = '{"ownership": {"epoch": 1, "owner": "o", "commit": "c"}, "files": {"f": [1, 1, 1]}}'
    newer = json.loads(COPY) | {"invented_later": {"files": 1}}

    assert CopyState.from_json("{}") == CopyState()
    assert CopyState.from_json(first).books.totals == {}
    assert CopyState.from_json(json.dumps(newer)) == CopyState.from_json(COPY)


def test_a_new_state_holds_every_field():
    assert CopyState.from_json(CopyState().to_json()) == CopyState()
    assert json.loads(CopyState().to_json()).keys() == {*json.loads(COPY), *NEW_IN_COPY}


def test_the_newest_schema_changes_are_kept_and_the_others_counted():
    changes = [
        DecidedChange(f"2026-01-01T00:00:00.{number:06}+00:00", "add_column", "a", "propagate")
        for number in range(MOST_SHAPE_CHANGES + 2)
    ]
    state = CopyState().with_shape_changes(changes[:5]).with_shape_changes(changes[3:])

    assert state.shape_changes == changes[2:]
    assert state.earlier_shape_changes == 2
    assert CopyState.from_json(state.to_json()) == state


def test_an_ignored_change_that_comes_with_every_batch_is_kept_once():
    ignored = DecidedChange("2026-01-01T00:00:00+00:00", "drop_column", "a is gone", "ignore")
    later = replace(ignored, at="2026-01-02T00:00:00+00:00")

    assert CopyState().with_shape_changes([ignored, later]).shape_changes == [ignored]


def test_counts_begin_with_the_first_apply_that_counts():
    older = ApplyState(applies=3, totals={"events": 9})
    counting = ApplyState(applies=4, totals={"events": 9, "inserts": 1}, counted_since="then")

    assert ApplyState().counted_from(STARTED) is None
    assert older.counted_from(STARTED) == STARTED.isoformat()
    assert counting.counted_from(STARTED) == "then"
