"""A server of a small project, for tests of who may do what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from polynya.model.config.access import AccessDocument
from polynya.server.access.actions import Action
from polynya.server.access.control import AccessControl, AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from polynya.testing.fakes import FakeClock

PROJECT = """apiVersion: polynya/v1
kind: project
name: demo
targets:
  local: {landing: ./landing, warehouse: ./warehouse}
"""
ROLES = """roles:
  owner: [ann@example.com]
  can_manage: [max@example.com]
  can_operate: [oleg@example.com]
  can_edit: [eva@example.com]
  can_consume: ["group:analysts"]
  can_view: [vera@example.com]
"""
HOST = "http://localhost:8181"


def document_of(text: str = ROLES) -> AccessDocument:
    """The document of a text of YAML."""
    from ruamel.yaml import YAML

    values = YAML(typ="safe").load(f"apiVersion: polynya/v1\nkind: access\n{text}")
    return AccessDocument.model_validate(values)


@dataclass
class Served:
    """A guarded app, its control, and a client of it."""

    root: Path
    app: FastAPI
    control: AccessControl
    client: TestClient
    clock: Any

    def token(self, owner: str, *actions: Action, days: float = 1) -> dict[str, str]:
        """The header of a new token."""
        text, _ = self.control.tokens.create(
            owner,
            frozenset(actions or Action),
            timedelta(days=days),
            longest=timedelta(days=366),
        )
        return {"Authorization": f"Bearer {text}"}

    def session(self, name: str, *groups: str) -> dict[str, str]:
        """The cookie of a new session, with what a page of the server sends along."""
        subjects = frozenset({name, *(f"group:{one}" for one in groups)})
        value = self.control.sessions.begin(name, subjects, "test", timedelta(hours=12))
        return {
            "Cookie": f"__Host-polynya={value}",
            "Origin": HOST,
            "X-Polynya-Request": "1",
        }

    def write(self, text: str) -> None:
        """Write the access file."""
        (self.root / "access.yml").write_text(f"apiVersion: polynya/v1\nkind: access\n{text}")
        self.control.look_again()


def served(
    root: Path,
    access: str | None = ROLES,
    settings: AccessSettings | None = None,
    clock: FakeClock | SystemClock | None = None,
) -> Served:
    """A server of a project with this access file, None for none."""
    (root / "polynya.yml").write_text(PROJECT)
    if access is not None:
        (root / "access.yml").write_text(f"apiVersion: polynya/v1\nkind: access\n{access}")
    clock = clock or FakeClock()
    app = app_of(ServerState(root, None, clock))
    control = guard(app, settings or AccessSettings())
    client = TestClient(app, base_url=HOST, follow_redirects=False)
    return Served(root, app, control, client, clock)
