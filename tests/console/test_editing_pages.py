"""Pages that change files: documents, flows and plans. No JVM."""

from __future__ import annotations

import html
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.model.config.flow import FlowStep
from polynya.model.errors import ConfigError
from polynya.server.app import app_of
from polynya.server.console.flow_text import with_flow
from polynya.server.console.flows import _PROCESSORS as PROCESSORS
from polynya.server.console.forms import fields, texts_of, values, yaml_setting, yaml_text
from polynya.server.routes import operations
from polynya.server.routes.queries import QueryAnswered
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from polynya.store.configuration import FolderSource, plan_fingerprint
from tests.console.shop import HOSTILE, SALES, STORAGE, fill, harmless
from tests.projects import USERS, write_project

PART = {"hx-request": "true"}
TASK = "/console/documents/tasks/users.yml"
EDIT = "/console/transforms/sales/sales.totals/edit"


def client_of(folder: Path) -> TestClient:
    state = ServerState(folder, None, SystemClock())
    return TestClient(app_of(state), raise_server_exceptions=False, follow_redirects=False)


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", harmless(text))))


def hidden(text: str) -> dict[str, list[str]]:
    """What the fields of a page would send: hidden ones, inputs, text areas and choices."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input[^>]* name="([^"]+)"[^>]* value="([^"]*)"', text):
        found.setdefault(name, []).append(html.unescape(value))
    for name, value in re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n?([^<]*)<', text):
        found.setdefault(name, []).append(html.unescape(value))
    for name, body in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', text, re.S):
        found.setdefault(name, []).extend(re.findall(r"<option selected>([^<]*)<", body))
    return found


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_project(tmp_path_factory.mktemp("flows"), shop=STORAGE, sales=SALES)
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def flows_client(flows: Path) -> TestClient:
    return client_of(flows)


class TestDocuments:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return write_project(tmp_path, users=USERS)

    def test_a_change_is_shown_as_a_diff_and_made_when_confirmed(self, folder: Path) -> None:
        client = client_of(folder)
        sent = hidden(client.get(TASK).text)
        changed = sent["content"][0].replace("name: users\n    keys", "name: people\n    keys")
        form = {"etag": sent["etag"][0], "content": changed.replace("\n", "\r\n")}
        asked = client.post(TASK, data=form, headers=PART).text
        unwritten = (folder / "tasks" / "users.yml").read_text()
        confirmed = hidden(asked)
        done = client.post(TASK, data=confirmed, headers=PART)

        assert "+ - name: people" in plain(asked)
        assert unwritten == USERS
        assert confirmed["do"] == ["save"]
        assert done.headers["hx-redirect"] == TASK
        assert (folder / "tasks" / "users.yml").read_text() == changed

    def test_a_change_of_somebody_else_is_a_conflict_with_both_versions(self, folder: Path) -> None:
        client = client_of(folder)
        sent = hidden(client.get(TASK).text)
        theirs = USERS + f"# theirs {HOSTILE.replace(chr(7), '')}\n"
        (folder / "tasks" / "users.yml").write_text(theirs)
        form = {"etag": sent["etag"][0], "content": USERS + "# mine\n", "do": "save"}
        answer = client.post(TASK, data=form, headers=PART)
        text = plain(answer.text)
        again = client.post(TASK, data=hidden(answer.text), headers=PART)

        assert answer.status_code == 412
        assert "POLYNYA-SRV-008" in text
        assert "Somebody else saved this document" in text
        assert "# theirs <script>" in text
        assert "# mine" in text
        assert again.status_code == 204
        assert (folder / "tasks" / "users.yml").read_text() == USERS + "# mine\n"

    def test_what_makes_the_project_wrong_cannot_be_saved(self, folder: Path) -> None:
        client = client_of(folder)
        sent = hidden(client.get(TASK).text)
        form = {"etag": sent["etag"][0], "content": USERS.replace("kind: storage", "kind: cake")}
        asked = client.post(TASK, data=form, headers=PART).text

        assert "tasks/users.yml:2:" in asked
        assert 'value="save"' not in asked
        assert client.post(TASK, data={**form, "do": "save"}).status_code == 422
        assert (folder / "tasks" / "users.yml").read_text() == USERS

    def test_a_text_that_a_page_cannot_show_is_not_edited(self, folder: Path) -> None:
        client = client_of(folder)
        sent = hidden(client.get(TASK).text)
        form = {"etag": sent["etag"][0], "content": f"{USERS}# \u202e\n"}
        refused = client.post(TASK, data=form, headers=PART)
        (folder / "tasks" / "users.yml").write_text(f"{USERS}# {HOSTILE}\n")
        text = plain(client.get(TASK).text)

        assert refused.status_code == 422
        assert "U+202E (RIGHT-TO-LEFT OVERRIDE)" in refused.text
        assert "characters that a page cannot show" in text
        assert "Show what it changes" not in text

    def test_a_document_is_made_listed_and_removed(self, folder: Path) -> None:
        client = client_of(folder)
        form = {"path": "queries/one.sql", "content": "SELECT 1\n"}
        asked = client.post("/console/new-document", data=form, headers=PART).text
        client.post("/console/documents/queries/one.sql", data=hidden(asked))
        listed = plain(client.get("/console/documents?folder=queries").text)
        page = client.get("/console/documents/queries/one.sql").text
        gone = client.post(
            "/console/documents/queries/one.sql",
            data={"etag": hidden(page)["etag"][0], "do": "remove"},
        )

        assert "queries/one.sql" in listed
        assert "tasks/users.yml" not in listed
        assert gone.headers["location"] == "/console/documents"
        assert not (folder / "queries" / "one.sql").exists()

    def test_a_saved_query_makes_no_plan_outdated(self, folder: Path) -> None:
        before = FolderSource(folder).read()
        form = {"do": "save", "content": "SELECT 1\n"}
        client_of(folder).post("/console/documents/queries/one.sql", data=form)
        after = FolderSource(folder).read()

        assert set(after.files) - set(before.files) == {"queries/one.sql"}
        assert plan_fingerprint(after.files) == plan_fingerprint(before.files)

    def test_a_page_leads_to_nothing_outside_the_console(self, folder: Path) -> None:
        client = client_of(folder)
        form = {"do": "save", "content": "SELECT 1\n", "then": "//example.com/console/"}
        done = client.post("/console/documents/queries/one.sql", data=form)

        assert done.headers["location"] == "/console/documents/queries/one.sql"

    @pytest.mark.parametrize("path", ["access.yml", "../x.yml", "tasks/x.sh", "a/b/c.yml"])
    def test_other_files_are_refused(self, folder: Path, path: str) -> None:
        form = {"path": path, "content": "a: 1\n"}
        answer = client_of(folder).post("/console/new-document", data=form, headers=PART)

        assert answer.status_code in {403, 409, 422}, answer.text
        assert 'value="save"' not in answer.text


class TestFlows:
    @pytest.fixture
    def folder(self, flows: Path) -> Path:
        return flows

    @pytest.fixture
    def client(self, flows_client: TestClient) -> TestClient:
        return flows_client

    def test_each_step_shows_its_settings_and_its_columns(self, client: TestClient) -> None:
        text = client.get(EDIT).text
        sent = hidden(text)

        assert sent["s0.condition"] == ["state = 'paid'"]
        assert sent["s1.columns"] == ['total: {sum: amount}\norders: {count: "*"}']
        assert "person string , total bigint , orders bigint" in plain(text)

    def test_steps_are_added_moved_and_removed(self, client: TestClient) -> None:
        sent = hidden(client.get(EDIT).text)
        added = hidden(client.post(EDIT, data={**sent, "do": "add:select"}, headers=PART).text)
        moved = hidden(client.post(EDIT, data={**added, "do": "up:2"}, headers=PART).text)
        removed = hidden(client.post(EDIT, data={**moved, "do": "remove:0"}, headers=PART).text)

        def steps(form: dict[str, list[str]]) -> list[str]:
            return [form[f"s{n}.processor"][0] for n in range(9) if f"s{n}.processor" in form]

        assert steps(added) == ["filter", "aggregate", "select"]
        assert steps(moved) == ["filter", "select", "aggregate"]
        assert steps(removed) == ["select", "aggregate"]

    def test_an_error_stands_with_its_step_and_hides_no_other(self, client: TestClient) -> None:
        sent = hidden(client.get(EDIT).text)
        form = {**sent, "s0.condition": f"stat = '{HOSTILE}'", "do": "check"}
        text = client.post(EDIT, data=form, headers=PART).text
        broken = {**sent, "s1.columns": "total: {sum: amount", "do": "check"}
        wrong = client.post(EDIT, data=broken, headers=PART).text

        first, second = (
            plain(text.partition('id="edit-1"')[0]),
            plain(text.partition('id="edit-1"')[2]),
        )
        assert "flow[0].filter.condition" in first
        assert "known once what it reads is right" in second
        assert "POLYNYA-CFG-" in plain(wrong.partition('id="edit-1"')[2])

    def test_a_preview_asks_for_the_rows_of_a_step_and_no_later_one(
        self, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []

        def answered(_: Any, one: Any) -> QueryAnswered:
            asked.append(one.sql)
            rows: list[dict[str, Any]] = [{"person": HOSTILE, "n": None, "total": 1234}]
            return QueryAnswered(columns={"person": "string", "n": "int"}, rows=rows, more=True)

        monkeypatch.setattr("polynya.server.routes.transforms.answered", answered)
        sent = hidden(client.get(EDIT).text)
        text = plain(client.post("/console/flow-rows/0", data=sent, headers=PART).text)

        assert "filter_1" in asked[0]
        assert "aggregate" not in asked[0]
        assert "<script>alert(1)</script>" in text
        assert "1 of 1,234 rows, computed in" in text

    def test_a_preview_that_needs_spark_says_so(self, client: TestClient) -> None:
        sent = hidden(client.get(EDIT).text)
        answer = client.post("/console/flow-rows/1", data=sent, headers=PART)

        assert answer.status_code == 422
        assert "POLYNYA-QRY-002" in answer.text

    def test_a_changed_flow_is_a_patch_that_keeps_the_other_lines(
        self, client: TestClient, folder: Path
    ) -> None:
        sent = hidden(client.get(EDIT).text)
        form = {**sent, "s1.columns": "total: {max: amount}"}
        asked = client.post("/console/flow-change", data=form, headers=PART).text
        text = hidden(asked)["content"][0]

        assert "condition: \"state = 'paid'\"}  # and not yet sent" in text
        assert "- aggregate: {by: [person], columns: {total: {max: amount}}}" in text
        assert text.startswith("# What each person has paid.")
        assert "    expect:\n" in text
        assert (folder / "tasks" / "sales.yml").read_text() == SALES

    def test_a_new_flow_becomes_the_file_of_a_transform(
        self, client: TestClient, folder: Path
    ) -> None:
        form: dict[str, Any] = {
            "task": "open", "dataset": "waiting", "keys": "id", "from": ["shop"],
            "s0.processor": "filter", "s0.condition": "state = 'open'",
            "s1.processor": "select", "s1.columns": "id\r\nperson",
        }  # fmt: skip
        asked = client.post("/console/flow-change", data=form, headers=PART).text
        done = client.post("/console/documents/tasks/open.yml", data=hidden(asked), headers=PART)

        assert done.status_code == 204, done.text
        assert (folder / "tasks" / "open.yml").read_text() == (
            "apiVersion: polynya/v1\nkind: transform\nname: open\nfrom: [shop]\n"
            "datasets:\n  - name: waiting\n    keys: [id]\n    flow:\n"
            "      - filter: \"state = 'open'\"\n      - select: [id, person]\n"
        )
        (folder / "tasks" / "open.yml").unlink()

    @pytest.mark.parametrize(
        "form",
        [
            {"task": HOSTILE, "dataset": "a", "keys": "id", "from": "shop"},
            {"task": "a", "dataset": HOSTILE, "keys": HOSTILE, "from": "shop"},
            {"task": "../a", "dataset": "a", "keys": "id", "from": "shop"},
            {"task": "a", "dataset": "a", "keys": "id", "from": HOSTILE},
            {"task": "a", "path": "access.yml", "etag": "x", "from": "shop"},
        ],
    )
    def test_names_that_are_none_are_errors(self, client: TestClient, form: dict[str, str]) -> None:
        step = {"s0.processor": "filter", "s0.condition": "id = '1'"}
        answer = client.post("/console/flow-change", data={**form, **step}, headers=PART)
        page = client.post("/console/new-flow", data={**form, **step}, headers=PART)

        assert answer.status_code >= 400, answer.text
        assert 'value="save"' not in harmless(answer.text)
        harmless(page.text)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("datasets: [{name: a, keys: [k], flow: [{filter: x > 1}]}]", "begins no line"),
            ("datasets:\n  - name: b\n    flow:\n      - filter: x > 1\n", "has no `flow:`"),
            ("datasets:\n  - name: a\n    flow:\n      - filter: ${env:A}\n", "has references"),
        ],
    )
    def test_a_flow_in_another_shape_is_left_to_an_editor(self, text: str, reason: str) -> None:
        with pytest.raises(ConfigError, match=reason) as refused:
            with_flow(text, "tasks/a.yml", "a", [{"filter": {"condition": "x > 2"}}])
        assert refused.value.code == "POLYNYA-SRV-131"

    @pytest.mark.parametrize("name", sorted(PROCESSORS))
    def test_the_form_of_each_processor_gives_back_what_a_file_says(self, name: str) -> None:
        model, settings = PROCESSORS[name], STEPS[name]
        given = texts_of(model, settings)
        again = values(model, given)
        step = FlowStep.model_validate({name: again})

        assert step == FlowStep.model_validate({name: settings})
        assert {one.name for one in fields(model, given)} >= set(settings)


#: Settings of each processor, with those that a form has as YAML.
STEPS: dict[str, dict[str, Any]] = {
    "join": {"with": "b", "type": "left", "on": {"x": "y"}, "prefix": "b_"},
    "union": {"inputs": ["a", "b"], "source": "origin"},
    "aggregate": {
        "by": ["a"],
        "columns": {"n": {"count": "*"}, "m": {"max": "b", "where": "c > 1"}},
    },
    "filter": {"input": "a", "condition": "b: 'c' > \"d\""},
    "select": {"except": ["a", "b"], "as": "less"},
    "rename": {"columns": {"a": "b"}},
    "derive": {"columns": {"a": {"expression": "b * 2", "type": "decimal(12,2)"}, "c": "true"}},
    "cleanse": {"trim": ["a"], "null_if": {"b": ["", "n/a"]}, "case": {"c": "upper"}},
    "dedupe": {"keys": ["a"], "keep": "latest", "order": ["b"]},
    "fill_missing": {"last": ["a"], "by": ["b"], "order": ["c", {"d": "desc"}], "values": {"e": 0}},
    "pivot": {"by": ["a"], "column": "b", "values": {"x": "1", "y": 2}, "value": {"sum": "c"}},
    "unpivot": {"columns": ["a", "b"], "name": "c", "value": "d"},
    "explode": {"column": "a", "empty": "keep"},
    "lookup": {"from": "b", "on": ["a"], "columns": {"c": "d"}},
    "window": {"by": ["a"], "order": [{"b": "desc"}], "columns": {"n": {"row_number": True}}},
}


@pytest.mark.parametrize(
    "text", ["a", "true", "1", "", " a", "a: b", "*", "#x", "é", "a b", "- a", "~"]
)
def test_a_text_of_yaml_stays_a_text(text: str) -> None:
    assert yaml_setting(f"name: {yaml_text(text)}") == {"name": text}


#: What stands in for `polynya`: it says what a file holds, and ends well.
_COMMAND = """
import os, pathlib, sys
if "plan" in sys.argv:
    print(pathlib.Path(sys.argv[1]).read_text(), end="", flush=True)
pathlib.Path(os.environ["POLYNYA_OPERATION"], "exit").write_text("0")
"""


class TestPlans:
    @pytest.fixture
    def client(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
        folder = write_project(tmp_path, users=USERS)
        change = {
            "kind": "column_gone", "what": HOSTILE, "means": HOSTILE, "action": "apply",
            "destructive": True, "rewrites": {"rows": 1000, "size_bytes": 9000, "files": 2},
        }  # fmt: skip
        effect = {"type": "plan.dataset", "dataset": "shop.users", "task": "users"}
        fingerprint = plan_fingerprint(FolderSource(folder).read().files)
        summary = {
            "type": "plan", "changes": True, "datasets": 1, "to_decide": 0, "destructive": 1,
            "fingerprint": fingerprint,
        }  # fmt: skip
        lines = [{**effect, "changes": [change]}, summary]
        (folder / "says.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
        command = [sys.executable, "-S", "-c", _COMMAND, str(folder / "says.jsonl")]
        monkeypatch.setattr(operations, "command_of", lambda _: command)
        with client_of(folder) as client:
            yield client

    def made(self, client: TestClient) -> str:
        path: str = client.post("/console/plans").headers["location"]
        for _ in range(400):
            if "making" not in client.get(path).text:
                return path
            time.sleep(0.05)
        raise AssertionError("the plan is not made")

    def test_a_plan_is_reviewed_approved_with_a_comment_and_applied(
        self, client: TestClient
    ) -> None:
        path = self.made(client)
        ready = plain(client.get(path).text)
        client.post(f"{path}/decide", data={"decision": "approved", "comment": HOSTILE})
        approved = plain(client.get(path).text)
        unread = client.post(f"{path}/apply", data={"command": "migrate"})
        form = {"command": "migrate", "confirmed": "yes"}
        started = client.post(f"{path}/apply", data=form)

        assert "<script>alert(1)</script>" in ready
        assert "rewrites 1,000 rows in 2 files (9.0 kB)" in ready
        assert "1 removal" in ready
        assert "Approve" in ready
        assert "Apply the plan" not in ready
        assert r"approved it at" in approved
        assert unread.status_code == 422
        assert started.headers["location"].startswith("/console/operations/")
        assert "1 of 1" in plain(client.get("/console/plans").text)

    def test_a_rejected_plan_is_not_applied(self, client: TestClient) -> None:
        path = self.made(client)
        client.post(f"{path}/decide", data={"decision": "rejected"})
        text = plain(client.get(path).text)
        again = client.post(f"{path}/decide", data={"decision": "approved"})

        assert "rejected it at" in text
        assert "Apply the plan" not in text
        assert again.status_code == 409
        assert client.post(f"{path}/decide", data={"decision": "maybe"}).status_code == 422
