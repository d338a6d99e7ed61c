"""Statements about whole tables: which dataset the events after them belong to."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.formats.base import ReadBatch
from polynya.formats.batch import BatchLimits
from polynya.formats.debezium.ddl import TableDdl, table_ddl
from polynya.formats.debezium.tables import DebeziumScope, TableSettings
from polynya.model.config.evolution import SchemaEvolution
from tests.formats.debezium.builders import SAMPLES, capture, read_capture

_MYSQL = {"connector": "mysql", "db": "w", "file": "binlog.000001", "snapshot": "false"}


def statement(ddl: str, *changes: dict[str, Any], pos: int = 5, **source: Any) -> dict[str, Any]:
    """A line of the schema change topic."""
    value = {
        "source": {**_MYSQL, "pos": pos, "row": 0, **source},
        "ts_ms": 1767225602000,
        "databaseName": "w",
        "ddl": ddl,
        "tableChanges": list(changes),
    }
    return {"destination": "shop", "key": {"databaseName": "w"}, "value": value, "headers": []}


def row(key: int, pos: int, table: str) -> dict[str, Any]:
    """An inserted row."""
    source = {**_MYSQL, "table": table, "pos": pos, "row": 0, "ts_ms": 1767225601000}
    value = {"op": "c", "before": None, "after": {"id": key}, "source": source}
    return {"key": {"id": key}, "value": value, "headers": []}


def dropped(table: str) -> dict[str, Any]:
    return {"type": "DROP", "id": f'"w"."{table}"', "table": None}


def read(*lines: dict[str, Any], scope: DebeziumScope | None = None, **policies: Any) -> Any:
    settings = TableSettings(evolution=SchemaEvolution(**policies))
    return read_capture(capture(*lines), scope or DebeziumScope(default=settings))


def said(batch: ReadBatch) -> dict[str, list[str]]:
    return {name: [str(c) for c in part.changes] for name, part in batch.datasets.items()}


def rows(batch: ReadBatch) -> dict[str, int]:
    return {name: part.rows.num_rows for name, part in batch.datasets.items()}


@pytest.mark.parametrize(
    ("ddl", "found"),
    [
        ("rename table t to u", [("w.t", "w.u")]),
        ("RENAME TABLE `a`.`t` TO u, t2 TO `u 2`;", [("a.t", "w.u"), ("w.t2", "w.u 2")]),
        ("rename tables if exists `to` to `2019_t`", [("w.to", "w.2019_t")]),
        ("ALTER TABLE t RENAME u", [("w.t", "w.u")]),
        ("alter table t add column c int, rename to `z`.`u`", [("w.t", "z.u")]),
        ("alter table a.t rename to u", [("a.t", "a.u")]),
        ("alter table t rename column a to b", []),
        ("alter table t rename index a to b", []),
        ("rename user a to b", []),
        ("rename table 't to u", []),
        ("rename table t to", []),
        ("select 1", []),
        ("alter table (select 1) rename to u", []),
        ("alter table t rename to (select 1)", []),
        ("alter table t rename " + 20_000 * "(", []),
        ("alter table t frobnicate rename", []),
    ],
)
def test_the_names_are_in_the_statement(ddl: str, found: list[tuple[str, str]]) -> None:
    assert table_ddl(statement(ddl)["value"]) == [TableDdl(*pair) for pair in found]


def test_the_names_are_in_the_list_of_changes() -> None:
    changes = [dropped("a"), {"type": "ALTER", "id": '"w"."a,b","w"."c"'}, {"type": "CREATE"}, 7]

    found = table_ddl(statement("whatever", *changes)["value"])  # type: ignore[arg-type]
    assert found == [TableDdl("w.a"), TableDdl("w.a,b", "w.c")]
    of_schemas = statement("", {"type": "DROP", "id": '"shop"."dbo"."t"'}, connector="sqlserver")
    assert table_ddl(of_schemas["value"]) == [TableDdl("dbo.t")]
    assert table_ddl(statement("", dropped("a"), snapshot="true")["value"]) == []
    assert table_ddl({"ddl": 3, "tableChanges": {}, "source": 4}) == []


def test_a_renamed_table_feeds_its_dataset_under_the_new_name() -> None:
    lines = [row(1, 1, "t"), statement("rename table t to u"), row(2, 9, "u")]

    applied, ignored = read(*lines, rename_dataset="apply"), read(*lines, rename_dataset="ignore")

    assert rows(applied) == {"w.t": 2}
    assert said(applied) == {"w.t": ["the source table w.t is called w.u now"]}
    assert applied.datasets["w.t"].called == "w.u"
    assert rows(ignored) == {"w.t": 1, "w.u": 1}
    assert (said(ignored)["w.t"], ignored.datasets["w.t"].called) == ([], None)
    assert ignored.left == {"w.u"}
    assert applied.datasets["w.t"].changes[0].policy == "apply"
    assert read(*lines).datasets["w.t"].changes[0].policy == "suspend"


def test_the_new_name_is_known_in_later_reads() -> None:
    scope = DebeziumScope(called={"w.u": "w.t"})

    assert rows(read(row(2, 9, "u"), row(3, 10, "v"), scope=scope)) == {"w.t": 1, "w.v": 1}
    back = read(row(2, 9, "u"), statement("rename table u to t"), row(3, 10, "t"), scope=scope)
    assert rows(back) == {"w.t": 2}
    assert back.datasets["w.t"].called == "w.t"
    again = read(row(2, 9, "u"), statement("rename table u to v"), row(3, 10, "v"), scope=scope)
    assert (rows(again), again.datasets["w.t"].called) == ({"w.t": 2}, "w.v")


def test_a_table_that_was_changed_online_was_not_renamed() -> None:
    batch = read(
        row(1, 1, "t"), row(1, 2, "_t_new"),
        statement("rename table t to _t_old, _t_new to t"),
        row(2, 9, "t"), statement("drop table _t_old", dropped("_t_old")),
        rename_dataset="apply", drop_dataset="apply",
    )  # fmt: skip

    assert rows(batch) == {"w.t": 2, "w._t_new": 1}
    assert said(batch) == {"w.t": [], "w._t_new": []}


def test_the_name_of_another_dataset_is_not_taken() -> None:
    lines = [row(1, 1, "t"), row(1, 2, "u"), statement("rename table t to u"), row(2, 9, "u")]

    batch = read(*lines, rename_dataset="apply")

    assert rows(batch) == {"w.t": 1, "w.u": 2}
    (change,) = batch.datasets["w.t"].changes
    assert (change.policy, str(change)) == ("suspend", "the source table w.t is called w.u now")


def test_a_dropped_table_keeps_its_rows_or_is_emptied() -> None:
    lines = [row(1, 1, "t"), statement("drop table t", dropped("t")), row(2, 9, "t")]

    kept, emptied = read(*lines), read(*lines, drop_dataset="apply")

    assert (rows(kept), said(kept)) == ({"w.t": 2}, {"w.t": []})
    assert emptied.datasets["w.t"].rows.column("__op").to_pylist() == ["I", "T", "I"]
    order = emptied.datasets["w.t"].rows.column("__ci").to_pylist()
    assert order == sorted(order)
    assert said(emptied) == {"w.t": ["the source table w.t was dropped"]}
    assert read(*lines, drop_dataset="suspend").datasets["w.t"].changes[0].policy == "suspend"
    assert (kept.unrouted.counters, emptied.unrouted.counters) == ({"ddl_events": 1}, {})


def made(table: str) -> dict[str, Any]:
    return {"type": "CREATE", "id": f'"w"."{table}"', "table": {}}


@pytest.mark.parametrize(
    "created",
    [
        statement("/* nightly */ create table t (id int)", made("t")),
        statement("CREATE TABLE IF NOT EXISTS `t` (id int)", made("t")),
        # Debezium says nothing of a table that is there.
        statement("CREATE OR REPLACE TABLE `t` (id int)"),
        statement("-- nightly\ncreate or replace\ttable w . t like u"),
    ],
)
def test_a_table_that_is_made_again_begins_without_the_rows_before_it(
    created: dict[str, Any],
) -> None:
    lines = [row(1, 1, "t"), row(1, 2, "u"), statement("drop table t", dropped("t"), pos=3)]

    batch = read(*lines, created, row(2, 9, "t"))

    assert batch.datasets["w.t"].rows.column("__op").to_pylist() == ["I", "T", "I"]
    assert rows(batch) == {"w.t": 3, "w.u": 1}
    assert said(batch) == {"w.t": [], "w.u": []}


@pytest.mark.parametrize(
    "other",
    [
        statement("CREATE TABLE IF NOT EXISTS t (id int)"),  # which was there
        statement("CREATE OR REPLACE VIEW t AS SELECT 1"),
        statement("CREATE TABLE t (id int)", made("t"), snapshot="true"),
        statement("", made("t"), connector="sqlserver"),  # which is followed from now on
    ],
)
def test_what_makes_no_table_leaves_its_rows(other: dict[str, Any]) -> None:
    assert rows(read(row(1, 1, "t"), other, row(2, 9, "t"))) == {"w.t": 2}


def test_a_table_that_is_made_under_a_name_that_was_given_up_takes_no_rows_away() -> None:
    batch = read(
        row(1, 1, "t"), statement("rename table t to u"),
        statement("create table t (id int)", made("t"), pos=7), row(2, 9, "u"),
        rename_dataset="apply",
    )  # fmt: skip

    assert "T" not in batch.datasets["w.t"].rows.column("__op").to_pylist()


def test_a_swap_that_is_told_name_by_name_renames_nothing() -> None:
    batch = read(
        row(1, 1, "t"), statement("rename table t to old"),
        statement("rename table unknown to t"), row(2, 9, "t"),
    )  # fmt: skip

    assert (rows(batch), said(batch)) == ({"w.t": 2}, {"w.t": []})


@pytest.mark.parametrize("new", ["unknown", "v"])
def test_a_swap_renames_nothing_though_the_old_table_is_a_dataset(new: str) -> None:
    batch = read(
        row(1, 1, "t"), row(2, 2, "old"), row(3, 3, "v"), statement("rename table t to old"),
        statement(f"rename table {new} to t"), row(2, 9, "t"),
    )  # fmt: skip

    assert said(batch) == {"w.t": [], "w.old": [], "w.v": []}


def test_tables_that_are_no_datasets_may_be_renamed_and_dropped() -> None:
    batch = read(statement("rename table x to y"), statement("drop table z", dropped("z")))

    assert batch.datasets == {}


def test_a_damaged_file_said_nothing() -> None:
    content = {
        "a": capture(row(1, 1, "t")),
        "b.gz": b"\x1f\x8b" + b"no archive",
        "c": capture(row(2, 9, "u")),
    }
    assert rows(read_capture(content)) == {"w.t": 1, "w.u": 1}


def test_a_real_capture_with_a_renamed_table() -> None:
    settings = TableSettings(evolution=SchemaEvolution(rename_dataset="apply"))
    content = (SAMPLES / "mariadb_precise.jsonl").read_bytes()

    batch = read_capture(content, DebeziumScope(default=settings), limits=BatchLimits())

    assert "inv.evolved" not in batch.datasets
    assert batch.datasets["inv.evolve"].called == "inv.evolved"
