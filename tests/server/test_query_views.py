"""The list of views that a person may query, from a real table. No JVM."""

from __future__ import annotations

from typing import Any

import pytest

from polynya.server.access.actions import Action
from tests.server.access.served import ROLES, Served, served
from tests.server.test_records import USERS, fill

GRANTS = """grants:
- {to: [dora@example.com], datasets: [shop.users], views: [current], masked: [name]}
- {to: [dora@example.com], datasets: [shop.users], views: [history]}
"""
CRM = """apiVersion: polynya/v1
kind: registered
name: crm
tables:
  - {name: persons, parquet: persons}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("views")
    server = served(
        folder, ROLES.replace("can_consume: [", "can_consume: [dora@example.com, ") + GRANTS
    )
    (folder / "tasks").mkdir()
    (folder / "tasks" / "users.yml").write_text(USERS)
    (folder / "tasks" / "crm.yml").write_text(CRM)
    fill(folder)
    return server


def views(server: Served, person: str, query: str = "") -> dict[str, Any]:
    headers = server.token(person, *Action)
    found: dict[str, Any] = server.client.get(f"/api/v1/views?{query}", headers=headers).json()
    return found


def test_a_person_finds_the_views_of_their_grants_and_what_is_masked(server: Served) -> None:
    items = views(server, "dora@example.com")["items"]

    assert [(one["name"], one["kind"], one["masked"]) for one in items] == [
        ("shop.users", "current", ["name"]),
        ("shop.users__history", "history", []),
    ]
    assert items[0]["columns"] == {"id": "long", "name": "string", "seq": "long"}
    assert (items[0]["dataset"], items[0]["task"]) == ("shop.users", "users")


def test_an_owner_finds_all_views_in_pages_and_those_of_a_glob(server: Served) -> None:
    first = views(server, "ann@example.com", "limit=2")
    rest = views(server, "ann@example.com", f"limit=2&cursor={first['next']}")

    assert [one["name"] for one in (*first["items"], *rest["items"])] == [
        "crm.persons",
        "shop.users",
        "shop.users__changes",
        "shop.users__history",
    ]
    assert views(server, "ann@example.com", "name=*__h*")["total"] == 1


def test_who_may_not_query_finds_no_views(server: Served) -> None:
    assert views(server, "vera@example.com")["code"] == "POLYNYA-ACC-002"
