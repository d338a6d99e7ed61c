"""A derived table shows what its query returns over its inputs, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from polynya.engine.commands.rebuild import recreate
from polynya.engine.derivation import shows_same_rows
from polynya.lake.read.commits import changes_rows
from polynya.model.errors import PolynyaError
from polynya.observe.engine import DerivedTableWaits
from tests.engine.tasks.derived_tables import Derived, run_all
from tests.lab.lab import Feed, Lab, Row, drop, put


@pytest.fixture
def users(lab: Lab) -> Iterator[Feed]:
    """People with a city."""
    feed = lab.feed("users")
    feed.copy(put(1, 1, name="ann", city="Ulm"), put(2, 2, name="bob", city="Bonn"))
    yield feed


COUNTED = "SELECT city AS id, count(*) AS people FROM users GROUP BY city"


def test_it_follows_inserts_updates_and_deletes_that_are_not_applied(lab: Lab, users: Feed) -> None:
    cities = Derived(lab, [users], COUNTED, history=True)

    cities.follow()
    assert cities.current("id", "people") == [("Bonn", 1), ("Ulm", 1)]

    users.copy(put(2, 3, name="bob", city="Ulm"), put(3, 4, name="cem", city="Köln"))
    cities.follow()
    assert cities.current("id", "people") == [("Köln", 1), ("Ulm", 2)]

    users.copy(drop(1, 5), drop(2, 6), drop(3, 7))
    cities.follow()
    assert cities.current("id", "people") == []
    operations = [row[:3] for row in cities.history("id", "people")]
    assert sorted(operations, key=repr) == sorted(
        [
            ("Bonn", 1, "i"), ("Bonn", 1, "d"), ("Köln", 1, "i"), ("Köln", 1, "d"),
            ("Ulm", 1, "i"), ("Ulm", 2, "u"), ("Ulm", 2, "d"),
        ],
        key=repr,
    )  # fmt: skip


def test_what_shows_the_same_rows_causes_no_step(lab: Lab, users: Feed) -> None:
    cities = Derived(lab, [users], COUNTED)
    cities.follow()

    users.apply()
    cities.follow()
    cities.follow()

    assert cities.steps() == 1
    assert cities.stored("changes", "id") == []


def test_a_step_without_differences_writes_no_row(lab: Lab, users: Feed) -> None:
    cities = Derived(lab, [users], COUNTED)
    cities.follow()
    before = cities.stored("current", "_file", "_pos")

    users.copy(put(1, 9, name="anna", city="Ulm"))
    cities.follow()

    assert cities.steps() == 2
    assert cities.stored("current", "_file", "_pos") == before
    assert cities.current("id", "people") == [("Bonn", 1), ("Ulm", 1)]


def test_an_edited_query_gives_its_rows_and_columns(lab: Lab, users: Feed) -> None:
    people = Derived(lab, [users], "SELECT id, name FROM users")
    people.follow()

    people.sql = "SELECT id, upper(name) AS name, city FROM users"
    people.follow()
    assert people.current("*") == [(1, "ANN", "Ulm"), (2, "BOB", "Bonn")]

    people.sql = "SELECT id, CAST(length(city) AS BIGINT) AS letters FROM users"
    people.follow()
    assert people.current("*") == [(1, 3), (2, 4)]


def test_a_new_column_of_an_input_reaches_a_query_of_all(lab: Lab, users: Feed) -> None:
    people = Derived(lab, [users], "SELECT * FROM users")
    people.follow()

    users.copy(put(3, 3, name="cem", city="Ulm", age=7))
    people.follow()

    assert people.current("id", "name", "age") == [
        (1, "ann", None),
        (2, "bob", None),
        (3, "cem", 7),
    ]


#: Query, code and what the message says, of a table of three people with `id` and `name`.
REFUSED = (
    ("SELECT CAST(1 AS BIGINT) AS id FROM users", "TRF-074", "2 of 3 rows"),
    ("SELECT nullif(id, 1) AS id FROM users", "TRF-074", "1 of 3 rows"),
    ("SELECT id AS key FROM users", "TRF-074", "no column called `id`"),
    ("SELECT id, name, city AS Name FROM users", "TRF-074", "more than one column"),
    ("SELECT id, NULL AS nothing FROM users", "TRF-075", "has type void"),
    ("SELECT id, id AS name FROM users", "TRF-077", "is bigint in the query and string"),
    ("SELECT id, nme FROM users", "TRF-073", "nme"),
    ("SELECT id, element_at(array(1), int(id) - 1) AS x FROM users", "TRF-073", "INDEX_OF_ZERO"),
    ("SELECT id, reflect('java.lang.System', 'exit', 1) AS x FROM users", "TRF-073", "reflect"),
    ("SELECT id FROM orders", "TRF-076", "reads `orders`"),
    ("SELECT 1 AS id FROM text.`/etc/passwd`", "TRF-076", "`text./etc/passwd`"),
)


def test_a_refused_result_leaves_the_last_one(lab: Lab, users: Feed) -> None:
    people = Derived(lab, [users], "SELECT id, name FROM users")
    people.follow()
    users.copy(put(3, 3, name="cem", city="Ulm"))

    for sql, code, said in REFUSED:
        people.sql = sql
        with pytest.raises(PolynyaError) as refused:
            people.follow()
            pytest.fail(sql)
        assert refused.value.code == f"POLYNYA-{code}", sql
        assert said in refused.value.message, sql
    assert people.current("id", "name") == [(1, "ann"), (2, "bob")]


def test_the_first_rows_are_as_an_apply_would_leave_them(
    lab: Lab, users: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT id, name, CAST(NULL AS DOUBLE) AS score FROM users"
    written = Derived(lab, [users], sql, history=True)
    written.follow()
    monkeypatch.setattr("polynya.lake.copy.recompute.holds_nothing", lambda _: False)
    applied = Derived(lab, [users], sql, history=True)
    applied.follow()

    def stored(table: Derived) -> list[Row]:
        internal = table.dataset.relations.internal
        columns = [
            column
            for column in lab.spark.table(f"polynya.{internal}").columns
            if not column.endswith("timestamp") and not column.startswith("hdr__was")
        ]
        return sorted(
            lab.spark.table(f"polynya.{internal}")
            .where("hdr__partition IN ('current', 'prior', 'changes')")
            .selectExpr(*columns)
            .collect()
        )

    assert stored(written) == stored(applied) != []
    assert written.history("id", "name") == applied.history("id", "name")


def test_a_refused_first_result_leaves_no_column_and_no_row(lab: Lab, users: Feed) -> None:
    people = Derived(lab, [users], "SELECT 1 AS id, name FROM users")
    with pytest.raises(PolynyaError, match="repeat the values"):
        people.follow()

    # Of another type than the refused one, which the table could not take in place.
    people.sql = "SELECT id, 7 AS name FROM users"
    people.follow()
    assert people.current("id", "name") == [(1, 7), (2, 7)]


def test_a_first_step_whose_query_returns_nothing_is_a_step(lab: Lab, users: Feed) -> None:
    nobody = Derived(lab, [users], "SELECT id, name FROM users WHERE false")
    nobody.follow()
    nobody.follow()
    assert nobody.current("id", "name") == []
    assert nobody.steps() == 1

    nobody.sql = "SELECT id, name FROM users"
    nobody.follow()
    assert nobody.current("id", "name") == [(1, "ann"), (2, "bob")]


def test_it_waits_for_a_table_that_has_no_columns(lab: Lab) -> None:
    empty = lab.feed("empty")
    people = Derived(lab, [empty], "SELECT id FROM empty")

    people.follow()
    (waits,) = [e for e in lab.events if isinstance(e, DerivedTableWaits)]
    assert waits.table == "empty"

    empty.copy(put(1, 1))
    people.follow()
    assert people.current("id") == [(1,)]


def test_a_chain_follows_in_one_run_in_the_order_of_its_inputs(lab: Lab, users: Feed) -> None:
    first = Derived(lab, [users], COUNTED)
    second = Derived(
        lab,
        [first, users],
        f"SELECT u.id, c.people FROM users u JOIN {first.name} c ON c.id = u.city",
    )

    users.land(put(3, 3, name="cem", city="Ulm"))
    run_all(lab, second.task, first.task, users.task)

    assert second.current("id", "people") == [(1, 2), (2, 1), (3, 2)]


def test_a_table_is_read_as_the_transform_between_has_read_it(lab: Lab, users: Feed) -> None:
    first = Derived(lab, [users], COUNTED)
    second = Derived(
        lab,
        [first, users],
        f"SELECT u.id, c.people FROM users u LEFT JOIN {first.name} c ON c.id = u.city",
    )
    first.follow()

    users.copy(put(3, 3, name="cem", city="Köln"))
    second.follow()
    assert second.current("id", "people") == [(1, 1), (2, 1)], "`first` has not seen the third"

    first.follow()
    second.follow()
    assert second.current("id", "people") == [(1, 1), (2, 1), (3, 1)]


def test_transforms_that_read_a_table_before_and_after_an_apply_agree(
    lab: Lab, users: Feed
) -> None:
    first = Derived(lab, [users], COUNTED)
    second = Derived(lab, [users], "SELECT id, upper(name) AS name FROM users")
    third = Derived(
        lab,
        [first, second, users],
        f"SELECT u.id, s.name, c.people FROM users u JOIN {second.name} s ON s.id = u.id "
        f"JOIN {first.name} c ON c.id = u.city",
    )
    first.follow()
    users.apply()
    second.follow()

    third.follow()

    assert third.current("id", "name", "people") == [(1, "ANN", 1), (2, "BOB", 1)]


@pytest.mark.slow
def test_a_flow_follows_its_tables_and_their_columns(lab: Lab, users: Feed) -> None:
    flow = [
        {"filter": "city IS NOT NULL"},
        {"derive": {"columns": {"loud": "upper(name)"}}},
        {"select": ["id", "loud"]},
    ]
    loud = Derived(lab, [users], None, flow=flow)
    loud.follow()
    assert loud.current("*") == [(1, "ANN"), (2, "BOB")]

    users.copy(put(3, 3, name="cem"), put(4, 4, name="dan", city="Ulm"), drop(1, 5))
    loud.follow()
    assert loud.current("*") == [(2, "BOB"), (4, "DAN")]

    flow[2] = {"select": ["id", "lout"]}
    with pytest.raises(PolynyaError) as refused:
        loud.follow()
    assert "lout" in str(refused.value)
    assert f"{loud.name}: datasets[0].flow[2]" in str(refused.value)


def test_soft_deletes_recreation_and_other_keys(lab: Lab, users: Feed) -> None:
    people = Derived(lab, [users], "SELECT id, name FROM users", delete_mode="soft")
    people.follow()
    users.copy(drop(1, 5))
    people.follow()
    assert people.current("id", "hdr__deleted") == [(1, True), (2, False)]

    people.settings["keys"] = ["name"]
    with pytest.raises(PolynyaError) as refused:
        people.follow()
    assert "keys" in refused.value.message

    recreate(lab.context(), people.task, [people.dataset], whole_task=True)
    people.follow()
    assert people.current("id", "name") == [(2, "bob")]


@pytest.mark.slow
def test_a_query_reads_all_versions_and_an_apply_changes_none(lab: Lab) -> None:
    """Pending, applied and late versions; two rows for each, one of them read as of now."""
    people = lab.feed("people", history=True)
    people.copy(put(1, 1, city="Ulm"), put(2, 2, city="Bonn"), put(1, 3, city="Rom"))
    versions = Derived(
        lab,
        [people],
        "SELECT h.id, h.city, h.hdr__from_timestamp AS since, h.hdr__to_timestamp AS until, "
        "h.hdr__operation AS op, h.hdr__deleted AS gone, p.city AS now "
        "FROM people__history h LEFT JOIN people p ON p.id = h.id",
        keys=["id", "since"],
    )

    def shown() -> list[Row]:
        return versions.current("id", "city", "op", "gone", "now")

    versions.follow()
    expected = [
        (1, "Rom", "U", False, "Rom"), (1, "Ulm", "I", False, "Rom"),
        (2, "Bonn", "I", False, "Bonn"),
    ]  # fmt: skip
    assert shown() == expected

    people.apply()
    versions.follow()
    assert (versions.steps(), shown()) == (1, expected)

    people.copy(put(1, 2, city="Oslo"), drop(2, 5))
    versions.follow()
    pending = shown()
    assert [(row[1], row[3]) for row in pending if row[0] == 1] == [
        ("Oslo", False), ("Rom", False), ("Ulm", False),
    ]  # fmt: skip
    assert sorted((row[2], row[3], row[4]) for row in pending if row[0] == 2) == [
        ("D", True, None), ("I", False, None),
    ]  # fmt: skip

    people.apply()
    versions.settings["delete_mode"] = "hard"
    recreate(lab.context(), versions.task, [versions.dataset], whole_task=True)
    versions.follow()
    assert shown() == pending, "the versions of an applied table are those of a pending one"


def test_the_history_of_a_table_that_keeps_none_is_refused(lab: Lab) -> None:
    plain = lab.feed("plain", history=False)
    plain.copy(put(1, 1, city="Ulm"))
    versions = Derived(lab, [plain], "SELECT id FROM plain__history")

    with pytest.raises(PolynyaError) as refused:
        versions.follow()

    assert refused.value.code == "POLYNYA-TRF-076"
    assert "keeps no history" in refused.value.message


def test_an_edited_query_without_a_table_is_derived_again(lab: Lab, users: Feed) -> None:
    numbers = Derived(lab, [users], "SELECT CAST(1 AS BIGINT) AS id")
    numbers.follow()
    numbers.sql = "SELECT CAST(2 AS BIGINT) AS id"
    numbers.follow()
    numbers.follow()

    assert (numbers.current("id"), numbers.steps()) == ([(2,)], 2)


@pytest.mark.slow
def test_it_shows_what_another_engine_answers_for_each_of_many_changes(lab: Lab) -> None:
    users = lab.feed("users")
    orders = lab.feed("orders", task={"name": f"{lab.schema}_orders"})
    sql = (
        "SELECT u.id, u.city, coalesce(sum(o.amount), 0) AS total, count(o.id) AS orders "
        "FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id, u.city"
    )
    spent = Derived(lab, [users, orders], sql)
    batches: list[tuple[list[Any], list[Any]]] = [
        ([put(1, 1, city="Ulm"), put(2, 2, city="Bonn")], [put(1, 1, user_id=1, amount=5)]),
        ([], [put(2, 2, user_id=1, amount=7), put(1, 3, user_id=2, amount=5)]),
        ([drop(1, 4)], [put(3, 4, user_id=9, amount=1)]),
        # Late: older than what is there.
        ([put(2, 1, city="Rom"), put(9, 5, city="Oslo")], [drop(2, 1), drop(1, 9)]),
    ]
    for of_users, of_orders in batches:
        for feed, records in ((users, of_users), (orders, of_orders)):
            if records:
                feed.copy(*records)
        spent.follow()

        assert spent.current("id", "city", "total", "orders") == answered(sql, users, orders)


def answered(sql: str, *feeds: Feed) -> list[Row]:
    """The rows of a query over the Current views, by DuckDB."""
    with duckdb.connect() as database:
        for feed in feeds:
            relations = feed.dataset.relations
            rows = feed.lab.spark.sql(f"SELECT * FROM {relations.schema}.{relations.view}")
            database.register(feed.name, rows.toArrow())
        found = database.sql(sql).fetchall()
    return sorted(found, key=repr)


@pytest.mark.parametrize(
    ("summary", "changes"),
    [
        ({"operation": "append", "polynya.step": "copy"}, True),
        ({"operation": "overwrite", "polynya.step": "copy", "polynya.reason": "truncate"}, True),
        ({"operation": "append", "polynya.step": "load"}, True),
        ({"operation": "overwrite", "polynya.step": "derive"}, True),
        ({"operation": "overwrite", "polynya.step": "apply"}, False),
        ({"operation": "overwrite", "polynya.step": "apply", "polynya.reload": "x"}, True),
        ({"operation": "overwrite", "polynya.step": "takeover"}, False),
        ({"operation": "append", "polynya.step": "reload"}, False),
        ({"operation": "overwrite", "polynya.step": "expire_rows"}, True),
        ({"operation": "overwrite", "polynya.step": "recreate"}, True),
        ({"operation": "replace"}, False),
        ({"operation": "append"}, True),
        ({}, True),
    ],
)
def test_which_commits_may_change_the_rows_of_an_input(
    summary: dict[str, str], changes: bool
) -> None:
    assert changes_rows(summary) is changes


def test_an_expired_snapshot_between_counts_as_a_change() -> None:
    apply = {"summary": {"operation": "overwrite", "polynya.step": "apply"}}
    third = {"snapshot-id": 3, "parent-snapshot-id": 2, **apply}
    second = {"snapshot-id": 2, "parent-snapshot-id": 1, **apply}

    assert shows_same_rows({"snapshots": [third, second]}, 1, 3)
    assert not shows_same_rows({"snapshots": [third]}, 1, 3)
