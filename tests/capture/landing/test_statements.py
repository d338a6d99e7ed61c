"""Statements of a binlog after which the rows of a table are others, or would be misread."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.capture.landing.position import CapturePosition, ResumePoint, TableProgress
from polynya.capture.landing.statements import Misread, as_read, filled_by, misread, replaced_by
from polynya.capture.source import SourceTable


def line(ddl: str, *changes: dict[str, Any]) -> bytes:
    source = {"connector": "mariadb", "db": "w", "file": "binlog.000003", "pos": 70}
    value = {"source": source, "databaseName": "w", "ddl": ddl, "tableChanges": list(changes)}
    return json.dumps({"key": None, "value": value}, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("ddl", "names"),
    [
        ("RENAME TABLE new TO t", ["w.t"]),
        ("rename table t to old, new to t", ["w.old", "w.t"]),
        ("ALTER TABLE new RENAME TO `x`.`t`", ["x.t"]),
        ("ALTER TABLE t EXCHANGE PARTITION a WITH TABLE x.`part 1`", ["w.t", "x.part 1"]),
        ("ALTER TABLE t IMPORT TABLESPACE", ["w.t"]),
        ("ALTER TABLE t CONVERT TABLE part TO PARTITION a VALUES LESS THAN (9)", ["w.t", "w.part"]),
        ("ALTER TABLE t CONVERT PARTITION a TO TABLE part", ["w.t", "w.part"]),
        ("ALTER TABLE t ADD COLUMN a INT", []),
        ("CREATE TABLE t (id INT)", []),
        ("RENAME USER a TO b", []),
    ],
)
def test_tables_get_other_rows_without_events(ddl: str, names: list[str]) -> None:
    assert replaced_by(line(ddl)) == dict.fromkeys(names, (3, 70))


@pytest.mark.parametrize(
    ("ddl", "table"),
    [
        ("CREATE OR REPLACE TABLE t (id INT)", "w.t"),
        ("create or replace table `x y`.`a``b` LIKE c", "x y.a`b"),
        ("/*M! nightly */ CREATE OR REPLACE TABLE t AS SELECT 1 AS id", "w.t"),
    ],
)
def test_debezium_misreads_a_table_that_was_replaced(ddl: str, table: str) -> None:
    assert misread(line(ddl)) == Misread(table, (3, 70))
    assert misread(line(ddl, {"type": "CREATE", "id": '"w"."t"'})) is None


@pytest.mark.parametrize("ddl", ["CREATE TABLE t (id INT)", "CREATE OR REPLACE VIEW t AS SELECT 1"])
def test_other_statements_are_understood(ddl: str) -> None:
    assert misread(line(ddl)) is None


def test_a_history_says_the_statement_in_words_that_are_understood() -> None:
    def of(ddl: str, *changes: object) -> bytes:
        said = {"databaseName": "w", "ddl": ddl, "tableChanges": list(changes), "ts_ms": 1}
        return json.dumps(said).encode() + b"\n"

    before, known = of("CREATE TABLE t (id INT)"), of("CREATE OR REPLACE TABLE u (id INT)", {})

    text = as_read(before + of("CREATE OR REPLACE TABLE `t` (x INT)") + known)

    assert text == b"".join(
        [before, of("DROP TABLE IF EXISTS `w`.`t`"), of("CREATE TABLE `t` (x INT)"), known]
    )
    assert as_read(text) == text
    assert as_read(b"") == b""


@pytest.mark.parametrize(
    ("since", "is_replaced"), [(None, True), ((3, 69), True), ((3, 70), True), ((3, 71), False)]
)
def test_a_load_that_began_behind_the_statement_has_the_other_rows(
    since: tuple[int, int] | None, is_replaced: bool
) -> None:
    loaded = TableProgress("loaded", rows=1, chunks=1, since=since)
    position = CapturePosition(ResumePoint({}), {"w.t": loaded})

    after = position.with_replaced({"w.t": (3, 70), "w.unknown": (3, 70)})
    again = CapturePosition.of(json.loads(json.dumps(after.as_dict())))

    assert again == after
    assert after.replaced == is_replaced
    assert [*after.tables] == ["w.t"]


def test_tables_that_are_gone_are_remembered_until_they_are_back() -> None:
    loaded, waiting = TableProgress("loaded", rows=1, chunks=1), TableProgress()
    position = CapturePosition(ResumePoint({}), {"w.t": loaded, "w.never": waiting, "w.u": loaded})

    gone = position.with_tables(["w.u"])
    again = CapturePosition.of(json.loads(json.dumps(gone.as_dict())))

    assert (gone.gone, again) == ({"w.t"}, gone)
    assert again.with_tables(["w.t", "w.u"]).gone == frozenset()


@pytest.mark.parametrize(
    ("ddl", "is_filled"),
    [
        ("ALTER TABLE t ADD COLUMN a INT DEFAULT 5", True),
        ("ALTER TABLE t ADD a INT NOT NULL", True),
        ("alter table t add b int generated always as (id + 1) stored", True),
        ("ALTER TABLE t DROP a, ADD a DATETIME DEFAULT CURRENT_TIMESTAMP", True),
        ("ALTER TABLE t MODIFY a INT NOT NULL", True),
        ("ALTER TABLE t ADD COLUMN a INT", False),
        ("ALTER TABLE t ADD COLUMN a INT DEFAULT NULL", False),
        ("ALTER TABLE t ADD COLUMN `default` INT COMMENT 'not null default 5'", False),
        ("ALTER TABLE t ADD a INT, DEFAULT CHARACTER SET utf8mb4", False),
        ("ALTER TABLE t ALTER COLUMN a SET DEFAULT 5", False),
        ("ALTER TABLE t DROP COLUMN a", False),
    ],
)
def test_a_column_gets_a_value_in_rows_that_are_there(ddl: str, is_filled: bool) -> None:
    table = {"columns": [], "primaryKeyColumnNames": ["id"]}
    change = {"type": "ALTER", "id": '"w"."t"', "table": table}

    assert filled_by(line(ddl, change)) == ({"w.t": (3, 70)} if is_filled else {})
    keyless = {**change, "table": {"columns": [], "primaryKeyColumnNames": []}}
    assert filled_by(line(ddl, keyless)) == {}
    assert filled_by(line(ddl, {**change, "type": "CREATE"})) == {}


@pytest.mark.parametrize(("since", "waits"), [((3, 69), True), ((3, 71), False)])
def test_a_table_with_a_filled_column_is_loaded_and_not_emptied(
    since: tuple[int, int], waits: bool
) -> None:
    loaded = TableProgress("loaded", rows=1, chunks=1, since=since, columns_made=4)
    position = CapturePosition(ResumePoint({}), {"w.t": loaded})

    after = position.with_filled({"w.t": (3, 70), "w.unknown": (3, 70)})
    again = CapturePosition.of(json.loads(json.dumps(after.as_dict())))

    assert again == after
    assert after.replaced == waits
    assert after.tables["w.t"].lacks_defaults(SourceTable("w.t", (), ("id",))) == waits
    assert not after.tables["w.t"].is_another(SourceTable("w.t", (), ("id",)))
