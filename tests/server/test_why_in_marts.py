"""Why rows of marts are so, over the API: to the event of the version that held then. No JVM."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from polynya.engine.commands.why import versions_within
from polynya.formats.values.sequence import sequence_encoder
from polynya.model.types import BIGINT
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import write_project
from tests.server.tables import at, current, prior, write_table

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
defaults: {sequence_by: [seq], history: true}
datasets:
  - {name: orders, path: "orders/*.json", keys: [id]}
  - {name: customers, path: "customers/*.json", keys: [id]}
"""
MART = """\
apiVersion: polynya/v1
kind: data_mart
name: mart
from: [shop]
relationships:
  - {from: orders, to: customers, on: {customer: id}}
dimensions:
  - {name: customer, type: 2, table: customers, keys: [id], columns: [city]}
facts:
  - name: sold
    table: orders
    keys: [id]
    time: ordered_at
    dimensions: [customer]
    measures: {amount: amount}
"""
INT, TEXT = ("bigint", pa.int64()), ("string", pa.string())
TIME, BOOL = ("timestamp", pa.timestamp("us", "UTC")), ("boolean", pa.bool_())
FIRST, LAST = datetime(1000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
AT = {number: sequence_encoder([BIGINT])([number])[0] for number in (1, 2, 3)}
#: The versions of a dimension: key, city, from and to.
VERSIONS = (("k1", "Bonn", FIRST, at(5)), ("k2", "Ulm", at(5), at(9)), ("k3", "Bonn", at(9), LAST))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """A customer who moved twice, and two orders, of which one is of the time between."""
    folder = write_project(tmp_path_factory.mktemp("marts"), shop=SHOP, mart=MART)
    customers = [{"id": 10, "city": city, "seq": n} for n, city in enumerate(("Bonn", "Ulm"), 1)]
    customers.append({"id": 10, "city": "Bonn", "seq": 3})
    write_table(
        folder,
        "shop_internal.customers_internal",
        {"id": INT, "city": TEXT, "seq": INT},
        ["id"],
        [
            prior(AT[1], "I", (1, 5), (10, 20), **customers[0]),
            prior(AT[2], "U", (5, 9), (20, 30), **customers[1]),
            current(AT[3], "U", 9, 30, **customers[2]),
        ],
    )
    orders: list[dict[str, Any]] = [
        {"id": 1, "customer": 10, "amount": 7, "ordered_at": at(6), "seq": 1},
        {"id": 2, "customer": 10, "amount": 8, "ordered_at": at(9), "seq": 1},
    ]
    order = {"id": INT, "customer": INT, "amount": INT, "ordered_at": TIME, "seq": INT}
    rows = [current(AT[1], "I", 1, 10, **one) for one in orders]
    write_table(folder, "shop_internal.orders_internal", order, ["id"], rows)
    version = {
        "customer_key": TEXT, "id": INT, "city": TEXT,
        "valid_from": TIME, "valid_to": TIME, "is_current": BOOL,
    }  # fmt: skip
    dimension = [
        {"customer_key": key, "id": 10, "city": city, "valid_from": begin, "valid_to": end,
         "is_current": end == LAST}
        for key, city, begin, end in VERSIONS
    ]  # fmt: skip
    write_table(
        folder,
        "mart_internal.customer_internal",
        version,
        ["customer_key"],
        [current("1", "I", 1, 40, **one) for one in dimension],
    )
    facts = [(1, "k2", 7), (2, "k3", 8)]
    write_table(
        folder,
        "mart_internal.sold_internal",
        {"id": INT, "customer_key": TEXT, "amount": INT},
        ["id"],
        [current("1", "I", 1, 50, id=n, customer_key=key, amount=m) for n, key, m in facts],
    )
    for name, landed in (("orders", orders), ("customers", customers)):
        place = folder / "landing" / "shop" / name
        place.mkdir(parents=True)
        (place / "1.json").write_text(
            "".join(json.dumps(one, default=str) + "\n" for one in landed)
        )
    return TestClient(app_of(ServerState(folder, None, SystemClock())))


def why(client: TestClient, dataset: str, key: str) -> Any:
    answer = client.get(f"/api/v1/datasets/{dataset}/why?key={key}")
    assert answer.status_code == 200, answer.text
    return answer.json()["row"]


@pytest.mark.parametrize(("key", "number", "begin"), [("k1", 0, 1), ("k2", 1, 5), ("k3", 2, 9)])
def test_a_version_of_a_dimension_is_followed_to_the_event_that_made_it(
    client: TestClient, key: str, number: int, begin: int
) -> None:
    root = why(client, "mart.customer", f"customer_key={key}")

    (customers,) = root["inputs"]
    (version,) = customers["rows"]
    assert customers["dataset"] == "shop.customers__history"
    assert version["values"]["city"] == root["values"]["city"]
    assert version["valid_from"] == at(begin).isoformat()
    assert version["entry"]["number"] == number + 1
    assert version["entry"]["landed"] == {
        "file": "shop/customers/1.json", "number": number, "message": None
    }  # fmt: skip


@pytest.mark.parametrize(("order", "key", "number"), [(1, "k2", 1), (2, "k3", 2)])
def test_a_fact_is_followed_through_the_version_of_its_time(
    client: TestClient, order: int, key: str, number: int
) -> None:
    inputs = {one["dataset"]: one for one in why(client, "mart.sold", f"id={order}")["inputs"]}

    (sold,) = inputs["shop.orders"]["rows"]
    assert sold["entry"]["landed"]["number"] == order - 1
    assert (sold["valid_from"], sold["valid_to"]) == (None, None)
    (version,) = inputs["mart.customer"]["rows"]
    assert version["key"] == {"customer_key": key}
    (customer,) = version["inputs"][0]["rows"]
    assert customer["entry"]["landed"]["number"] == number


def test_the_page_says_from_when_to_when_a_version_was_valid(client: TestClient) -> None:
    text = client.get("/console/why?dataset=mart.customer&key=customer_key%3Dk2").text

    assert "This version was valid from <time" in text
    assert "id = 10 from 2026-01-01 12:00:05" in text


def version(begin: float, end: float | None, key: int = 1) -> dict[str, Any]:
    times = {
        "hdr__from_timestamp": at(begin),
        "hdr__to_timestamp": None if end is None else at(end),
    }
    return {"id": key, **times}


@pytest.mark.parametrize(
    ("span", "begins"),
    [((1, 5), [1]), ((5, 9), [5]), ((4, 6), [1, 5]), ((9, 99), [9]), ((-9, 0), [1])],
)
def test_versions_of_another_time_made_other_rows(
    span: tuple[float, float], begins: list[float]
) -> None:
    # The second one has never held: it was corrected at once.
    rows = [version(1, 5), version(5, 5), version(5, 9), version(9, None)]
    found = versions_within(rows, ["id"], (at(span[0]), at(span[1])))

    assert [row["hdr__from_timestamp"] for row in found] == [at(one) for one in begins]


def test_the_first_version_of_each_record_also_holds_before_it() -> None:
    rows = [version(3, 5), version(5, None), version(7, None, key=2)]
    found = versions_within(rows, ["id"], (at(0), at(1)))

    assert [(row["id"], row["hdr__from_timestamp"]) for row in found] == [(1, at(3)), (2, at(7))]
