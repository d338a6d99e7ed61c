"""The live views: one snapshot a query, the same rows before, during and after an apply."""

from __future__ import annotations

import gzip
import json
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from polynya.engine import collaborators
from polynya.lake.read.catalog_views import create_views
from polynya.lake.spark.catalog import CATALOG
from polynya.lake.table import dataset
from polynya.lake.warehouse.check import entries_of
from polynya.model.loader import load_project
from tests.lab.lab import STARTED, Lab, moment, put

PER_STEP = 40


def test_a_query_during_an_apply_sees_no_record_twice_and_misses_none(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = lab.feed()
    users.apply(*(put(key, 1, n=0) for key in range(PER_STEP)))
    users.copy(*(put(key, 2, n=1) for key in range(PER_STEP)))
    committing, looked = threading.Event(), threading.Event()
    real = dataset.commit_row_delta
    seen: list[tuple[Any, ...]] = []

    def slowly(*step: Any) -> int:
        committing.set()
        looked.wait(60)
        return real(*step)

    def look() -> None:
        committing.wait(60)
        statement = f"SELECT count(*), count(DISTINCT id), sum(n) FROM {users.view}"
        for turn in range(6):
            seen.extend(lab.rows(statement))
            if turn == 1:
                looked.set()

    monkeypatch.setattr(dataset, "commit_row_delta", slowly)
    reader = threading.Thread(target=look)
    reader.start()
    users.run("always")
    reader.join(120)

    assert set(seen) == {(PER_STEP, PER_STEP, PER_STEP)}
    assert len(seen) == 6
    assert users.changes("id") == []


def test_current_and_history_of_one_query_are_of_one_snapshot(lab: Lab) -> None:
    """A self-join over both views while copies and applies commit."""
    users = lab.feed()
    users.apply(put(1, 1, n=1))
    both = (
        f"SELECT c.n = h.n FROM {users.view} c JOIN {users.view}__history h "
        "ON c.id = h.id WHERE h.hdr__to_timestamp IS NULL"
    )
    done = threading.Event()
    seen: list[tuple[Any, ...]] = []

    def look() -> None:
        while not done.is_set():
            seen.extend(lab.rows(both))

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for seq in range(2, 5):
            users.land(put(1, seq, n=seq))
            users.run("always" if seq % 2 else "never")
    finally:
        done.set()
        reader.join(120)

    assert set(seen) == {(True,)}


def test_history_says_where_a_version_is_stored(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann"), put(1, 2, name="Anna"))
    users.copy(put(1, 3, name="Annie"), put(2, 4, name="Ben"))

    stores = lab.rows(f"SELECT name, hdr__store FROM {users.view}__history")

    expected = {"Ann": "PRIOR", "Anna": "CURRENT", "Annie": "CHANGES", "Ben": "CHANGES"}
    assert dict(stores) == expected


def test_columns_of_the_views_are_those_of_the_contract(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))

    history = lab.spark.sql(f"SELECT * FROM {users.view}__history").columns
    changes = lab.spark.sql(f"SELECT * FROM {users.view}__changes").columns

    assert users.columns() == ["id", "name"]
    assert history == [
        *("id", "name", "hdr__key_hash", "hdr__from_timestamp", "hdr__to_timestamp", "hdr__store"),
        *("hdr__operation", "hdr__deleted"),
        *("hdr__was_current_from_timestamp", "hdr__was_current_to_timestamp"),
    ]
    assert {"hdr__change_identifier", "hdr__operation", "hdr__timestamp"} <= set(changes)


def test_current_can_show_its_headers_and_they_are_what_an_apply_writes(lab: Lab) -> None:
    users = lab.feed(task={"views": {"headers": True, "from_timestamp": True}})
    users.apply(put(1, 1, name="Ann"), put(2, 2, name="Ben"), put(3, 3, name="Eve"))
    users.copy(put(1, 5, name="Anna", city="Leon"), put(2, 1, name="Late"), put(4, 4, name="Di"))
    view = f"{users.view}__whdr"
    names = "id, city, hdr__key_hash, hdr__from_timestamp, hdr__operation, hdr__change_identifier"
    engine = "id, hdr__inserted_timestamp, hdr__modified_timestamp"

    pending = lab.rows(f"SELECT {names} FROM {view}")
    times = lab.rows(f"SELECT {engine} FROM {view}")
    shown = lab.rows(f"SELECT id, name, city, hdr__from_timestamp FROM {users.view}")
    lab.clock.advance(timedelta(hours=1))
    users.apply()

    assert lab.rows(f"SELECT {names} FROM {view}") == pending
    assert [row[4] for row in pending] == ["U", "U", "I", "I"]
    assert shown == [
        (1, "Anna", "Leon", moment(5)),
        (2, "Ben", None, moment(2)),
        (3, "Eve", None, moment(3)),
        (4, "Di", None, moment(4)),
    ]
    assert times == [
        (1, STARTED, None),
        (2, STARTED, STARTED),
        (3, STARTED, STARTED),
        (4, None, None),
    ]
    assert users.columns() == ["id", "name", "city", "hdr__from_timestamp"]


def test_without_history_there_is_no_history_view(lab: Lab) -> None:
    users = lab.feed(history=False)
    users.copy(put(1, 1, name="Ann"))

    views = lab.rows(f"SHOW VIEWS IN polynya.{lab.schema}")

    assert sorted(row[1] for row in views) == ["users", "users__changes", "users__current_stored"]


def test_one_version_of_a_view_has_the_text_of_each_dialect(lab: Lab) -> None:
    others = collaborators.other_dialects()
    users = lab.feed(columns={"id": "bigint", "spot": "struct<x:double>"})
    users.copy(put(1, 1, name="Ann", spot={"x": 1.5}))

    made = create_views(lab.spark, users.dataset, users.table().shape(), others=others)
    again = create_views(lab.spark, users.dataset, users.table().shape(), others=others)

    suffixes = ("", "__changes", "__current_stored", "__history", "__history_stored")
    assert (made, again) == ([f"{users.view}{suffix}" for suffix in suffixes], [])
    for name in made:
        view = view_metadata(lab, name)
        texts = {one["dialect"]: one["sql"] for one in view["representations"]}
        assert set(texts) == {"spark", "trino", "duckdb"}
        for dialect, text in texts.items():
            sqlglot.parse_one(text, read=dialect)
        assert view["default-namespace"] == [lab.schema]
        # They show what Spark shows, with the types that Spark finds in the text itself.
        analyzed = lab.spark.sql(texts["spark"]).schema
        shown = lab.spark.sql(f"SELECT * FROM {name}").schema
        assert [(one.name, one.dataType) for one in shown] == [
            (one.name, one.dataType) for one in analyzed
        ]
    assert users.current("id", "name", "spot.x") == [(1, "Ann", 1.5)]


def test_spark_cannot_take_a_dialect_from_a_view(lab: Lab) -> None:
    others = collaborators.other_dialects()
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    create_views(lab.spark, users.dataset, users.table().shape(), others=others)

    with pytest.raises(Exception, match="loss of view dialects"):
        lab.spark.sql(f"CREATE OR REPLACE VIEW {users.view} AS SELECT 1 AS id")
    users.copy(put(2, 2, name="Ben", city="Leon"))
    create_views(lab.spark, users.dataset, users.table().shape(), others=others)

    [grown] = {one["sql"] for one in view_metadata(lab, users.view)["representations"]
               if one["dialect"] == "trino"}  # fmt: skip
    assert '"city"' in grown
    assert users.columns() == ["id", "name", "city"]


def view_metadata(lab: Lab, name: str) -> dict[str, Any]:
    """The current version of a view in the newest of its metadata files."""
    [place] = [
        one.metadata
        for one in entries_of(load_project(lab.project).target, CATALOG)
        if one.is_view and one.full_name == name
    ]
    metadata: dict[str, Any] = json.loads(metadata_text(place))
    [version] = [
        one for one in metadata["versions"] if one["version-id"] == metadata["current-version-id"]
    ]
    return version


def metadata_text(place: str) -> bytes:
    data = Path(place.removeprefix("file:")).read_bytes()
    return gzip.decompress(data) if place.endswith(".gz.metadata.json") else data
