"""Rows at each step of a query, over the API: of parts in SQL and of flows, by the same rights."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.engine.project_views import ProjectViews
from polynya.store.clock import SystemClock
from tests.projects import write_project
from tests.server.access.served import ROLES, Served, served
from tests.server.test_why import STORAGE, fill

PLACED = """\
apiVersion: polynya/v1
kind: transform
name: placed
from: [shop]
datasets:
  - name: placed
    keys: [id]
    sql: |
      WITH paid AS (SELECT * FROM orders WHERE state = 'paid'),
      with_city AS (
        SELECT p.id, c.city FROM paid p JOIN customers c ON p.customer = c.id)
      SELECT id, city FROM with_city -- the end
  - name: steps
    keys: [id]
    flow:
      - filter: {input: orders, condition: "state = 'paid'"}
      - select: [id, amount]
"""
GRANTS = """\
  data_product_manager: [dana@example.com, dora@example.com]
grants:
- {to: [dana@example.com], datasets: [shop.orders]}
- {to: [dana@example.com], datasets: [shop.customers], masked: [city]}
- {to: [dora@example.com, "group:analysts"], datasets: [shop.orders]}
"""
DANA, DORA = "dana@example.com", "dora@example.com"


@pytest.fixture(autouse=True)
def views(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run makes the views, which this lake does not have; the engine reads what they show."""
    monkeypatch.setattr(ProjectViews, "check", lambda *_: None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("steps")
    write_project(folder, shop=STORAGE, placed=PLACED)
    fill(folder)
    return served(folder, ROLES + GRANTS, clock=SystemClock())


def rows(server: Served, person: str, step: int, more: str = "", of: str = "placed") -> Any:
    path = f"/api/v1/transforms/placed/placed.{of}/steps/{step}/rows{more}"
    return server.client.get(path, headers=server.token(person))


def test_each_part_of_a_query_has_rows_and_their_number(server: Served) -> None:
    paid, with_city, whole = (rows(server, "ann@example.com", step).json() for step in range(3))
    first = rows(server, "ann@example.com", 2, "?limit=1").json()

    assert sorted((one["id"], one["amount"]) for one in paid["rows"]) == [(1, 5), (3, 8)]
    assert (paid["total"], paid["more"]) == (2, False)
    assert with_city["columns"] == {"id": "int64", "city": "string"}
    assert {one["city"] for one in whole["rows"]} == {"Bonn"}
    assert (len(first["rows"]), first["more"], first["total"]) == (1, True, 2)
    assert first["seconds"] > 0


def test_a_step_of_a_flow_has_rows_in_the_same_way(server: Served) -> None:
    filtered = rows(server, "ann@example.com", 0, of="steps").json()
    selected = rows(server, "ann@example.com", 1, of="steps").json()

    assert (filtered["total"], selected["total"]) == (2, 2)
    assert list(selected["columns"]) == ["id", "amount"]


def test_a_step_that_a_query_does_not_have_is_not_found(server: Served) -> None:
    assert rows(server, "ann@example.com", 3).status_code == 404
    assert rows(server, "ann@example.com", 2, of="steps").status_code == 404
    assert rows(server, "ann@example.com", -1).status_code == 422


def test_masked_columns_are_null_in_the_rows_of_a_step(server: Served) -> None:
    found = rows(server, DANA, 2).json()

    assert {one["city"] for one in found["rows"]} == {None}
    assert found["total"] == 2


def test_a_step_needs_the_tables_that_it_reads_and_no_later_ones(server: Served) -> None:
    assert rows(server, DORA, 0).json()["total"] == 2
    assert rows(server, DORA, 1).json()["code"] == "POLYNYA-ACC-003"


def test_who_may_not_read_documents_or_data_sees_no_step(server: Served) -> None:
    consumer = server.client.get(
        "/api/v1/transforms/placed/placed.placed/steps/0/rows",
        headers=server.session("cora@example.com", "analysts"),
    )
    viewer = rows(server, "vera@example.com", 0)

    assert (consumer.status_code, viewer.status_code) == (403, 403)
    assert "documents.view" in consumer.text
    assert "data.query" in viewer.text
