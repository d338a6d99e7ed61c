"""A masked value is in no file of the lake, no log, no event and no quarantine (docs/rules.md)."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from polynya.engine.commands.replay import replay
from polynya.engine.inventory import ProjectTable
from polynya.model.errors import ConfigError
from tests.lab.events import delete, land, upsert
from tests.lab.lab import Feed, Lab, drop, put

CANARY = "canary-7f3a@example.org"
KEY = "key-of-the-hash-9c1b"
HASH = {"mask": {"hash": {"key": {"env": "RULES_KEY"}}}}


def of_mail(*more: dict[str, Any]) -> dict[str, Any]:
    """A task whose columns of mail are hashed."""
    return {"rules": [{"when": {"column": "*mail*"}, **HASH}, *more]}


def texts_of(file: Path) -> bytes:
    """All that a file holds, unpacked."""
    data = file.read_bytes()
    if file.suffix == ".parquet":
        return data + repr(pq.read_table(file).to_pylist()).encode()
    return data + (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else b"")


def lake_of(lab: Lab) -> list[Path]:
    """The files of the tables of a lab."""
    found = lab.spark.sql(f"SHOW TABLES IN {lab.schema}_internal").toArrow().to_pylist()
    roots = []
    for row in found:
        location = (
            lab.spark.sql(f"DESCRIBE TABLE EXTENDED {lab.schema}_internal.{row['tableName']}")
            .where("col_name = 'Location'")
            .collect()[0]["data_type"]
        )
        roots.append(Path(location.removeprefix("file:")))
    return [file for root in roots for file in root.rglob("*") if file.is_file()]


def where_it_is(lab: Lab, text: str, log: str) -> list[str]:
    """Places of a text in files of the lake, events and the log."""
    files = lake_of(lab)
    assert any(file.suffix == ".parquet" for file in files)
    places = [file.name for file in files if text.encode() in texts_of(file)]
    places += [type(event).__name__ for event in lab.events if text in repr(event)]
    return [*places, *(["log"] if text in log else [])]


@pytest.mark.slow
def test_a_masked_value_is_nowhere_in_the_lake(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Through events, bad records, applies, deletes and a reload; the same search finds a name."""
    caplog.set_level(logging.DEBUG, logger="polynya")
    monkeypatch.setenv("RULES_KEY", KEY)
    users = lab.feed(
        task=of_mail({"when": {"column": "size"}, "type": "int"}),
        changes_retention="keep",
    )
    users.apply(
        put(1, 1, name="findme", mail=CANARY, size="1"),
        put(2, 2, mail=CANARY, size=CANARY),
        put(None, 3, mail=CANARY, size="3"),
        put(3, 4, mail=CANARY, size="4") | {"at": CANARY},
    )
    users.apply(put(1, 5, name="findme", work_mail=CANARY), drop(1, 6), put(4, 7, mail=CANARY))

    assert len(users.rejected()) == 3
    ((mail,),) = users.current("mail")
    assert len(mail) == 64
    assert users.types()["size"] == "int"
    assert where_it_is(lab, CANARY, caplog.text) == []
    assert where_it_is(lab, KEY, caplog.text) == []
    assert where_it_is(lab, "findme", caplog.text) != []
    refused = replay_of(users)
    assert refused.code == "POLYNYA-CFG-079"


def replay_of(users: Feed) -> ConfigError:
    """Why quarantined records are not read again."""
    entry = ProjectTable(users.task, users.dataset, None)
    with pytest.raises(ConfigError) as caught:
        replay(users.lab.context("never"), entry, None)
    return caught.value


@pytest.mark.slow
def test_a_hashed_key_of_a_capture_stays_one_key(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Through an update, a change of the key and a delete; broken events show nothing either."""
    caplog.set_level(logging.DEBUG, logger="polynya")
    monkeypatch.setenv("RULES_KEY", KEY)
    capture = lab.capture()
    capture.more = {
        "rules": [
            {"when": {"column": "id"}, **HASH},
            {"when": {"column": "name"}, "rename": "mail"},
            {"when": {"column": "mail"}, **HASH},
            {"when": {"column": "c*"}, "prefix": "at_"},
            {"filter": "city <> 'Nowhere'"},
        ]
    }
    land(
        capture,
        upsert(10, 10, name=CANARY, city="Oslo"),
        upsert(10, 20, name=CANARY, city="Rome"),
        delete(10, 30),
        upsert(11, 30, was=10, name=CANARY, city="Bonn"),
        upsert(12, 40, name=CANARY, city="Lima"),
        upsert(13, 45, name=CANARY, city="Nowhere"),
        delete(12, 50),
    )
    (capture.folder / "9999.jsonl").write_text('{"payload": "' + CANARY + "\n", encoding="utf-8")
    capture.run("always")

    users = capture["users"]
    ((key, mail, city),) = users.current("id", "mail", "at_city")
    assert (len(key), len(mail), city) == (64, 64, "Bonn")
    assert users.totals()["filtered"] == 1
    assert where_it_is(lab, CANARY, caplog.text) == []


@pytest.mark.slow
def test_both_ways_to_compute_a_column_give_one_hash(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path is taken in Arrow, an expression is computed by Spark."""
    monkeypatch.setenv("RULES_KEY", KEY)
    users = lab.feed(
        task={"rules": [{"when": {"column": ["m_*"]}, **HASH}]},
        columns=[
            {"name": "id", "expression": "id"},
            {"name": "m_plain", "expression": "born", "type": "date"},
            {"name": "m_spark", "expression": "to_date(concat(born, ''))"},
        ],
    )
    users.apply(put(1, 1, born="2001-02-03"), put(2, 2, born=None))

    (first, second) = users.current("m_plain", "m_spark")
    assert {first, second} == {(None, None), (first[0] or second[0],) * 2}
