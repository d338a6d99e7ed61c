"""A proposed mart is a file that loads, with facts and dimensions as relationships lead."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from ruamel.yaml import YAML

from polynya.model.config.mart import DataMart, TableDimension
from polynya.model.loader import load_project
from polynya.proposal.mart_file import MartProposal, proposed_mart
from polynya.proposal.relationships import Confidence, TableProfile
from tests.derived import mart_shop, test_retail_star
from tests.projects import PROJECT, write_project
from tests.proposal.test_relationships import Rows, decided, numbered, table


def proposed(*tables: tuple[TableProfile, Rows]) -> MartProposal:
    """The mart over the tables of a task `shop`."""
    return proposed_mart("sales", ["shop"], [one for one, _ in tables], decided(*tables))


def loaded(folder: Path, made: MartProposal, *tables: tuple[TableProfile, Rows]) -> DataMart:
    """The mart as it is loaded; what is wrong with it fails the test."""
    datasets = "".join(
        f"  - {{name: {one.view}, path: {one.view}/*, sequence_by: [seq], "
        + (f"keys: [{', '.join(map(repr, one.keys))}]}}\n" if one.keys else "mode: append_only}\n")
        for one, _ in tables
    ).replace("sequence_by: [seq], mode", "mode")
    shop = (
        "apiVersion: polynya/v1\nkind: storage\nname: shop\nschema: shop\n"
        f"landing: {{path: shop, format: json}}\ndatasets:\n{datasets}"
    )
    load_project(write_project(folder, project=PROJECT, shop=shop, sales=made.text))
    return DataMart.model_validate(YAML(typ="safe").load(made.text))


def shape(mart: DataMart) -> dict[str, list[str]]:
    """The names of facts with their roles, and of dimensions."""
    found: dict[str, list[str]] = {one.name: [] for one in mart.dimensions}
    for fact in mart.facts:
        found[fact.name] = [
            one if isinstance(one, str) else f"{one.dimension} as {one.as_ or one.dimension}"
            for one in fact.dimensions
        ]
    return found


@pytest.fixture
def star() -> list[tuple[TableProfile, Rows]]:
    """Orders of customers with two addresses, and their lines."""
    return [
        table("customers", "id", numbered(5, name=lambda n: f"c{n}")),
        table("addresses", "id", numbered(9, city=lambda n: f"c{n}"), created_at="timestamp"),
        table(
            "orders",
            "id",
            numbered(
                9,
                customer_id=lambda n: n % 5 + 1,
                billing_address_id=lambda n: n,
                shipping_address_id=lambda n: n % 3 + 1,
            ),
            amount="decimal(9,2)",
            ordered_at="timestamp",
            shipped_on="date",
        ),
        table(
            "lines", "order_id no", [{"order_id": n, "no": 1} for n in range(1, 9)], pieces="int"
        ),
    ]


def test_facts_are_what_refers_happened_and_counts(
    tmp_path: Path, star: list[tuple[TableProfile, Rows]]
) -> None:
    made = proposed(*star)
    mart = loaded(tmp_path, made, *star)

    assert shape(mart) == {
        "customers": [],
        "addresses": [],
        "calendar": [],
        "orders": [
            "customers",
            "addresses as billing_addresses",
            "addresses as shipping_addresses",
            "calendar as ordered",
            "calendar as shipped",
        ],
        "lines": ["customers"],
    }
    assert dict(mart.facts[0].measures) == {"amount": "amount"}
    assert dict(mart.facts[1].measures) == {"pieces": "pieces"}
    assert (
        "  # strong: `customer_id` names `customers`; same type; 5 of 5 values found" in made.text
    )


def test_a_bridge_is_a_fact_without_measures(tmp_path: Path) -> None:
    film = table("film", "film_id", [{"film_id": n, "title": "x"} for n in range(6)])
    actor = table("actor", "actor_id", [{"actor_id": n} for n in range(6)])
    pairs = [{"actor_id": n % 3, "film_id": n} for n in range(6)]
    bridge = table("film_actor", "actor_id film_id", pairs)
    made = proposed(film, actor, bridge)

    assert shape(loaded(tmp_path, made, film, actor, bridge)) == {
        "film": [], "actor": [], "film_actor": ["film", "actor"]
    }  # fmt: skip
    assert made.facts["shop.film_actor"].endswith("it connects them, many to many")


def test_names_of_others_stay_names(tmp_path: Path) -> None:
    odd = "no: `x` #\u202e {y}"
    people = table("people", "id", numbered(5, **{odd: lambda n: "x", "people_key": lambda n: "k"}))
    visits = table(
        "visits",
        "id",
        numbered(9, people_id=lambda n: n % 5 + 1),
        **{odd: "double", "${env:A}": "int"},
    )
    made = proposed(people, visits)
    mart = loaded(tmp_path, made, people, visits)

    dimension = mart.dimensions[0]
    assert isinstance(dimension, TableDimension)
    assert odd in dimension.columns
    assert dimension.key == "people_key_2"
    assert dict(mart.facts[0].measures)[odd] == "`no: ``x`` #\u202e {y}`"
    assert "\u202e" not in made.text


def test_tables_alone_and_facts_without_keys_are_left_out(tmp_path: Path) -> None:
    shops = table("shops", "id", numbered(5))
    visits = table("visits", "", [{"shop_id": n, "cost": n} for n in range(1, 5)], cost="double")
    alone = table("alone", "id", numbered(3))
    made = proposed(shops, visits, alone)

    assert shape(loaded(tmp_path, made, shops, visits, alone)) == {"shops": []}
    assert made.left_out == {
        "shop.visits": "it would be a fact (refers to shop.shops; referred to by no table; "
        "measures: cost), but has no keys",
        "shop.alone": "no relationship leads from it or to it",
    }


def test_the_foreign_keys_of_a_video_shop_are_found_and_no_others(tmp_path: Path) -> None:
    tables = [
        table(
            name,
            next(iter(columns)),
            [{key: n for key in columns if key.endswith("_id")} for n in range(1, 6)],
            **columns,
        )
        for name, columns in mart_shop.TABLES.items()
    ]
    true = YAML(typ="safe").load(mart_shop.MART)["relationships"]
    mart = loaded(tmp_path, proposed(*tables), *tables)

    found = {(one.from_[5:], one.to[5:], *one.on.items()) for one in mart.relationships}
    # A rental has no customer here: payments have.
    assert found == {(one["from"], one["to"], *one["on"].items()) for one in true}
    assert list(shape(mart)) == [
        "city", "address", "customer", "film", "inventory", "rental", "calendar", "payment"
    ]  # fmt: skip


#: Sakila, the sample of MySQL: the key of each table, and its other columns; `>` is a foreign key.
SAKILA = """\
actor actor_id first_name last_name
address address_id address district city_id>city postal_code phone
category category_id name
city city_id city country_id>country
country country_id country
customer customer_id store_id>store first_name address_id>address active
film film_id title language_id>language original_language_id>language rental_rate length
film_actor actor_id>actor+film_id>film
film_category film_id>film+category_id>category
inventory inventory_id film_id>film store_id>store
language language_id name
payment payment_id customer_id>customer staff_id>staff rental_id>rental amount
rental rental_id inventory_id>inventory customer_id>customer staff_id>staff
staff staff_id first_name address_id>address store_id>store username
store store_id manager_staff_id>staff address_id>address
"""


def test_every_foreign_key_of_sakila_is_strong_and_nothing_else_is() -> None:
    texts = {"first_name", "last_name", "title", "name", "city", "country", "address", "username"}
    tables, true = [], set()
    for number, line in enumerate(SAKILA.splitlines(), 3):
        name, keys, *others = line.split()
        parts = [part.partition(">") for part in (*keys.split("+"), *others)]
        true |= {(name, column, parent) for column, _, parent in parts if parent}
        rows = [
            {
                column: f"{column} {n}" if column in texts else n % 3 + 1 if parent else n
                for column, _, parent in parts
            }
            for n in range(1, number + 3)
        ]
        key = " ".join(part.partition(">")[0] for part in keys.split("+"))
        tables.append(table(name, key, rows))
    found = decided(*tables)
    strong = {
        (one.reference.child[5:], *one.reference.columns, one.reference.parent[5:])
        for one in found
        if one.confidence is Confidence.STRONG
    }

    assert len(true) == 22
    assert strong == true


def test_the_foreign_keys_of_a_retail_star_are_found_and_no_others(tmp_path: Path) -> None:
    tables = [
        table(
            name,
            " ".join(keys),
            [
                {key: n for key, kind in columns.items() if kind == "int"}
                for n in range(1, 3 if "returns" in name else 6)
            ],
            **columns,
        )
        for name, (keys, columns) in test_retail_star.TABLES.items()
    ]
    found = {
        (one.reference.child[5:], one.reference.parent[5:], one.confidence.value)
        for one in decided(*tables)
        if one.is_proposed
    }
    assert found == {
        ("customer", "customer_address", "likely"),
        ("store_sales", "item", "strong"),
        ("store_sales", "customer", "strong"),
        ("store_sales", "store", "strong"),
        ("store_sales", "promotion", "strong"),
        ("store_returns", "item", "strong"),
        ("store_returns", "store_sales", "strong"),
        ("inventory", "item", "strong"),
        ("inventory", "store", "strong"),
    }


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 100))]
)
def test_random_tables_become_a_mart_that_loads(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    views = random.sample(["a", "b", "calendar", "people", "a_key", "Item", "item_lines", "t"], 5)
    odd = ["valid_from", "calendar_key", "date", "x`y", "no", "ordered_key", "ü#:", "at", "amount"]
    tables = []
    for view in views:
        others = [one for one in views if random.randrange(2)]
        foreign = [
            f"{random.choice(['', '', 'ship_', 'parent_'])}{one}_{random.choice(['id', 'key'])}"
            for one in others
        ]
        count = random.randrange(1, 3)
        own = random.choice([["id"], [f"{view}_id"], [f"{view}_key"], foreign[:count] or ["id"]])
        columns = list(dict.fromkeys([*own, *foreign]))
        rows = [dict.fromkeys(columns, n) for n in range(1, random.randrange(2, 9))]
        types = {
            name: random.choice(["timestamp", "double", "string", "date"])
            for name in random.sample(odd, 5)
            if name not in columns
        }
        tables.append(table(view, " ".join(own), rows, **types))
    made = proposed(*tables)
    if made.dimensions:
        assert loaded(tmp_path, made, *tables).name == "sales"
