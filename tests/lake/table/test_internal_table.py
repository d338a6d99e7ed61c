"""The internal table as any reader of Iceberg finds it. Semantics sections 2, 3, 8 and 13."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.lab.lab import Feed, Lab, clear, drop, put
from tests.oracle.packs.read_back import CATALOG

#: Header columns by partition: the published ones, then those that only the engine needs.
PUBLISHED = {
    "changes": {"change_identifier", "operation", "timestamp", "key_hash", "inserted_timestamp"},
    "asset_state": {"copy_change_identifier", "apply_change_identifier"},
    "current": {
        *("key_hash", "from_timestamp", "operation", "inserted_timestamp", "modified_timestamp"),
        "change_identifier",
    },
    "prior": {
        *("key_hash", "from_timestamp", "to_timestamp", "operation", "change_identifier"),
        *("was_current_from_timestamp", "was_current_to_timestamp"),
    },
    "quarantine": {"quarantine"},
}
INTERNAL = {
    "changes": {"copy_change_identifier"},
    "asset_state": {"state"},
    "current": {"timestamp", "was_current_from_timestamp"},
    "prior": {"timestamp"},
}


@pytest.fixture
def users(lab: Lab) -> Feed:
    """A table with rows in every partition."""
    users = lab.feed(history=True)
    users.apply(put(1, 1, name="Ann"), put(1, 2, name="Anna"), put(2, 3, name="Ben"), drop(2, 4))
    users.copy(put(1, 5, name="Annie"), b"{broken")
    return users


def loaded(users: Feed) -> Table:
    """The table as PyIceberg reads it."""
    warehouse = users.lab.project / "warehouse"
    catalog = SqlCatalog(
        CATALOG, uri=f"sqlite:///{warehouse / 'catalog.db'}", warehouse=f"file://{warehouse}"
    )
    return catalog.load_table(users.internal)


def test_each_partition_uses_its_own_header_columns(users: Feed) -> None:
    rows = loaded(users).scan().to_arrow().to_pylist()
    used: dict[str, set[str]] = {}
    for row in rows:
        names = used.setdefault(row["hdr__partition"], set())
        names |= {
            name.removeprefix("hdr__")
            for name, value in row.items()
            if name.startswith("hdr__") and value is not None
        }
    for partition, names in used.items():
        assert PUBLISHED[partition] <= names
        assert names - PUBLISHED[partition] - {"partition"} == INTERNAL.get(partition, set())
    assert used.keys() == PUBLISHED.keys()


def test_it_is_partitioned_by_identity_and_any_v2_reader_reads_it(users: Feed) -> None:
    table = loaded(users)

    assert table.format_version == 2
    (field,) = table.spec().fields
    assert (field.name, str(field.transform)) == ("hdr__partition", "identity")


def test_no_equality_delete_is_ever_written(users: Feed) -> None:
    users.apply(*(put(key, key, name="more") for key in range(20, 30)))
    users.apply(put(1, 3, name="late"), put(20, 40, name="new"), clear(4))

    contents = [
        entry.data_file.content.name
        for snapshot in loaded(users).snapshots()
        for manifest in snapshot.manifests(loaded(users).io)
        for entry in manifest.fetch_manifest_entry(loaded(users).io, discard_deleted=False)
    ]

    assert set(contents) == {"DATA", "POSITION_DELETES"}


def test_every_step_is_one_snapshot(users: Feed) -> None:
    def steps() -> list[str]:
        found = loaded(users).snapshots()
        return [str(one.summary["polynya.step"]) for one in found if one.summary]  # type: ignore[index]

    before = steps()
    users.copy(put(3, 9, name="Cid"))
    users.apply()
    users.apply(put(4, 10, name="Dot"), clear(7))

    # Each run of a test is a new owner.
    grown = steps()[len(before) :]
    assert [step for step in grown if step != "takeover"] == ["copy", "apply", "copy+apply"]


def test_there_is_one_state_row_of_each_kind(users: Feed) -> None:
    states = users.stored("asset_state", "hdr__copy_change_identifier IS NULL")

    assert states == [(False,), (True,)]


def test_the_key_hash_can_be_computed_by_anybody(lab: Lab) -> None:
    kinds = {"day": "date", "price": "decimal(9,2)", "since": "timestamp", "code": "binary"}
    keys = ["id", "part", *kinds, "ok", "share"]
    users = lab.feed(keys=keys, columns=kinds)
    values: dict[str, Any] = {
        **{"part": "a\u00e9 b", "day": "2026-02-03", "price": "7.50", "ok": True, "share": 0.25},
        **{"since": "2026-02-03T04:05:06.5+02:00", "code": "AP8="},
    }

    users.apply(put(-12, 1, **values))

    parts = ["-12", "a\u00e9 b", "2026-02-03", "7.50", "2026-02-03T02:05:06.5Z", "00ff"]
    text = "\x08".join([*parts, "true", "0.25"])
    expected = hashlib.sha1(text.encode(), usedforsecurity=False).digest()
    assert users.stored("current", "hdr__key_hash") == [(expected,)]
    assert users.current("day", "since", "code") == [
        (date(2026, 2, 3), datetime(2026, 2, 3, 2, 5, 6, 500_000, tzinfo=UTC), b"\x00\xff")
    ]


def test_rows_that_did_not_change_are_not_written_again(users: Feed) -> None:
    users.apply()
    before = users.stored("current", "_file", "_pos", "id")

    users.apply(put(7, 20, name="Eve"))

    assert set(before) <= set(users.stored("current", "_file", "_pos", "id"))
