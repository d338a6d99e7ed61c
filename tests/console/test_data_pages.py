"""Pages of tasks and datasets, from a real table, as people of several roles see them. No JVM."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi import Request

from polynya.server.access.actions import Action
from polynya.server.console.buttons import of_task
from polynya.server.operations.verbs import VERBS
from polynya.server.routes import datasets
from polynya.server.routes.projects import TaskShown
from polynya.server.routes.queries import QueryAnswered
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.console.hostile import Elements, filled
from tests.server.access.served import ROLES, Served, served
from tests.server.test_records import USERS, fill

ANN, OLEG, VERA, CORA = (f"{one}@example.com" for one in ("ann", "oleg", "vera", "cora"))
MART = """\
apiVersion: polynya/v1
kind: transform
name: cities
from: [users]
datasets:
  - name: names
    keys: [id]
    sql: SELECT id, name FROM shop.users
"""
NOTIFICATION = """\
apiVersion: polynya/v1
kind: notification
channels:
  hook: {type: webhook, url: "https://hooks.example.com/x", secret: "${secret:env:HOOK}"}
rules:
  slow: {stale_after: 1h}
  quick: {stale_after: 10m, datasets: [shop.users], causes: [stale]}
  others: {stale_after: 1m, datasets: [bank.lines]}
"""
GRANTS = """grants:
- {to: [cora@example.com], datasets: [shop.users], views: [current], masked: [name]}
"""


@pytest.fixture
def console(tmp_path: Path) -> Served:
    """A project with a table of two records, a transform of it, and a consumer with a mask."""
    roles = ROLES.replace('["group:analysts"]', f"[{CORA}]")
    server = served(tmp_path, roles + GRANTS, clock=SystemClock())
    for name, text in (
        ("tasks/users.yml", USERS),
        ("tasks/cities.yml", MART),
        ("notifications/on.yml", NOTIFICATION),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    fill(tmp_path)
    return server


def page(console: Served, person: str, path: str, status: int = 200) -> str:
    answer = console.client.get(path, headers=console.token(person, *Action))
    assert answer.status_code == status, answer.text
    return answer.text


def buttons(text: str) -> set[str]:
    """The actions whose forms a page offers."""
    return set(re.findall(r'href="/console/actions/([a-z-]+)', text))


def test_a_task_has_the_kind_of_its_file_and_the_actions_of_that_kind(console: Served) -> None:
    users = page(console, ANN, "/console/tasks/users")
    cities = page(console, ANN, "/console/tasks/cities")

    assert "/console/datasets/shop.users" in users
    assert "<dd>transform</dd>" in cities
    assert buttons(users) - buttons(cities) == {"reload"}
    assert "/console/actions/maintain?datasets=shop.users" in users
    assert buttons(cities) >= {"run", "maintain", "task-recreate", "task-stop", "task-start"}


def test_maintenance_of_a_task_is_never_that_of_the_whole_project() -> None:
    task = filled(TaskShown, "x", kind="storage")

    assert "maintain" not in {one.verb for one in of_task(task, [])}
    (button,) = [one for one in of_task(task, ["a.b", "a.c"]) if one.verb == "maintain"]
    assert button.parameters == {"datasets": ["a.b", "a.c"]}


def test_a_person_is_offered_what_they_may_do_only(console: Served) -> None:
    assert buttons(page(console, VERA, "/console/tasks/users")) == set()
    assert "task-recreate" not in buttons(page(console, OLEG, "/console/datasets/shop.users"))
    assert "maintain" in buttons(page(console, OLEG, "/console/datasets/shop.users"))
    for path in ("quarantine", "rows"):
        text = page(console, VERA, f"/console/datasets/shop.users/{path}", 403)
        assert "POLYNYA-ACC-002" in text
        assert f"shop.users/{path}" not in page(console, VERA, "/console/datasets/shop.users")


def test_the_settings_of_a_task_are_its_file(console: Served) -> None:
    text = Elements(page(console, VERA, "/console/tasks/users/settings")).text

    assert USERS in text
    assert "/console/documents/tasks/users.yml" in text


def test_a_dataset_shows_what_is_pending_against_the_limits_of_its_apply(console: Served) -> None:
    found = Elements(page(console, ANN, "/console/datasets/shop.users"))

    assert "1 of 50,000" in found.text
    assert "10 min" in found.text, "the strictest rule of the notifications that takes it"
    assert ("meter", ("value", "max", "low", "high", "optimum", "aria-label")) in found.elements


def test_the_list_of_datasets_is_filtered_by_the_address(console: Served) -> None:
    link = 'href="/console/datasets/shop.users"'

    assert link in page(console, VERA, "/console/datasets?find=user&health=healthy")
    assert link not in page(console, VERA, "/console/datasets?health=suspended")
    assert link not in page(console, VERA, "/console/datasets?task=cities")
    assert link not in page(console, VERA, "/console/datasets?find=none")


def test_parts_of_a_dataset_have_paths_of_their_own(console: Served) -> None:
    schema = page(console, VERA, "/console/datasets/shop.users/schema")
    files = page(console, VERA, "/console/datasets/shop.users/files")
    snapshots = page(console, VERA, "/console/datasets/shop.users/snapshots")
    latency = page(console, VERA, "/console/datasets/shop.users/latency")

    assert re.search(r"<code>id</code>.*<code>long</code>.*key", schema)
    assert "retained" not in files and "changes" in files
    assert "remove orphan files" in files
    assert "by another program" in snapshots
    assert "latency: {}" in latency


def test_rows_lead_to_the_history_of_their_record_unless_their_key_is_masked(
    console: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": 7, "name": "a&b=c"}, {"id": None, "name": "masked"}]
    answered = QueryAnswered(columns={"id": "int64", "name": "string"}, rows=rows, more=True)
    monkeypatch.setattr(datasets, "answered", lambda *_: answered)

    found = Elements(page(console, ANN, "/console/datasets/shop.users/rows"))

    (record,) = [one for one in found.addresses if one.startswith("/console/record")]
    assert parse_qs(urlsplit(record).query) == {"dataset": ["shop.users"], "key": ["id=7"]}
    assert "NULL" in found.words
    assert "The first 2 rows, in no order" in found.text


def test_a_view_that_the_viewer_may_not_read_is_refused_in_the_page(console: Served) -> None:
    history = page(console, CORA, "/console/datasets/shop.users/rows?view=history")

    assert "POLYNYA-ACC-003" in history
    assert 'aria-label="Parts of the dataset"' in history


def test_a_part_of_a_page_is_answered_to_a_page_that_asks_for_it(console: Served) -> None:
    headers = {**console.token(ANN, *Action), "HX-Request": "true"}
    part = console.client.get("/console/datasets/shop.users", headers=headers).text

    assert part.lstrip().startswith('<div id="state"')
    assert "<html" not in part


def test_the_overview_says_what_changed_since_yesterday(console: Served) -> None:
    found = console.client.get("/api/v1/project/changes", headers=console.token(VERA, *Action))
    text = page(console, VERA, "/console")

    assert found.json()["commits"] == 1
    assert found.json()["is_whole"] is True
    assert "In the last day" in text
    assert "/console/latest-operations" in text
    assert "/console/latest-operations" not in page(console, CORA, "/console")


def test_an_error_code_has_a_page_with_what_to_do(console: Served) -> None:
    known = page(console, VERA, "/console/errors/POLYNYA-LAKE-042")
    unknown = console.client.get("/console/errors/POLYNYA-NONE-1", headers=console.token(VERA))
    found = page(console, VERA, "/console/errors?find=another warehouse")

    assert "polynya explain POLYNYA-LAKE-042" in known
    assert "<code>polynya adopt</code>" in known
    assert unknown.status_code == 404
    assert "/console/errors/POLYNYA-LAKE-042" in found


def test_a_server_that_leaves_tables_to_others_says_so_before_a_click(console: Served) -> None:
    state = ServerState.of(Request({"type": "http", "app": console.client.app}))
    state.requests_only = True

    dataset = page(console, ANN, "/console/datasets/shop.users")
    form = page(console, ANN, "/console/actions/run?tasks=users")
    listed = console.client.get("/api/v1/actions", headers=console.token(ANN, *Action)).json()
    code = {one["name"]: one["refused"] and one["refused"]["code"] for one in listed}

    assert buttons(page(console, ANN, "/console/tasks/users")) >= {"task-stop", "task-start"}
    off = set(re.findall(r'title="[^"]*SRV-060[^"]*" data-refused="([a-z-]+)"', dataset))
    assert off >= {"run", "maintain", "verify", "task-recreate"} - buttons(dataset)
    assert not buttons(dataset) & {"run", "maintain", "verify"}
    assert "such buttons are off" in dataset
    assert re.search(r'<button class="strong" disabled>', form)
    assert code["run"] == code["quarantine-replay"] == "POLYNYA-SRV-060"
    assert code["plan"] is code["task-stop"] is None


def test_the_actions_of_the_api_are_those_of_the_person(console: Served) -> None:
    def names(person: str) -> set[str]:
        answer = console.client.get("/api/v1/actions", headers=console.token(person, *Action))
        return {one["name"] for one in answer.json()}

    assert names(ANN) == set(VERBS)
    assert "run" in names(OLEG) and "migrate" not in names(VERA)
