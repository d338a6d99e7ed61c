"""A step computes the rows that changes of its inputs concern, and shows what the query returns."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from polynya.observe.engine import RowsDerived
from tests.engine.tasks.derived_tables import Derived
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


def follow_all(lab: Lab, seed: int, batches: int, names: list[str]) -> list[RowsDerived]:
    """Follow statements over one random history; what each step after the first one told."""
    random = Random(seed)
    users, orders = (
        lab.feed(name, task={"name": f"{lab.schema}_{name}"}) for name in ("users", "orders")
    )
    users.copy(put(1, 1, name="ann", city="Ulm"), put(2, 2, name="bob", city="Bonn"))
    orders.copy(put(1, 1, buyer=1, amount=5), put(2, 2, buyer=2, amount=2))
    statements = {name: QUERIES[name][0].format(s=lab.schema) for name in names}
    derived = {
        name: Derived(lab, [users, orders], sql, keys=QUERIES[name][1], incremental="strict")
        for name, sql in statements.items()
    }
    for number in range(batches):
        for one in derived.values():
            one.follow()
        for name, sql in statements.items():
            assert derived[name].current("*") == lab.rows(sql), (seed, number, name)
        seq = 10 * (number + 1)
        if random.random() < 0.8:
            batch(users, random, seq, name=("ann", "bob", None), city=("Ulm", "Bonn", "Köln", None))
        if random.random() < 0.8:
            batch(orders, random, seq, buyer=(1, 2, 3, 4, None), amount=(1, 2, 3, 4, 5))
    told = [event for event in lab.events if isinstance(event, RowsDerived)]
    return told[len(names) :]


def test_what_changes_concern_is_all_that_is_computed(lab: Lab) -> None:
    steps = follow_all(lab, 1, 4, ["an outer join", "groups over a join"])

    assert steps
    assert all(" of " in step.how for step in steps), [step.how for step in steps]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_statement_follows_a_random_history(lab: Lab, seed: int) -> None:
    steps = follow_all(lab, seed, 12, list(QUERIES))

    assert all(" of " in step.how for step in steps), [step.how for step in steps]


def test_a_truncated_input_is_read_as_a_whole(lab: Lab) -> None:
    users = lab.feed("users")
    users.copy(put(1, 1, name="ann"), put(2, 2, name="bob"))
    names = Derived(lab, [users], "SELECT id, name FROM users", incremental="strict")
    names.follow()

    users.copy(clear(5), put(3, 6, name="cem"))
    names.follow()

    assert names.current("*") == [(3, "cem")]
    (_, second) = [event for event in lab.events if isinstance(event, RowsDerived)]
    assert second.how == "users: it was truncated"
