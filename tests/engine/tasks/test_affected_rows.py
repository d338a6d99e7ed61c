"""A step computes the rows that changes of its inputs concern, and shows what the query returns."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.model.errors import PolynyaError
from polynya.observe.engine import RowsDerived
from tests.engine.tasks.derived_tables import Derived
from tests.lab.chosen import slow
from tests.lab.lab import Feed, Lab, clear, drop, put

#: Statements by what restricts them, with the keys of their rows.
QUERIES: dict[str, tuple[str, list[str]]] = {
    "a row for each row": ("SELECT id, upper(name) AS name, city FROM {s}.users", ["id"]),
    "a filter and a derived key": (
        "SELECT id + 1 AS next, name FROM {s}.users WHERE city <> 'Ulm'",
        ["next"],
    ),
    "a join": (
        "SELECT o.id, u.city, o.amount FROM {s}.orders o JOIN {s}.users u ON u.id = o.buyer",
        ["id"],
    ),
    "an outer join": (
        (
            "SELECT o.id, u.name, u.id IS NULL AS unknown "
            "FROM {s}.orders o LEFT JOIN {s}.users u ON u.id = o.buyer AND u.city = 'Ulm'"
        ),
        ["id"],
    ),
    "groups over a join": (
        (
            "SELECT u.city, count(*) AS n, sum(o.amount) AS total, min(o.amount) AS least "
            "FROM {s}.orders o JOIN {s}.users u ON u.id = o.buyer "
            "WHERE u.city IS NOT NULL GROUP BY u.city HAVING count(*) > 1"
        ),
        ["city"],
    ),
    "a window": (
        "SELECT id, buyer, sum(amount) OVER (PARTITION BY buyer) AS total FROM {s}.orders",
        ["id"],
    ),
    "subqueries": (
        (
            "SELECT id, name FROM {s}.users u WHERE EXISTS (SELECT 1 FROM {s}.orders o "
            "WHERE o.buyer = u.id AND o.amount > 3) AND id NOT IN (SELECT amount FROM {s}.orders)"
        ),
        ["id"],
    ),
    "a union": (
        "SELECT 'user' AS kind, id FROM {s}.users UNION ALL SELECT 'order', id FROM {s}.orders",
        ["kind", "id"],
    ),
}
#: Results of one row, which follow by what changed rows add and take away.
TOTALS: dict[str, tuple[str, list[str]]] = {
    "totals of a table": (
        (
            "SELECT 'all' AS id, count(*) AS n, sum(amount) AS total, max(amount) AS most, "
            "count(DISTINCT id) AS ids FROM {s}.orders"
        ),
        ["id"],
    ),
    "totals of a join": (
        (
            "SELECT 'all' AS id, count(*) AS n, coalesce(sum(o.amount), 0) AS total "
            "FROM {s}.orders o JOIN {s}.users ON users.id = o.buyer LEFT JOIN {s}.users v "
            "ON v.id = o.amount WHERE users.city = 'Ulm' OR EXISTS "
            "(SELECT 1 FROM {s}.orders p WHERE p.buyer = o.buyer AND p.id <> o.id)"
        ),
        ["id"],
    ),
    "totals side by side": (
        (
            "WITH pairs AS (SELECT buyer FROM {s}.orders EXCEPT SELECT id FROM {s}.users) "
            "SELECT 'all' AS id, a.n, b.total, c.strangers FROM (SELECT count(*) AS n FROM "
            "{s}.users u FULL JOIN {s}.orders o ON u.id = o.buyer) a CROSS JOIN "
            "(SELECT sum(amount) AS total FROM (SELECT * FROM {s}.orders WHERE amount > 1)) b "
            "CROSS JOIN (SELECT count(*) AS strangers FROM pairs) c"
        ),
        ["id"],
    ),
}


def batch(feed: Feed, random: Random, seq: int, **kinds: Any) -> None:
    """Some changes of few keys: upserts, deletes and late events; now and then an apply."""
    records = []
    for number in range(random.randrange(1, 4)):
        key, at = random.randrange(1, 7), seq + number - random.choice((0, 0, 0, 25))
        values = {name: random.choice(values) for name, values in kinds.items()}
        records.append(drop(key, at) if random.random() < 0.25 else put(key, at, **values))
    feed.copy(*records)
    if random.random() < 0.3:
        feed.apply()


def compact(feed: Feed, _random: Random, _seq: int) -> None:
    """Another engine writes all data files of the table again, after an apply."""
    feed.apply()
    feed.lab.spark.sql(
        f"CALL polynya.system.rewrite_data_files(table => '{feed.internal}', "
        "options => map('rewrite-all', 'true', 'delete-file-threshold', '1'))"
    )


def expire(feed: Feed, _random: Random, seq: int) -> None:
    """Two batches, and every snapshot before the last one expires."""
    feed.copy(put(3, seq))
    feed.copy(drop(3, seq + 1))
    feed.table().table.java.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()


def load_again(feed: Feed, random: Random, seq: int) -> None:
    """A reload finds other values, a new row, and one row less."""
    columns = [name for name in feed.columns() if name != "id"]
    rows = feed.current("id", *columns)
    kept = [row for row in rows if random.random() < 0.8]
    first = {"id": 8, **dict(zip(columns, rows[0][1:], strict=True))} if rows else {"id": 8}
    records = [first, *(dict(zip(("id", *columns), row, strict=True)) for row in kept)]
    feed.land(*(record for record in records), file=f"load/{seq}.json")
    mode = "compare_and_apply_with_deleted_rows"
    wanted = ReloadRequest(feed.task, feed.dataset, mode=mode, files=f"load/{seq}.json")
    reload(feed.lab.context(), wanted)


def empty(feed: Feed, _random: Random, seq: int) -> None:
    """A truncate, and a row after it."""
    feed.copy(clear(seq), put(2, seq + 1))


def widen(feed: Feed, random: Random, seq: int) -> None:
    """A column that was not there before; its next one after that."""
    feed.copy(put(random.randrange(1, 7), seq, **{f"more_{seq}": random.random()}))


def move(feed: Feed, random: Random, seq: int) -> None:
    """A row gets another key."""
    rows = feed.current("*")
    if not rows:
        return
    values = dict(zip(feed.columns(), random.choice(rows), strict=True))
    old = values.pop("id")
    feed.copy(drop(old, seq), put(9, seq + 1, **values))


#: What happens to a table besides batches of changes.
UPHEAVALS = (compact, expire, load_again, empty, widen, move)
#: Why a step may compute all over such a history.
WHOLE = (
    "its query or a setting of an input changed",
    "the snapshot that it has read has expired",
    "a snapshot since the one that it has read has expired",
    "it was truncated",
)


def follow_all(
    lab: Lab, seed: int, batches: int, names: list[str], *, upheavals: bool = False
) -> list[RowsDerived]:
    """Follow statements over one random history; what each step after the first one told."""
    random = Random(seed)
    users, orders = (
        lab.feed(name, task={"name": f"{lab.schema}_{name}"}) for name in ("users", "orders")
    )
    users.copy(put(1, 1, name="ann", city="Ulm"), put(2, 2, name="bob", city="Bonn"))
    orders.copy(put(1, 1, buyer=1, amount=5), put(2, 2, buyer=2, amount=2))
    known = QUERIES | TOTALS
    statements = {name: known[name][0].format(s=lab.schema) for name in names}
    derived = {
        name: Derived(lab, [users, orders], sql, keys=known[name][1], incremental="strict")
        for name, sql in statements.items()
    }
    for number in range(batches):
        seq = 10 * number
        # The tables have their first rows when all follow them first.
        if number and random.random() < 0.8:
            batch(users, random, seq, name=("ann", "bob", None), city=("Ulm", "Bonn", "Köln", None))
        if number and random.random() < 0.8:
            batch(orders, random, seq, buyer=(1, 2, 3, 4, None), amount=(1, 2, 3, 4, 5))
        if number and upheavals:
            # Each of them at least once, whatever the seed.
            upheaval = UPHEAVALS[(number - 1) % len(UPHEAVALS)]
            upheaval(random.choice((users, orders)), random, seq + 5)
        for one in derived.values():
            one.follow()
        for name, sql in statements.items():
            assert derived[name].current("*") == lab.rows(sql), (seed, number, name)
    told = [event for event in lab.events if isinstance(event, RowsDerived)]
    return told[len(names) :]


def test_what_changes_concern_is_all_that_is_computed(lab: Lab) -> None:
    steps = follow_all(lab, 1, 2, ["an outer join", "groups over a join"])

    assert steps
    assert all(" of " in step.how for step in steps), [step.how for step in steps]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_statement_follows_a_random_history(lab: Lab, seed: int) -> None:
    steps = follow_all(lab, seed, 12, list(QUERIES))

    assert all(" of " in step.how for step in steps), [step.how for step in steps]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_statements_follow_tables_that_are_compacted_expired_reloaded_and_widened(
    lab: Lab, seed: int
) -> None:
    names = ["an outer join", "groups over a join", "subqueries", "totals of a join"]
    steps = follow_all(lab, seed, len(UPHEAVALS) + 1, names, upheavals=True)

    told = [step.how for step in steps]
    whole = [how for how in told if how.endswith(WHOLE)]
    assert all(" of " in how or how in whole or "value" in how for how in told), told
    assert len(whole) < len(told) / 2, told


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_totals_follow_a_random_history(lab: Lab, seed: int) -> None:
    steps = follow_all(lab, seed, 10, list(TOTALS))

    assert sum("add to its totals" in step.how for step in steps) > len(steps) // 2
    unknown = [step.how for step in steps if "add to its totals" not in step.how]
    assert all("value" in how for how in unknown), unknown


@pytest.mark.parametrize("history", [True, slow(False)])
def test_a_truncate_of_an_input_concerns_all_that_it_had(lab: Lab, *, history: bool) -> None:
    users = lab.feed("users", history=history)
    users.copy(put(1, 1, name="ann"), put(2, 2, name="bob"))
    users.apply()
    names = Derived(lab, [users], "SELECT id, name FROM users", incremental="strict")
    names.follow()

    users.copy(clear(5), put(3, 6, name="cem"))
    names.follow()

    assert names.current("*") == [(3, "cem")]
    assert last_step(lab).how.startswith("3 of id")


def test_a_row_that_goes_from_a_derived_table_goes_from_those_over_it(lab: Lab) -> None:
    users = lab.feed("users", history=False)
    users.copy(*[put(key, key, name=f"n{key}") for key in range(20)])
    first = Derived(lab, [users], "SELECT id, name FROM users", incremental="strict")
    first.follow()
    second = Derived(lab, [first], f"SELECT id, name FROM {first.name}", incremental="strict")
    second.follow()

    users.copy(drop(7, 50))
    first.follow()
    second.follow()

    assert second.current("id") == first.current("id") == users.current("id")
    assert last_step(lab).how == "1 of id, computed in memory"


def test_rows_that_another_engine_deletes_go_from_derived_tables(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(*[put(key, key, name=f"n{key}") for key in range(20)])
    users.apply()
    names = Derived(lab, [users], "SELECT id, name FROM users", incremental="strict")
    names.follow()

    by_positions = "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    lab.spark.sql(f"ALTER TABLE {users.internal} SET {by_positions}")
    lab.spark.sql(f"DELETE FROM {users.internal} WHERE id = 7")
    names.follow()

    assert names.current("id") == users.current("id")
    assert last_step(lab).how == "1 of id, computed in memory"


def test_keys_that_an_unaffected_row_has_refuse_the_result(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(put(1, 1, city="Ulm", code="a"), put(2, 2, city="Bonn", code="b"))
    sql = "SELECT city, max(code) AS code FROM users GROUP BY city"
    codes = Derived(lab, [users], sql, keys=["code"], incremental="strict")
    codes.follow()

    users.copy(put(2, 3, city="Bonn", code="a"))

    with pytest.raises(PolynyaError, match="repeat the values"):
        codes.follow()
    assert codes.current("*") == [("Bonn", "b"), ("Ulm", "a")]


def test_a_query_that_needs_all_rows_is_refused_if_it_is_strict(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(put(1, 1, name="ann"))
    whole = "SELECT count(*) AS id, max(name) AS name, avg(id) AS mean FROM users"

    counted = Derived(lab, [users], whole, incremental="strict")
    with pytest.raises(PolynyaError, match="as a whole: an aggregate without GROUP BY"):
        counted.follow()

    counted.settings["incremental"] = "auto"
    counted.follow()
    users.copy(put(1, 2, name="bob"))
    counted.follow()
    assert counted.current("*") == [(1, "bob", 1.0)]
    assert last_step(lab).how.startswith("an aggregate without GROUP BY")


def test_an_input_whose_snapshots_have_expired_is_read_as_a_whole(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(put(1, 1, name="ann"))
    names = Derived(lab, [users], "SELECT id, name FROM users", incremental="strict")
    names.follow()

    users.copy(put(2, 2, name="bob"))
    users.copy(put(3, 3, name="cem"))
    users.table().table.java.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()
    names.follow()

    assert names.current("*") == [(1, "ann"), (2, "bob"), (3, "cem")]
    assert last_step(lab).how == "users: the snapshot that it has read has expired"


def last_step(lab: Lab) -> RowsDerived:
    """What the last step of a derived table told."""
    return [event for event in lab.events if isinstance(event, RowsDerived)][-1]
