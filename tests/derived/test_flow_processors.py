"""Each processor of a flow: its rows, as DuckDB answers the query that it becomes."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from tests.derived.flow_tables import Table, flow_of, rows_of

ORDERS = Table(
    {"id": "bigint", "customer": "int", "status": "string", "amount": "decimal(10,2)"},
    [
        (1, 7, "paid", Decimal("10.50")),
        (2, 7, "open", Decimal("4.00")),
        (3, 8, "paid", None),
        (4, None, None, Decimal("1.25")),
    ],
    ("id",),
)
CUSTOMERS = Table(
    {"customer": "bigint", "name": "string", "country": "string"},
    [(7, "Ann", "NO"), (9, "Ben", None)],
    ("customer",),
)
SHOP = {"shop.orders": ORDERS, "shop.customers": CUSTOMERS}


def flow(*steps: str) -> str:
    return "flow:\n" + "".join(f"  - {step}\n" for step in steps)


def test_a_filter_keeps_rows_for_which_the_condition_is_true() -> None:
    text = flow("filter: {input: orders, condition: \"status = 'paid' OR amount > 4\"}")

    assert [row[0] for row in rows_of(text, SHOP)] == [1, 3]


def test_steps_follow_each_other() -> None:
    text = flow(
        "select: {input: orders, columns: [id, status]}",
        'filter: "status IS NULL"',
        "rename: {columns: {status: state, id: order_id}}",
        'derive: {columns: {double: "order_id * 2"}}',
    )

    assert rows_of(text, SHOP) == [(4, None, 8)]
    assert dict(flow_of(text, SHOP).columns) == {
        "order_id": "bigint", "state": "string", "double": "bigint",
    }  # fmt: skip


def test_select_leaves_columns_out() -> None:
    text = flow("select: {input: customers, except: [name]}")

    assert rows_of(text, SHOP) == [(7, "NO"), (9, None)]


def test_columns_may_swap_their_names() -> None:
    text = flow("rename: {input: customers, columns: {name: country, country: name}}")

    assert rows_of(text, SHOP)[0] == (7, "Ann", "NO")
    assert list(flow_of(text, SHOP).columns) == ["customer", "country", "name"]


def test_derived_columns_see_the_columns_before_the_step() -> None:
    text = flow(
        'derive: {input: orders, columns: {id: "id + 100", next: "id + 1", '
        'big: {expression: "amount > 4", type: string}}}'
    )

    assert [(row[0], row[4], row[5]) for row in rows_of(text, SHOP)][:2] == [
        (101, 2, "true"),
        (102, 3, "false"),
    ]
    assert list(flow_of(text, SHOP).columns)[:2] == ["id", "customer"]


def test_joins_keep_the_rows_of_their_type() -> None:
    def joined(kind: str) -> list[tuple[object, ...]]:
        text = flow(
            "select: {input: orders, columns: [id, customer]}",
            f"join: {{with: customers, on: [customer], type: {kind}}}",
        )
        return rows_of(text, SHOP)

    both = [(1, 7, "Ann", "NO"), (2, 7, "Ann", "NO")]
    left = [(3, 8, None, None), (4, None, None, None)]
    right = [(None, 9, "Ben", None)]
    assert joined("inner") == both
    assert joined("left") == both + left
    assert joined("right") == both + right
    assert joined("full") == both + left + right
    assert joined("semi") == [(1, 7), (2, 7)]
    assert joined("anti") == [(3, 8), (4, None)]


def test_a_join_takes_names_of_both_sides_a_condition_and_a_prefix() -> None:
    text = flow(
        "join: {input: orders, with: customers, on: {customer: customer}, prefix: c_, "
        "type: left, condition: \"left.status = 'paid' AND right.country = 'NO'\"}",
        "select: [id, c_name]",
    )

    assert rows_of(text, SHOP) == [(1, "Ann"), (2, None), (3, None), (4, None)]


def test_a_join_by_a_range_finds_the_version_of_a_time() -> None:
    prices = Table(
        {"item": "string", "since": "int", "until": "int", "price": "int"},
        [("a", 0, 5, 10), ("a", 5, 9, 12)],
    )
    sales = Table({"item": "string", "at": "int"}, [("a", 4), ("a", 5), ("b", 1)], ("item", "at"))
    text = flow(
        "join: {input: sales, with: prices, on: [item], "
        'condition: "left.at >= right.since AND left.at < right.until"}',
        "select: [at, price]",
    )

    assert rows_of(text, {"sales": sales, "prices": prices}) == [(4, 10), (5, 12)]


def test_a_cross_join_is_all_pairs() -> None:
    text = flow("join: {input: orders, with: customers, type: cross, prefix: c_}")

    assert len(rows_of(text, SHOP)) == 8


def test_a_lookup_keeps_every_row_once() -> None:
    text = flow(
        "lookup: {input: orders, from: customers, on: [customer], columns: {buyer: name}}",
        "select: [id, buyer]",
    )

    assert rows_of(text, SHOP) == [(1, "Ann"), (2, "Ann"), (3, None), (4, None)]


def test_a_union_goes_by_name_fills_what_is_missing_and_promotes_types() -> None:
    text = flow(
        "union: {inputs: [orders, customers], source: origin}", "select: {except: [amount]}"
    )

    rows = rows_of(text, SHOP)

    assert ("customers", None, 9, None, "Ben", None) in rows
    assert ("orders", 1, 7, "paid", None, None) in rows
    assert flow_of(text, SHOP).columns["customer"] == "bigint"
    assert len(rows) == 6


def test_aggregates_of_groups() -> None:
    text = flow(
        "aggregate: {input: orders, by: [customer], columns: {n: {count: '*'}, "
        "known: {count: amount}, kinds: {count_distinct: status}, total: {sum: amount}, "
        "mean: {avg: amount}, low: {min: amount}, high: {max: amount}, "
        "some: {any: \"status = 'open'\"}, all: {every: \"status = 'paid'\"}, "
        "paid: {sum: amount, where: \"status = 'paid'\"}}}"
    )

    money = Decimal
    assert rows_of(text, SHOP) == [
        (7, 2, 2, 2, money("14.50"), 7.25, money("4.00"), money("10.50"), True, False,
         money("10.50")),
        (8, 1, 0, 1, None, None, None, None, False, True, None),
        (None, 1, 1, 0, money("1.25"), 1.25, money("1.25"), money("1.25"), None, None, None),
    ]  # fmt: skip
    assert dict(flow_of(text, SHOP).columns) == {
        "customer": "int", "n": "bigint", "known": "bigint", "kinds": "bigint",
        "total": "decimal(20,2)", "mean": "decimal(14,6)", "low": "decimal(10,2)",
        "high": "decimal(10,2)", "some": "boolean", "all": "boolean", "paid": "decimal(20,2)",
    }  # fmt: skip


def test_a_sorted_list_has_all_values_of_a_group() -> None:
    text = flow(
        'filter: {input: orders, condition: "customer IS NOT NULL"}',
        "aggregate: {by: [customer], columns: {states: {sorted_list: status}}}",
    )

    assert rows_of(text, SHOP) == [(7, ["open", "paid"]), (8, ["paid"])]
    assert flow_of(text, SHOP).columns["states"] == "array<string>"


def test_an_aggregate_without_groups_is_one_row() -> None:
    assert rows_of(flow("aggregate: {input: orders, columns: {n: {count: '*'}}}"), SHOP) == [(4,)]


def test_values_are_cleansed_in_the_documented_order() -> None:
    table = Table({"id": "int", "c": "string"}, [(1, " uk "), (2, "n/a"), (3, "fr"), (4, "  ")])
    text = flow(
        "cleanse: {input: t, trim: [c], replace: {c: {uk: gb}}, case: {c: upper}, "
        'null_if: {c: ["", "N/A"], id: [3]}}'
    )

    assert rows_of(text, {"t": table}) == [(1, "GB"), (2, None), (4, None), (None, "FR")]


def test_title_case_begins_words_with_a_capital() -> None:
    table = Table({"c": "string"}, [("ann MARY",)])

    assert rows_of(flow("cleanse: {input: t, case: {c: title}}"), {"t": table}) == [("Ann Mary",)]


def test_cleanse_ends_with_one_row_of_duplicates() -> None:
    table = Table(
        {"id": "int", "name": "string", "at": "int"}, [(1, " a", 1), (2, "a ", 2), (3, "b", 0)],
        ("id",),
    )  # fmt: skip
    text = flow(
        "cleanse: {input: t, trim: [name], dedupe: {keys: [name], keep: latest, order: [at, id]}}"
    )

    assert rows_of(text, {"t": table}) == [(2, "a", 2), (3, "b", 0)]


def test_dedupe_without_keys_keeps_equal_rows_once() -> None:
    text = flow("select: {input: orders, columns: [customer]}", "dedupe: {}")

    assert rows_of(text, SHOP) == [(7,), (8,), (None,)]


def test_null_is_the_last_in_the_order_of_duplicates() -> None:
    table = Table({"k": "int", "at": "int"}, [(1, None), (1, 5), (1, 3)])

    def kept(which: str) -> list[tuple[object, ...]]:
        return rows_of(flow(f"dedupe: {{input: t, keys: [k], keep: {which}, order: [at]}}"),
                       {"t": table})  # fmt: skip

    assert kept("latest") == [(1, 5)]
    assert kept("first") == [(1, 3)]


def test_missing_values_take_the_last_one_before_then_a_constant() -> None:
    table = Table(
        {"s": "string", "at": "int", "v": "double", "unit": "string"},
        [("a", 1, None, None), ("a", 2, 1.5, "C"), ("a", 3, None, None), ("b", 1, None, "F")],
        ("s", "at"),
    )
    text = flow(
        'fill_missing: {input: t, last: [v], by: [s], order: [at], values: {v: 0, unit: "?"}}'
    )

    assert rows_of(text, {"t": table}) == [
        ("a", 1, 0.0, "?"), ("a", 2, 1.5, "C"), ("a", 3, 1.5, "?"), ("b", 1, 0.0, "F"),
    ]  # fmt: skip


def test_a_pivot_makes_columns_of_declared_values() -> None:
    text = flow(
        "pivot: {input: orders, by: [customer], column: status, values: [paid, open], "
        "value: {sum: amount}}"
    )

    assert rows_of(text, SHOP) == [
        (7, Decimal("10.50"), Decimal("4.00")), (8, None, None), (None, None, None),
    ]  # fmt: skip


def test_a_pivot_names_columns_and_counts_nothing_as_zero() -> None:
    text = flow(
        "pivot: {input: orders, by: [status], column: customer, "
        "values: {seven: 7, eight: 8}, value: {count: '*'}}"
    )

    assert rows_of(text, SHOP) == [("open", 1, 0), ("paid", 1, 1), (None, 0, 0)]


def test_an_unpivot_makes_rows_of_columns() -> None:
    table = Table({"id": "int", "jan": "int", "feb": "bigint"}, [(1, 10, None)], ("id",))
    kept = "unpivot: {input: t, columns: {jan: January, feb: February}, name: month, value: n"

    assert rows_of(flow(f"{kept}}}"), {"t": table}) == [(1, "February", None), (1, "January", 10)]
    assert rows_of(flow(f"{kept}, missing: drop}}"), {"t": table}) == [(1, "January", 10)]
    assert flow_of(flow(f"{kept}}}"), {"t": table}).columns["n"] == "bigint"


def test_elements_become_rows() -> None:
    table = Table(
        {"id": "int", "tags": "array<string>"}, [(1, ["x", "y"]), (2, []), (3, None)], ("id",)
    )
    tables = {"t": table}

    assert rows_of(flow("explode: {input: t, column: tags}"), tables) == [(1, "x"), (1, "y")]
    assert rows_of(
        flow("explode: {input: t, column: tags, into: tag, position: place}"), tables
    ) == [(1, "x", 1), (1, "y", 2)]
    assert rows_of(flow("explode: {input: t, column: tags, empty: keep}"), tables) == [
        (1, "x"), (1, "y"), (2, None), (3, None),
    ]  # fmt: skip


def test_windows_look_at_the_rows_around() -> None:
    table = Table(
        {"s": "string", "at": "int", "v": "int"},
        [("a", 1, 5), ("a", 2, 7), ("a", 3, 7), ("b", 1, 1)],
        ("s", "at"),
    )
    text = flow(
        "window: {input: t, by: [s], order: [at], columns: {n: {row_number: true}, "
        "before: {lag: v}, second: {lead: v, offset: 2}, begin: {first: v}, end: {last: v}, "
        "total: {sum: v}, so_far: {sum: v, rows: running}, two: {max: v, rows: 1}}}"
    )

    assert rows_of(text, {"t": table}) == [
        ("a", 1, 5, 1, None, 7, 5, 7, 19, 5, 5),
        ("a", 2, 7, 2, 5, None, 5, 7, 19, 12, 7),
        ("a", 3, 7, 3, 7, None, 5, 7, 19, 19, 7),
        ("b", 1, 1, 1, None, None, 1, 1, 1, 1, 1),
    ]


def test_ranks_may_have_ties() -> None:
    table = Table({"v": "int"}, [(5,), (7,), (7,)])
    text = flow(
        "window: {input: t, order: [{v: desc}], columns: "
        "{rank: {rank: true}, dense: {dense_rank: true}}}"
    )

    assert rows_of(text, {"t": table}) == [(5, 3, 2), (7, 1, 1), (7, 1, 1)]


def test_constants_have_the_type_of_their_column() -> None:
    table = Table(
        {"d": "date", "t": "timestamp", "m": "decimal(6,2)", "b": "boolean"},
        [(None, None, None, None)],
    )
    text = flow(
        'fill_missing: {input: t, values: {d: "2026-11-29", t: "2026-11-29T10:00:00+01:00", '
        "m: 1.5, b: true}}"
    )

    [(day, at, money, truth)] = rows_of(text, {"t": table})

    assert str(day) == "2026-11-29"
    assert at.astimezone(UTC) == datetime(2026, 11, 29, 9, tzinfo=UTC)
    assert (money, truth) == (Decimal("1.50"), True)


def test_functions_of_polynya_are_rewritten_for_types_that_are_known() -> None:
    text = flow(
        "select: {input: customers, columns: [name]}", 'derive: {columns: {u: "to_upper(name)"}}'
    )

    assert rows_of(text, SHOP) == [("Ann", "ANN"), ("Ben", "BEN")]


def test_a_field_wins_over_a_column_of_a_relation_with_the_same_name() -> None:
    """`items.sku` is the field of the column `items`, although the step is called `items`."""
    table = Table({"sku": "string", "items": "struct<sku:string>"}, [("outer", {"sku": "inner"})])
    text = flow(
        "select: {input: t, columns: [sku, items], as: items}",
        'derive: {columns: {found: "items.sku"}}',
        "select: [found]",
    )

    with_types = Table({"sku": "string", "items": "struct<sku:string>"}, table.rows)
    compiled = flow_of(text, {"t": with_types})

    assert "FROM `items` AS `input`" in compiled.sql
    assert compiled.columns == {"found": "string"}
