"""A data mart becomes queries that a person can read; what is wrong with it has its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.derived.query_errors import query_errors
from polynya.model.config.derived import DerivedTask
from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from tests.projects import PROJECT

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
defaults: {sequence_by: [seq]}
datasets:
  - {name: orders, path: orders/*, keys: [id]}
  - {name: lines, path: lines/*, keys: [order_id, line]}
  - {name: customers, path: customers/*, keys: [id], history: true}
  - {name: countries, path: countries/*, keys: [code]}
"""
MART = """\
apiVersion: polynya/v1
kind: data_mart
name: sales
from: [shop]
relationships:
  - {from: orders, to: customers, on: {customer_id: id}}
  - {from: lines, to: orders, on: {order_id: id}}
  - {from: customers, to: countries, on: {country: code}}
dimensions:
  - name: customer
    table: customers
    keys: [id]
    columns: [name, {name: country, table: countries, column: title}]
    unknown: {name: "nobody's"}
facts:
  - name: fact_lines
    table: lines
    keys: [order_id, line]
    columns: [{name: ordered_at, table: orders}]
    dimensions: [customer]
    measures: {net: "amount - discount"}
    where: amount > 0
"""
DIMENSION = """\
WITH members AS (
  SELECT
    `id`,
    `name`,
    `country` AS `link_country`
  FROM `shop`.`customers`
)
SELECT
  substr(sha2(CAST(t.`id` AS STRING), 256), 1, 32) AS `customer_key`,
  t.`id`,
  t.`name`,
  `countries`.`title` AS `country`
FROM members AS t
LEFT JOIN `shop`.`countries` AS `countries`
  ON `countries`.`code` = t.`link_country`
UNION ALL
SELECT
  '00000000000000000000000000000000' AS `customer_key`,
  NULL AS `id`,
  'nobody\\'s' AS `name`,
  NULL AS `country`"""
FACT = """\
WITH facts AS (
  SELECT
    `order_id`,
    `line`,
    amount - discount AS `net`
  FROM `shop`.`lines`
  WHERE amount > 0
)
SELECT
  t.`order_id`,
  t.`line`,
  `orders`.`ordered_at` AS `ordered_at`,
  coalesce(`customer`.`customer_key`, '00000000000000000000000000000000') AS `customer_key`,
  t.`net`
FROM facts AS t
LEFT JOIN `shop`.`orders` AS `orders`
  ON `orders`.`id` = t.`order_id`
LEFT JOIN `sales`.`customer` AS `customer`
  ON `customer`.`id` = `orders`.`customer_id`"""


def loaded(folder: Path, mart: str = MART, **files: str) -> LoadedProject:
    (folder / "tasks").mkdir(parents=True)
    (folder / "polynya.yml").write_text(PROJECT)
    for name, text in {"shop": SHOP, "sales": mart, **files}.items():
        (folder / "tasks" / f"{name}.yml").write_text(text)
    return load_project(folder)


def errors_of(folder: Path, mart: str) -> list[str]:
    """Code, place and message with its fix of each error."""
    with pytest.raises(ConfigErrors) as caught:
        loaded(folder, mart)
    return [f"{error.code[-7:]} {error}; {error.fix}" for error in caught.value.errors]


def mart_of(project: LoadedProject, name: str = "sales") -> DerivedTask:
    (task,) = (one for one in project.tasks if one.name == name)
    assert isinstance(task, DerivedTask)
    return task


def test_the_queries_are_what_a_person_would_write(tmp_path: Path) -> None:
    project = loaded(tmp_path)
    task = mart_of(project)

    assert task.queries["customer"].text == DIMENSION
    assert task.queries["fact_lines"].text == FACT
    assert query_errors(project) == []


def test_a_table_that_refers_to_itself_has_one_way_to_the_others(tmp_path: Path) -> None:
    itself = "  - {name: agent, from: orders, to: orders, on: {parent_id: id}}\ndimensions:"
    parent = "columns: [{name: parent_at, table: orders, column: ordered_at, via: [orders, agent]}]"
    mart = MART.replace("dimensions:", itself, 1).replace(
        "columns: [{name: ordered_at, table: orders}]", parent
    )
    task = mart_of(loaded(tmp_path, mart.replace("agent", "parent")))

    assert "`parent`.`ordered_at` AS `parent_at`" in task.queries["fact_lines"].text
    assert "`customer`.`id` = `orders`.`customer_id`" in task.queries["fact_lines"].text


def test_facts_follow_dimensions_and_what_reads_the_mart_follows_both(tmp_path: Path) -> None:
    top = (
        "apiVersion: polynya/v1\nkind: transform\nname: top\nfrom: [sales]\n"
        "datasets: [{name: best, keys: [order_id], "
        'sql: "SELECT order_id, sum(net) AS net FROM fact_lines GROUP BY order_id"}]\n'
    )
    project = loaded(tmp_path, top=top)
    sales = mart_of(project)

    assert [dataset.name for dataset in sales.datasets] == ["customer", "fact_lines"]
    assert [list(dataset.keys or ()) for dataset in sales.datasets] == [
        ["customer_key"],
        ["order_id", "line"],
    ]
    assert [sales.stage_of(name) for name in ("customer", "fact_lines")] == [1, 2]
    assert mart_of(project, "top").stage_of("best") == 3
    assert query_errors(project) == []


def test_settings_of_tables_are_those_of_transforms(tmp_path: Path) -> None:
    mart = MART.replace(
        "    keys: [id]\n", "    keys: [id]\n    history: true\n    delete_mode: soft\n"
    ).replace("where: amount > 0", "partition_by: [ordered_at]")
    customer, lines = mart_of(loaded(tmp_path, mart)).datasets

    assert (customer.history, customer.delete_mode) == (True, "soft")
    assert [str(term) for term in lines.partition_by or ()] == ["ordered_at"]


BUYER = "  - {name: buyer, from: orders, to: customers, on: {buyer_id: id}}"
TYPE_2 = "table: customers\n    type: 2\n"
DAYS = "dimensions:\n  - {name: day, type: date, first: 2026-01-01, last: 2025-01-01}\n"
#: What stands in MART, what is written instead, and code, place and words of the error.
WRONG = (
    ("from: lines, to", "from: line, to", "TRF-100", "7:6", "did you mean `lines`?"),
    ("table: lines", "table: shop.line", "TRF-100", "17:5", "is called `shop.line`"),
    ("[customer]", "[custmer]", "TRF-101", "20:18", "did you mean `customer`?"),
    ("[customer]", "[{dimension: customer, via: [order]}]", "TRF-102", "20:46",
     "no relationship called `order` begins at shop.lines"),
    ("[customer]", "[{dimension: customer, via: [orders]}]", "TRF-102", "20:40",
     "`via` leads to shop.orders, not to shop.customers"),
    ("{name: ordered_at, table: orders}", "{name: a, table: lines}", "TRF-102", "19:15",
     "from shop.lines they lead to shop.orders"),
    ("on: {order_id: id}}", f"on: {{order_id: id}}}}\n{BUYER}", "TRF-103", "21:18",
     "2 ways lead from shop.lines to shop.customers: [orders, customers], [orders, buyer]"),
    ("on: {order_id: id}", "on: {order_id: number}", "TRF-104", "7:31", "its key (id)"),
    ("table: customers\n", TYPE_2, "TRF-105", "21:18", "`customer` needs a time of the fact"),
    ("table: customers\n", TYPE_2, "TRF-106", "14:21",
     "a dimension of type 2 needs all versions of `shop.countries`, which keeps no history"),
    ("columns: [name,", "columns: [name, NAME,", "TRF-107", "13:21", "a column called `NAME`"),
    ("measures: {net:", "measures: {customer_key:", "TRF-107", "21:16", "`customer_key` exists"),
    ("name: fact_lines", "name: Customer", "TRF-107", "16:5", "a table of the mart called"),
    ("{from: customers, to", "{name: Customers, from: orders, to", "TRF-107", "8:6",
     "a relationship of `shop.orders` called `Customers` exists already"),
    ("unknown: {name:", "unknown: {nmae:", "TRF-108", "14:15", "did you mean `name`?"),
    ("table: customers\n", f"{TYPE_2}    delete_mode: soft\n", "CFG-009", "10:5",
     "a dimension of type 2 cannot keep deleted versions"),
    ("table: customers\n", "table: customers\n    type: 3\n", "CFG-009", "12:5", "number `3`"),
    ("dimensions:\n", DAYS, "CFG-009", "10:5", "from 2026-01-01 to 2025-01-01 is not a range"),
    ("from: [shop]", "from: [shp]", "TRF-070", "4:8", "did you mean `shop`?"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "wrong", "code", "place", "words"), WRONG, ids=range(len(WRONG)))
def test_an_error_has_its_place_and_its_fix(
    tmp_path: Path, text: str, wrong: str, code: str, place: str, words: str
) -> None:
    assert text in MART

    errors = errors_of(tmp_path, MART.replace(text, wrong, 1))

    found = [error for error in errors if f"{code} tasks/sales.yml:{place}: " in error]
    assert any(words in error for error in found), "\n".join(errors)
    # A wrong name is not the cause of further errors.
    assert len(errors) == (2 if code in {"TRF-105", "TRF-106"} else 1), "\n".join(errors)


PROGRESS = """\
  - name: progress
    kind: accumulating_snapshot
    table: orders
    keys: [id]
    milestones: {ordered: ordered_at, packed: {table: lines, column: packed_at}}
    lags: {days_to_pack: [ordered, packed]}
"""


@pytest.mark.parametrize(
    ("text", "wrong", "expected"),
    [
        ("[ordered, packed]", "[ordered, pakced]", "TRF-108 tasks/sales.yml:28:36: "),
        ("table: lines, column", "table: customers, column", "TRF-102 tasks/sales.yml:27:39: "),
        ("accumulating_snapshot", "periodic_snapshot", "CFG-007 tasks/sales.yml:27:5: "),
    ],
)
def test_milestones_and_lags_are_checked(
    tmp_path: Path, text: str, wrong: str, expected: str
) -> None:
    assert mart_of(loaded(tmp_path / "right", f"{MART}{PROGRESS}")).queries["progress"].text

    errors = errors_of(tmp_path / "wrong", f"{MART}{PROGRESS.replace(text, wrong)}")

    assert any(error.startswith(expected) for error in errors), "\n".join(errors)


@pytest.mark.parametrize(
    "expression", ["amount -", "(SELECT 1)", "amount) AS a, (amount", "rand()", "to_int(amount)"]
)
def test_an_expression_that_is_none_is_found_at_its_place(tmp_path: Path, expression: str) -> None:
    project = loaded(tmp_path, MART.replace("amount - discount", expression))

    (error,) = query_errors(project)

    assert "tasks/sales.yml:21:16: " in str(error)


def test_a_task_with_an_error_leaves_out_a_mart_over_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors) as caught:
        loaded(tmp_path, MART, shop=SHOP.replace("keys: [id]}", "keyz: [id]}", 1))

    # The mart does not say that its task is missing.
    assert [error.code for error in caught.value.errors] == ["POLYNYA-CFG-007"]


def test_marts_and_transforms_in_a_circle_are_named(tmp_path: Path) -> None:
    top = (
        "apiVersion: polynya/v1\nkind: transform\nname: top\nfrom: [sales]\n"
        "datasets: [{name: best, keys: [order_id], sql: SELECT order_id FROM fact_lines}]\n"
    )
    with pytest.raises(ConfigErrors) as caught:
        loaded(tmp_path, MART.replace("from: [shop]", "from: [shop, top]"), top=top)

    assert {error.code for error in caught.value.errors} == {"POLYNYA-TRF-071"}
