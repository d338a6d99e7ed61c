"""Why a row is so, over the API: from a mart back to the landed file, on real tables. No JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from polynya.formats.values.sequence import sequence_encoder
from polynya.model.types import BIGINT
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import write_project
from tests.server.access.served import ROLES, Served, served
from tests.server.tables import current, event, write_table

STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
datasets:
  - {name: orders, path: "orders/*.json", keys: [id], sequence_by: [seq]}
  - {name: customers, path: "customers/*.json", keys: [id], sequence_by: [seq]}
"""
PAID = """\
apiVersion: polynya/v1
kind: transform
name: paid
from: [shop]
datasets:
  - name: paid
    keys: [id]
    sql: >-
      SELECT o.id, o.amount, c.city FROM orders o LEFT JOIN customers c ON o.customer = c.id
      WHERE o.state = 'paid'
"""
CITIES = """\
apiVersion: polynya/v1
kind: transform
name: cities
from: [paid]
datasets:
  - name: cities
    keys: [city]
    sql: SELECT city, sum(amount) AS total FROM paid GROUP BY city
"""
INT, TEXT = ("bigint", pa.int64()), ("string", pa.string())
AT = {number: sequence_encoder([BIGINT])([number])[0] for number in (1, 2)}


def fill(folder: Path) -> None:
    """Tables as runs would leave them; one order is pending."""
    order = {"id": INT, "customer": INT, "amount": INT, "state": TEXT, "seq": INT}
    rows = [
        {"id": 1, "customer": 10, "amount": 5, "state": "paid", "seq": 1},
        {"id": 2, "customer": 10, "amount": 7, "state": "open", "seq": 1},
        {"id": 3, "customer": 10, "amount": 9, "state": "paid", "seq": 1},
    ]
    pending = {"id": 3, "customer": 10, "amount": 8, "state": "paid", "seq": 2}
    write_table(
        folder,
        "shop_internal.orders_internal",
        order,
        ["id"],
        [*(current(AT[1], "U", 1, 10, **one) for one in rows), event(AT[2], "U", 2, 20, **pending)],
    )
    customer = {"id": 10, "city": "Bonn", "seq": 1}
    write_table(
        folder,
        "shop_internal.customers_internal",
        {"id": INT, "city": TEXT, "seq": INT},
        ["id"],
        [current(AT[1], "U", 1, 10, **customer)],
    )
    write_table(
        folder,
        "paid_internal.paid_internal",
        {"id": INT, "amount": INT, "city": TEXT},
        ["id"],
        [
            current("1", "I", 1, 30, id=1, amount=5, city="Bonn"),
            current("1", "I", 1, 30, id=3, amount=8, city="Bonn"),
        ],
    )
    write_table(
        folder,
        "cities_internal.cities_internal",
        {"city": TEXT, "total": INT},
        ["city"],
        [current("1", "I", 1, 40, city="Bonn", total=13)],
    )
    for name, landed in (("orders", [*rows, pending]), ("customers", [customer])):
        place = folder / "landing" / "shop" / name
        place.mkdir(parents=True)
        (place / "1.json").write_text("".join(json.dumps(one) + "\n" for one in landed))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("why")
    write_project(folder, shop=STORAGE, paid=PAID, cities=CITIES)
    fill(folder)
    return folder


@pytest.fixture
def client(folder: Path) -> TestClient:
    state = ServerState(folder, None, SystemClock())
    return TestClient(app_of(state), raise_server_exceptions=False)


def asked(client: Any, more: str = "", **how: Any) -> Any:
    return client.get(f"/api/v1/datasets/cities.cities/why?key=city=Bonn{more}", **how)


def test_a_total_is_followed_to_the_landed_records_of_its_orders(client: TestClient) -> None:
    answer = asked(client)
    assert answer.status_code == 200, answer.text
    root = answer.json()["row"]

    assert (root["kind"], root["values"]) == ("transform", {"city": "Bonn", "total": 13})
    assert root["sql"] == "SELECT city, sum(amount) AS total FROM paid GROUP BY city"
    assert root["computed"].endswith("by city")
    assert root["columns"]["total"] == ["paid.paid.amount"]
    (paid,) = root["inputs"]
    assert (paid["dataset"], paid["by"], paid["exact"], paid["count"]) == (
        "paid.paid", ["city"], True, 2
    )  # fmt: skip
    first, second = paid["rows"]
    orders, customers = second["inputs"]
    assert (first["values"]["id"], second["values"]["id"]) == (1, 3)
    assert (orders["dataset"], orders["by"], orders["exact"]) == (
        "shop.orders", ["id", "amount"], True
    )  # fmt: skip
    (order,) = orders["rows"]
    assert (order["kind"], order["values"]["amount"]) == ("table", 8)
    assert (order["entry"]["pending"], order["entry"]["landed"]) == (
        True,
        {"file": "shop/orders/1.json", "number": 3, "message": None},
    )
    (customer,) = customers["rows"]
    assert customer["entry"]["landed"]["file"] == "shop/customers/1.json"


def test_depth_and_rows_are_bounded_and_what_is_left_out_is_said(client: TestClient) -> None:
    near = asked(client, "&depth=0&landed=false").json()["row"]
    one = asked(client, "&depth=1&rows=1&landed=false").json()["row"]["inputs"][0]

    assert (near["inputs"], near["left_out"]) == ([], "only 0 steps are followed")
    assert (one["count"], len(one["rows"])) == (2, 1)
    assert one["rows"][0]["left_out"] == "only 1 steps are followed"


def test_a_row_that_is_not_there_has_no_reason(client: TestClient) -> None:
    answer = client.get("/api/v1/datasets/cities.cities/why?key=city=Ulm").json()

    assert (answer["exists"], answer["row"]) == (False, None)
    assert client.get("/api/v1/datasets/cities.none/why?key=city=Ulm").status_code == 404


GRANTS = """grants:
- {to: [cora@example.com], datasets: [cities.cities, paid.paid]}
- {to: [cora@example.com], datasets: [shop.customers], masked: [city]}
- {to: [dora@example.com], datasets: [cities.cities, paid.paid, shop.*]}
- {to: [emil@example.com], datasets: [cities.cities]}
- {to: [emil@example.com], datasets: [paid.paid], masked: [city]}
"""


@pytest.fixture
def server(folder: Path) -> Served:
    everybody = "[cora@example.com, dora@example.com, emil@example.com]"
    roles = ROLES.replace('["group:analysts"]', everybody)
    return served(folder, roles + GRANTS, clock=SystemClock())


def test_a_viewer_sees_no_rows_of_what_nobody_granted_and_no_masked_value(server: Served) -> None:
    root = asked(server.client, headers=server.token("cora@example.com")).json()["row"]

    orders, customers = root["inputs"][0]["rows"][0]["inputs"]
    assert (orders["rows"], orders["reason"]) == ([], "the viewer may not read it")
    assert (customers["rows"], customers["count"]) == ([], None)
    # A consumer may not read documents.
    assert root["sql"] is None


def test_rows_are_not_found_by_a_masked_column(server: Served) -> None:
    root = asked(server.client, headers=server.token("emil@example.com")).json()["row"]

    (paid,) = root["inputs"]
    assert paid["rows"] == []
    assert paid["reason"] == "its rows are found by a column that is masked for the viewer"


def test_events_and_landed_places_need_the_changes_view(server: Served) -> None:
    root = asked(server.client, headers=server.token("dora@example.com")).json()["row"]

    orders, _ = root["inputs"][0]["rows"][0]["inputs"]
    (order,) = orders["rows"]
    assert order["values"]["id"] == 1
    assert (order["entry"]["landed"], order["entry"]["copied_at"]) == (None, None)
