"""Relationships are proposed by names, types and values, and by chance alone never."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polynya.model.types import BIGINT, STRING, DataType, parse_type
from polynya.proposal.relationships import (
    ColumnProfile,
    Confidence,
    JudgedReference,
    KeyReference,
    Overlap,
    TableProfile,
    candidates,
    judged,
)

Rows = Sequence[Mapping[str, Any]]


def table(name: str, keys: str, rows: Rows = (), /, **types: str) -> tuple[TableProfile, Rows]:
    """A table with some rows; columns without a type are numbers or texts by their values."""
    columns: dict[str, ColumnProfile] = {}
    for column in dict.fromkeys(key for row in rows for key in row):
        value = next((row[column] for row in rows if row[column] is not None), None)
        kind: DataType = STRING if isinstance(value, str) else BIGINT
        columns[column] = ColumnProfile(column, kind)
    for column, text in types.items():
        columns[column] = ColumnProfile(column, parse_type(text))
    return TableProfile(f"shop.{name}", tuple(keys.split()), columns, rows=len(rows)), rows


def decided(*tables: tuple[TableProfile, Rows], read: bool = True) -> list[JudgedReference]:
    """What is decided over these tables, with the overlaps counted in plain Python."""
    rows = {profile.name: found for profile, found in tables}
    references = candidates([profile for profile, _ in tables])
    overlaps = {one: overlap(one, rows) for one in references} if read else {}
    return judged(references, overlaps, {profile.name: profile for profile, _ in tables})


def overlap(one: KeyReference, rows: Mapping[str, Rows]) -> Overlap:
    """What the values of a reference tell."""
    child = [tuple(row.get(name) for name in one.columns) for row in rows[one.child]]
    with_value = [values for values in child if None not in values]
    keys = {tuple(row.get(name) for name in one.keys) for row in rows[one.parent]}
    return Overlap(
        len(keys & set(with_value)), len(set(with_value)), len(keys), len(with_value),
        len(child) - len(with_value),
    )  # fmt: skip


def told(found: Sequence[JudgedReference], confidence: Confidence) -> list[str]:
    """The references of a confidence as `child.columns > parent`."""
    return [
        f"{one.reference.child[5:]}.{'+'.join(one.reference.columns)} > {one.reference.parent[5:]}"
        for one in found
        if one.confidence is confidence
    ]


def numbered(count: int, **columns: Any) -> list[dict[str, Any]]:
    """Rows with the ids 1 to n; a column is computed from the id."""
    return [
        {"id": n, **{name: make(n) for name, make in columns.items()}} for n in range(1, count + 1)
    ]


def test_a_foreign_key_is_found_by_its_name_and_its_values_with_reasons() -> None:
    customers = table("customers", "id", numbered(5, name=lambda n: f"c{n}"))
    orders = table("orders", "id", numbered(9, customer_id=lambda n: None if n == 9 else n % 3 + 1))
    found = decided(customers, orders)

    assert told(found, Confidence.STRONG) == ["orders.customer_id > customers"]
    assert found[0].reasons == (
        "`customer_id` names `customers`",
        "same type",
        "3 of 3 values found",
        "many to one, 2.7 rows for each",
        "NULL in 1 rows",
    )


def test_the_ids_of_two_tables_are_never_taken_for_a_reference() -> None:
    tables = [table(name, "id", numbered(count)) for name, count in (("a", 9), ("b", 9), ("c", 4))]
    found = decided(*tables)

    assert [one for one in found if one.is_proposed] == []


def test_values_without_a_name_are_weak_and_numbers_of_no_id_nothing() -> None:
    products = table("products", "id", numbered(20))
    lines = table("lines", "id", numbered(30, thing_no=lambda n: n % 9 + 1, pieces=lambda n: 3))
    found = decided(products, lines)

    assert told(found, Confidence.WEAK) == ["lines.thing_no > products"]
    assert "lines.pieces" not in str([one.reference for one in found])


def test_values_that_are_not_there_refute_a_name() -> None:
    regions = table("regions", "id", numbered(3))
    shops = table("shops", "id", numbered(9, region_id=lambda n: n * 100))
    (refuted,) = decided(regions, shops)

    assert refuted.confidence is Confidence.REJECTED
    assert refuted.reasons[0] == "most values are not there"


def test_some_facts_may_come_before_their_customer() -> None:
    customers = table("customers", "id", numbered(20))
    known = table("orders", "id", numbered(20, customer_id=lambda n: n + 1))
    half = table("visits", "id", numbered(20, customer_id=lambda n: n + 8))
    found = decided(customers, known, half)

    assert told(found, Confidence.STRONG) == ["orders.customer_id > customers"]
    assert told(found, Confidence.LIKELY) == ["visits.customer_id > customers"]


def test_a_text_does_not_refer_to_a_number() -> None:
    customers = table("customers", "id", numbered(5))
    orders = table("orders", "id", numbered(5, customer_id=lambda n: f"{n}"))
    (refused,) = decided(customers, orders)

    assert (refused.confidence, refused.reasons[0]) == (
        Confidence.REJECTED, "string is not bigint"
    )  # fmt: skip


def test_a_table_may_refer_to_itself() -> None:
    categories = table("categories", "id", numbered(9, parent_id=lambda n: n // 2 or None))
    staff = table("employees", "id", numbered(9, manager_id=lambda n: 1, parent=lambda n: "x"))
    found = decided(categories, staff)

    assert told(found, Confidence.LIKELY) == [
        "categories.parent_id > categories", "employees.manager_id > employees"
    ]  # fmt: skip


def test_two_roles_of_one_table_are_two_references() -> None:
    addresses = table("addresses", "address_id", [{"address_id": n} for n in range(9)])
    orders = table(
        "orders",
        "id",
        numbered(9, billing_address_id=lambda n: n % 4, ship_to_address_id=lambda n: n % 3),
    )
    found = decided(addresses, orders)

    assert told(found, Confidence.STRONG) == [
        "orders.billing_address_id > addresses", "orders.ship_to_address_id > addresses"
    ]  # fmt: skip
    assert [one.reference.role for one in found if one.is_proposed] == ["billing", "ship_to"]


def test_a_composite_key_is_referred_to_as_a_whole() -> None:
    lines = [{"order_no": n // 3, "line_no": n % 3} for n in range(12)]
    returned = [{"id": n, "order_no": n // 3, "line_no": n % 3} for n in range(0, 12, 2)]
    found = decided(
        table("order_lines", "order_no line_no", lines), table("refunds", "id", returned)
    )

    assert told(found, Confidence.STRONG) == ["refunds.order_no+line_no > order_lines"]


def test_a_bridge_refers_to_both_sides_and_nothing_refers_to_the_bridge() -> None:
    film = table("film", "film_id", [{"film_id": n} for n in range(6)])
    actor = table("actor", "actor_id", [{"actor_id": n} for n in range(6)])
    pairs = [{"actor_id": n % 3, "film_id": n} for n in range(6)]
    bridge = table("film_actor", "actor_id film_id", pairs)
    roles = table("award", "id", [{"id": n, **pair} for n, pair in enumerate(pairs)])
    found = decided(film, actor, bridge, roles)

    assert sorted(told(found, Confidence.STRONG)) == [
        "award.actor_id > actor", "award.film_id > film",
        "film_actor.actor_id > actor", "film_actor.film_id > film",
    ]  # fmt: skip
    assert told(found, Confidence.WEAK) == ["award.actor_id+film_id > film_actor"]


def test_a_table_with_the_key_of_another_belongs_to_it_and_not_the_other_way() -> None:
    customer = table("customer", "customer_id", [{"customer_id": n} for n in range(6)])
    profile = table("profile", "customer_id", [{"customer_id": n} for n in range(6)])
    orders = table("orders", "id", numbered(9, customer_id=lambda n: n % 4))
    found = decided(customer, profile, orders)

    assert sorted(told(found, Confidence.STRONG)) == [
        "orders.customer_id > customer", "profile.customer_id > customer"
    ]  # fmt: skip
    assert "orders.customer_id > profile" in told(found, Confidence.REJECTED)


def test_two_tables_with_one_name_make_it_weak() -> None:
    mine = table("customers", "id", numbered(5))
    theirs = table("customer", "id", numbered(5))
    orders = table("orders", "id", numbered(5, customer_id=lambda n: n))
    found = decided(mine, theirs, orders)

    assert [(one.confidence, one.reasons[0]) for one in found] == [
        (Confidence.WEAK, "shop.customers fits as well"),
        (Confidence.WEAK, "shop.customer fits as well"),
    ]


def test_without_values_a_name_is_likely_at_most() -> None:
    customers = table("customers", "id", numbered(5))
    orders = table("orders", "id", numbered(5, customer_id=lambda n: n, cust_id=lambda n: n))
    found = decided(customers, orders, read=False)

    assert told(found, Confidence.STRONG) == []
    assert told(found, Confidence.LIKELY) == ["orders.customer_id > customers"]


def test_names_of_other_customs_are_understood() -> None:
    part = table("part", "p_partkey", [{"p_partkey": n, "p_name": "x"} for n in range(5)])
    line = table("lineitem", "", [{"l_partkey": n % 5, "l_tax": 1} for n in range(9)])
    user = table("Users", "userId", [{"userId": f"u{n}"} for n in range(5)])
    login = table("logins", "", [{"userId": f"u{n}", "orderID": n} for n in range(5)])
    city = table("städte", "stadtId", [{"stadtId": n} for n in range(5)])
    shop = table("läden", "ladenId", [{"ladenId": n, "stadtId": n} for n in range(5)])
    found = decided(part, line, user, login, city, shop)

    assert sorted(told(found, Confidence.STRONG)) == [
        "lineitem.l_partkey > part", "logins.userId > Users", "läden.stadtId > städte"
    ]  # fmt: skip


def test_times_names_and_states_refer_to_nothing() -> None:
    days = table("days", "date", date="date")
    states = table("states", "name", [{"name": "open"}, {"name": "shut"}, {"name": "lost"}])
    orders = table(
        "orders",
        "id",
        [{"id": n, "name": "open", "order_status": "open"} for n in range(5)],
        order_date="date",
    )
    found = [
        one for one in decided((days[0], ()), states, (orders[0], orders[1])) if one.is_proposed
    ]
    assert found == []
