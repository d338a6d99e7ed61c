"""Landings of REST APIs and their connections: what fits together, and where secrets may stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polynya.cluster.configuration import _wanted
from polynya.model.config.http_connection import BearerAuth
from polynya.model.config.http_source import ConnectedHttpSource
from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from tests.projects import PROJECT, write_project

CONNECTION = """\
type: http
url: https://api.example.com/v2
auth: {type: bearer, token: "${file:/etc/polynya/secrets/token}"}
"""
TASK = """\
apiVersion: polynya/v1
kind: streaming_landing
name: shop
source:
  http:
    connection: api
    resources:
      orders: {path: /orders}
"""


def loaded(
    folder: Path, connection: str = CONNECTION, task: str = TASK, target: str | None = None
) -> LoadedProject:
    project = PROJECT + "  prod: {landing: ./in, warehouse: ./tables}\n"
    write_project(folder, project=project, shop=task)
    (folder / "connections").mkdir(exist_ok=True)
    (folder / "connections" / "api.yml").write_text(connection, encoding="utf-8")
    return load_project(folder, target, environment={"TOKEN": "abc"})


def errors_of(folder: Path, connection: str = CONNECTION, task: str = TASK) -> str:
    with pytest.raises(ConfigErrors) as caught:
        loaded(folder, connection, task)
    return "\n".join(f"{error.code} {error} {error.fix}" for error in caught.value.errors)


def test_a_landing_has_its_connection_as_the_target_has_it(tmp_path: Path) -> None:
    text = CONNECTION + "targets:\n  prod: {url: https://api.example.org, auth: {type: bearer,"
    text += ' token: "${secret:prod}"}}\n'

    at_home = loaded(tmp_path, text).landings[0].source.http
    in_prod = loaded(tmp_path, text, target="prod").landings[0].source.http

    assert isinstance(at_home, ConnectedHttpSource) and isinstance(in_prod, ConnectedHttpSource)
    assert at_home.api.url == "https://api.example.com/v2"
    assert in_prod.api.url == "https://api.example.org"
    assert isinstance(in_prod.api.auth, BearerAuth)
    # The reference is resolved where it is used.
    assert in_prod.api.auth.token.get_secret_value() == "${secret:prod}"


def test_a_changed_connection_is_a_changed_task_of_a_cluster(tmp_path: Path) -> None:
    def version(connection: str) -> str:
        project = loaded(tmp_path, connection)
        return _wanted(project.landings[0], project, {"tasks/shop.yml": b"same"}).version

    first = version(CONNECTION)
    assert version(CONNECTION) == first
    assert version(CONNECTION.replace("v2", "v3")) != first


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("${file:/etc/polynya/secrets/token}", "abc", "a secret"),
        ("https://", "http://", "without TLS"),
        ("/v2", "/v2?key=1", "no query"),
        ("bearer, token", "basic, user: u, password", None),
        ("bearer, token", "basic, user: u, password: x, token", "token"),
        ("auth:", "headers: {X-Api-Key: plain}\nauth:", "a secret"),
        ("auth:", "headers: {Host: other}\nauth:", "sets the header"),
        ("auth:", "rate_limit: {requests: 1, per: 1h}\nauth:", "one request a minute"),
        ("auth:", "targets: {other: {}}\nauth:", "other"),
        ("auth:", "targets: {prod: {url: 'http://x.example.com'}}\nauth:", "without TLS"),
        ("https://api", "file://api", "is not an address"),
        ("https://api", "https://user:pw@api", "holds no secrets"),
    ],
)
def test_what_a_connection_says_is_checked(
    tmp_path: Path, old: str, new: str, words: str | None
) -> None:
    text = CONNECTION.replace(old, new)
    if words is None:
        assert loaded(tmp_path, text).apis
    else:
        assert words in errors_of(tmp_path, text)


PATH = "{path: /orders}"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("connection: api", "connection: apj", "did you mean `api`"),
        (PATH, "{path: '/orders?x=1'}", "is not the path"),
        (PATH, "{path: /a/../b}", "`.` or `..`"),
        (PATH, "{path: '/orders/{id}'}", "needs a `parent`"),
        (PATH, "{path: /lines, parent: orders}", "lead back"),
        (PATH, "{path: /lines, parent: orderz}", "there is no resource"),
        (PATH, PATH + "\n      Orders: {path: /o}", "one landed table"),
        (
            PATH,
            PATH + "\n      lines: {path: '/o/{id}', parent: orders, every: 1h}",
            "no `every`",
        ),
        (PATH, PATH + "\n      lines: {path: /o, parent: orders}", "no field of the parent"),
        (PATH, PATH + "\n      b: {path: /b}\ninto: {table: x}", "table of its own"),
        (PATH, PATH + "\ndirect: true", "cannot be read again"),
        (PATH, PATH + "\nstart_from: now", "`incremental.start`"),
        (PATH, PATH + "\ncontent: csv", "land as JSON"),
        (PATH, "{path: /o, pagination: {type: cursor}}", "`path` or in `header`"),
        (PATH, "{path: /o, incremental: {field: $.a, parameter: p, start: soon}}", "not a number"),
        (
            PATH,
            "{path: /o, incremental: {field: $.a, parameter: p, start: 0, overlap: 5m}}",
            "different kinds",
        ),
    ],
)
def test_what_a_landing_says_is_checked(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert words in errors_of(tmp_path, task=TASK.replace(old, new))


def test_a_capture_and_a_landing_do_not_take_each_others_connections(tmp_path: Path) -> None:
    capture: dict[str, Any] = {"x": "kind: landing\napiVersion: polynya/v1\nname: x\n"}
    text = capture["x"] + "connection: api\ntables: {include: [public.a]}\n"
    assert "is of type http, and a capture needs a database" in errors_of(tmp_path, task=text)
    database = "type: postgresql\nhost: localhost\ndatabase: d\nuser: u\n"
    assert "and not an API" in errors_of(tmp_path, connection=database)
