"""The pages of access: oneself, people and their roles, the audit log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from polynya.server.access.actions import Action
from tests.server.access.served import HOST, Served, served

ANN, VERA = "ann@example.com", "vera@example.com"
PAGE = {"origin": HOST, "x-polynya-request": "console"}


@pytest.fixture
def console(tmp_path: Path) -> Served:
    return served(tmp_path)


def page(console: Served, person: str, path: str) -> str:
    answer = console.client.get(path, headers=console.token(person, *Action))
    assert answer.status_code == 200, answer.text
    return answer.text


def test_an_owner_sees_people_and_what_each_role_may_do(console: Served) -> None:
    text = page(console, ANN, "/console/access/people")

    assert VERA in text
    assert "can_operate" in text
    assert "access.manage" in text


def test_a_viewer_sees_herself_and_neither_people_nor_the_audit_log(console: Served) -> None:
    text = page(console, VERA, "/console/access")
    refused = console.client.get("/console/access/people", headers=console.token(VERA, *Action))

    assert VERA in text
    assert "/console/access/people" not in text
    assert "/console/access/audit" not in text
    assert refused.status_code == 403
    assert "POLYNYA-ACC-002" in refused.text


def test_another_role_is_shown_with_its_effects_before_it_is_given(console: Served) -> None:
    owner = {**console.token(ANN, *Action), **PAGE}
    form = {"person": "oleg@example.com", "role": "can_view"}
    asked = console.client.post("/console/access/people", data=form, headers=owner)
    before = (console.root / "access.yml").read_text()

    assert asked.status_code == 200
    assert re.search(r"oleg@example.com</strong> may no longer [^.]*\.", asked.text)
    assert "task.run" in asked.text
    assert "oleg@example.com" in before

    confirmed = console.client.post(
        "/console/access/people",
        data={**form, "confirmed": "yes"},
        headers=owner,
    )
    assert confirmed.status_code == 303
    assert console.control.document() is not None
    refused = console.client.post(
        "/console/actions/run",
        data={"once": "true"},
        headers={**console.token("oleg@example.com", *Action), **PAGE},
    )
    assert refused.status_code == 403
    assert "POLYNYA-ACC-002" in page(console, ANN, "/console/access/audit")


def test_nobody_takes_the_role_of_the_last_owner(console: Served) -> None:
    owner = {**console.token(ANN, *Action), **PAGE}
    form = {"person": ANN, "role": "can_view", "confirmed": "yes"}
    answer = console.client.post("/console/access/people", data=form, headers=owner)

    assert answer.status_code == 422
    assert ANN in (console.root / "access.yml").read_text()


def test_a_token_is_shown_once_and_can_be_revoked(console: Served) -> None:
    headers = {**console.token(VERA, *Action), **PAGE}
    form = {"note": "my <script>alert(1)</script>", "actions": "project.view", "days": "3"}
    made = console.client.post("/console/access/tokens", data=form, headers=headers)
    again = console.client.get("/console/access", headers=headers)
    ids = re.findall(r"/console/access/tokens/([^/\"]+)/revoke", again.text)

    assert "Copy it now" in made.text
    assert "Copy it now" not in again.text
    assert "<script>alert" not in again.text
    assert "&lt;script&gt;alert" in again.text
    for one in ids:
        console.client.post(f"/console/access/tokens/{one}/revoke", headers=headers)
    assert console.client.get("/console/access", headers=headers).status_code == 401


def test_without_an_access_file_a_role_has_no_place(tmp_path: Path) -> None:
    console = served(tmp_path, None)
    form = {"person": VERA, "role": "can_view"}
    answer = console.client.post("/console/access/people", data=form, headers=PAGE)

    assert answer.status_code == 422
    assert "POLYNYA-SRV-002" in answer.text
