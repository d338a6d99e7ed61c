"""The history of a record over the API, from a real table and a real landing zone. No JVM."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from polynya.engine.commands.landed_places import LandingSearch, SearchLimits
from polynya.formats.values.sequence import sequence_encoder
from polynya.model.types import BIGINT
from polynya.server.app import app_of
from polynya.server.routes import records
from polynya.server.running_queries import MOST_QUERIES, QueryLimits
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import write_project
from tests.server.access.served import ROLES, Served, served
from tests.server.tables import at, current, event, prior, write_table

USERS = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: json}
datasets:
  - name: users
    keys: [id]
    sequence_by: [seq]
    history: true
"""
COLUMNS = {
    "id": ("bigint", pa.int64()),
    "name": ("string", pa.string()),
    "seq": ("bigint", pa.int64()),
}


#: The change identifiers of sequences, as the format makes them.
IDENTIFIERS = {number: sequence_encoder([BIGINT])([number])[0] for number in (1, 2, 3)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a record of two versions and a pending event, and another record."""
    folder = write_project(tmp_path_factory.mktemp("records"), users=USERS)
    fill(folder)
    return folder


def fill(folder: Path) -> None:
    one, two, three = (IDENTIFIERS[number] for number in (1, 2, 3))
    write_table(
        folder,
        "shop_internal.users_internal",
        COLUMNS,
        ["id"],
        [
            prior(one, "U", (1, 2), (10, 20), id=7, name="Ada", seq=1),
            current(two, "U", 2, 20, id=7, name="Eva", seq=2),
            event(three, "U", 3, 30, id=7, name="Eve", seq=3),
            current(one, "U", 1, 10, id=8, name="Bob", seq=1),
        ],
    )
    land = folder / "landing" / "users"
    land.mkdir(parents=True)
    (land / "1.json").write_text(
        "".join(
            json.dumps(one) + "\n"
            for one in ({"id": 8, "name": "Bob", "seq": 1}, {"id": 7, "name": "Ada", "seq": 1})
        )
    )
    (land / "2.json").write_text(json.dumps({"id": 7, "name": "Eve", "seq": 3}) + "\n")


@pytest.fixture
def client(folder: Path) -> TestClient:
    state = ServerState(folder, None, SystemClock())
    return TestClient(app_of(state), raise_server_exceptions=False)


def asked(client: Any, more: str = "", **how: Any) -> Any:
    return client.get(f"/api/v1/datasets/shop.users/record?key=id=7{more}", **how)


def test_the_history_of_a_record_is_all_of_its_events_with_where_they_landed(
    client: TestClient,
) -> None:
    answer = asked(client).json()

    assert answer["key"] == {"id": 7}
    assert (answer["exists"], answer["current"]) == (True, {"id": 7, "name": "Eve", "seq": 3})
    assert [one["values"]["name"] for one in answer["items"]] == ["Ada", "Eva", "Eve"]
    assert [one["pending"] for one in answer["items"]] == [False, False, True]
    assert [one["landed"] for one in answer["items"]] == [
        {"file": "users/1.json", "number": 1, "message": None},
        None,
        {"file": "users/2.json", "number": 0, "message": None},
    ]
    assert answer["landed"] == "no file that is still there holds it"
    assert answer["items"][0]["valid_to"] == at(2).isoformat()
    assert answer["items"][2]["changed"] == ["name", "seq"]


def test_it_comes_in_pages_and_landed_places_can_be_left_out(client: TestClient) -> None:
    first = asked(client, "&limit=2&landed=false").json()
    rest = asked(client, f"&limit=2&cursor={first['next']}").json()

    assert [one["number"] for one in first["items"] + rest["items"]] == [1, 2, 3]
    assert (first["landed"], first["items"][0]["landed"]) == ("it was not asked for", None)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("key=id", 422, "POLYNYA-SRV-002"),
        ("key=id=7&key=id=8", 422, "POLYNYA-SRV-002"),
        ("key=name=Ada", 422, "POLYNYA-SRV-080"),
        ("key=id=seven", 422, "POLYNYA-SRV-080"),
        ("", 422, "POLYNYA-SRV-002"),
    ],
)
def test_a_key_that_is_none_is_refused(
    client: TestClient, query: str, status: int, code: str
) -> None:
    answer = client.get(f"/api/v1/datasets/shop.users/record?{query}")

    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_record_that_never_was_has_no_entries_and_a_dataset_that_is_none_is_not_there(
    client: TestClient,
) -> None:
    nothing = client.get("/api/v1/datasets/shop.users/record?key=id=99").json()

    assert (nothing["items"], nothing["exists"], nothing["current"]) == ([], False, None)
    assert client.get("/api/v1/datasets/shop.none/record?key=id=1").status_code == 404


def test_only_few_queries_run_at_a_time(folder: Path) -> None:
    state = ServerState(folder, None, SystemClock())
    with ExitStack() as running:
        for number in range(MOST_QUERIES):
            query = state.queries.running(
                "ann", "SELECT 1", QueryLimits(60, 1), name=f"query{number}", is_shared=False
            )
            running.enter_context(query)

        assert asked(TestClient(app_of(state))).json()["code"] == "POLYNYA-SRV-005"


def test_a_search_says_what_it_did_not_look_at(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def narrow(*parts: Any) -> LandingSearch:
        return LandingSearch(*parts, limits=SearchLimits(files=1))

    monkeypatch.setattr(records, "LandingSearch", narrow)

    assert asked(client).json()["landed"] == "1 of 2 files were looked through"


GRANTS = """grants:
- {to: [cora@example.com], datasets: [shop.users], views: [VIEWS], masked: [MASKED]}
"""


def granted(folder: Path, views: str, masked: str = "") -> tuple[Served, dict[str, str]]:
    grants = GRANTS.replace("VIEWS", views).replace("MASKED", masked)
    roles = ROLES.replace('["group:analysts"]', "[cora@example.com]")
    server = served(folder, roles + grants, clock=SystemClock())
    return server, server.token("cora@example.com")


def test_who_may_read_current_only_sees_the_row_and_nothing_of_its_history(folder: Path) -> None:
    server, cora = granted(folder, "current")

    answer = asked(server.client, headers=cora).json()

    (one,) = answer["items"]
    assert one["values"]["name"] == "Eve"
    assert (one["copied_at"], one["sequence"], one["landed"]) == (None, None, None)
    assert answer["hidden"] == "the viewer may not read history and changes"
    (line,) = server.control.audit.page(None, 1)
    assert (line.who, line.action) == ("cora@example.com", "data.query")


def test_a_masked_column_is_null_and_so_is_what_tells_it(folder: Path) -> None:
    server, cora = granted(folder, "current, history, changes", "name, seq")

    answer = asked(server.client, headers=cora).json()

    assert answer["masked"] == ["name", "seq"]
    assert {one["values"]["name"] for one in answer["items"]} == {None}
    assert {one["sequence"] for one in answer["items"]} == {None}
    assert [one["changed"] for one in answer["items"]] == [[], [], []]
    assert answer["current"] == {"id": 7, "name": None, "seq": None}


def test_a_record_is_not_found_by_a_masked_key_nor_without_a_grant(folder: Path) -> None:
    server, cora = granted(folder, "current, history, changes", "id")

    masked = asked(server.client, headers=cora)
    other = server.client.get("/api/v1/datasets/shop.none/record?key=id=1", headers=cora)

    assert (masked.status_code, masked.json()["code"]) == (403, "POLYNYA-ACC-003")
    assert (other.status_code, other.json()["code"]) == (403, "POLYNYA-ACC-003")
