"""Journeys without tables: a node is drained, a table captured again, a role changed."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from polynya.capture.landing.position import TableProgress
from polynya.capture.wire import RequestFolder
from polynya.cluster.coordination import store as paths
from polynya.cluster.coordination.documents import LeaderLease, NodeLease, UnitOwnership
from polynya.cluster.coordination.store import DocumentStore
from polynya.cluster.unit import JobKey
from polynya.store.object_store import LocalObjectStore
from tests.cli.conftest import CAPTURE, CONNECTION
from tests.console.hands import Hands, Keyboard, Mouse
from tests.console.lake import Console, console
from tests.projects import USERS, write_project
from tests.server.access.served import ROLES
from tests.server.test_sources import capture_lands

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

_UNIT = JobKey("users", "shop.users")


@pytest.fixture(params=["keyboard", pytest.param("mouse", marks=pytest.mark.slow)])
def by(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def hands_of(by: str, page: Page) -> Hands:
    return Keyboard(page) if by == "keyboard" else Mouse(page)


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    """A cluster of two nodes, as they write it, and the console beside it."""
    folder = tmp_path / "coordination"
    folder.mkdir()
    monkeypatch.setenv("POLYNYA_COORDINATION", str(folder))
    documents, now = DocumentStore(LocalObjectStore(folder), "shop", Random(1)), datetime.now(UTC)
    leases = [
        NodeLease(
            node=name,
            incarnation=f"{name}.aa",
            state="ready",
            on_demand=name == "n2",
            since=now - timedelta(hours=1),
            renewed_at=now,
        )
        for name in ("n1", "n2")
    ]
    renew(documents, leases)
    unit = UnitOwnership(owner="n1.aa", node="n1", epoch=3, since=now, reason="nobody had it")
    assert documents.write(paths.unit_path(_UNIT), unit, None)
    leader = LeaderLease(node="n2", incarnation="n2.aa", term=1, renewed_at=now)
    assert documents.write(paths.LEADER, leader, None)
    root = write_project(tmp_path / "shop", users=USERS)
    project = root / "polynya.yml"
    project.write_text(project.read_text() + "cluster: shop\n")
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(1):
            renew(documents, leases)

    keeper = threading.Thread(target=keep)
    keeper.start()
    with console(root) as found:
        yield found
    ended.set()
    keeper.join()


def renew(documents: DocumentStore, leases: Sequence[NodeLease]) -> None:
    """Renew leases as living nodes do."""
    for lease in leases:
        path = paths.node_path(lease.incarnation)
        found = documents.read(NodeLease, path)
        renewed = lease.model_copy(update={"renewed_at": datetime.now(UTC)})
        assert documents.write(path, renewed, None if found is None else found.version)


def test_a_node_is_drained(chromium: Browser, nodes: Console, by: str) -> None:
    page = chromium.new_context(base_url=nodes.url, locale="en-US").new_page()
    hands = hands_of(by, page)
    page.goto("/console/clusters")
    hands.press(page.get_by_role("link", name="shop", exact=True))
    page.wait_for_url("**/console/clusters/shop")
    text = page.locator("main").inner_text()
    assert "on-demand" in text
    assert "users/shop.users" in text

    hands.press(page.get_by_role("link", name="Drain", exact=True).first)
    hands.write(page.get_by_label("Reason"), "it is noisy")
    hands.press(page.get_by_role("button", name="polynya cluster drain"))
    page.locator('[data-word="succeeded"]').wait_for(timeout=60_000)
    page.goto("/console/clusters/shop")
    # The page looks again by itself.
    page.get_by_text("it is noisy").first.wait_for()
    hands.look()
    page.context.close()


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Console]:
    """The console of a capture that has given one of its tables up."""
    root = write_project(tmp_path / "shop", shop_db=CAPTURE)
    (root / "connections").mkdir()
    (root / "connections" / "shop.yml").write_text(CONNECTION)
    refused = TableProgress("suspended", rows=3, why="POLYNYA-GTW-020: the database refuses it")
    capture_lands(root, **{"public.a": TableProgress("loaded", rows=1), "public.b": refused})
    with console(root) as found:
        yield found


def test_a_table_that_a_capture_gave_up_is_loaded_again(
    chromium: Browser, captured: Console, by: str
) -> None:
    page = chromium.new_context(base_url=captured.url, locale="en-US").new_page()
    hands = hands_of(by, page)
    page.goto("/console/captures")
    hands.press(page.get_by_role("link", name="shop_db", exact=True).first)
    page.wait_for_url("**/console/captures/shop_db")
    row = page.get_by_role("row").filter(has_text="public.b")
    assert "the database refuses it" in row.inner_text()

    hands.press(row.get_by_role("link", name="Load again"))
    hands.press(page.get_by_role("button", name="polynya landing reload"))
    page.locator('[data-word="succeeded"]').wait_for(timeout=60_000)

    store = LocalObjectStore(captured.root / "landing")
    (request,) = RequestFolder(store, "shop_db").pending().requests.values()
    assert (request.tables, request.reload) == (("public.b",), True)
    hands.look()
    page.context.close()


@pytest.fixture
def people(tmp_path: Path) -> Iterator[Console]:
    """The console of a project with an access file."""
    root = write_project(tmp_path / "shop", users=USERS)
    (root / "access.yml").write_text(f"apiVersion: polynya/v1\nkind: access\n{ROLES}")
    with console(root) as found:
        yield found


def logged_in(chromium: Browser, found: Console, name: str) -> BrowserContext:
    """A browser with a session, as a login by OpenID Connect leaves it."""
    value = found.control.sessions.begin(name, frozenset({name}), "a browser", timedelta(hours=1))
    context = chromium.new_context(base_url=found.url, locale="en-US")
    context.add_cookies(
        [{"name": "__Host-polynya", "value": value, "url": "https://localhost", "secure": True}]
    )
    return context


def test_somebody_gets_another_role_and_no_longer_sees_what_it_forbids(
    chromium: Browser, people: Console, by: str
) -> None:
    oleg = logged_in(chromium, people, "oleg@example.com")
    his = oleg.new_page()
    his.goto("/console")
    his.get_by_role("link", name="Run", exact=True).wait_for()

    ann = logged_in(chromium, people, "ann@example.com")
    hers = ann.new_page()
    hands = hands_of(by, hers)
    hers.goto("/console/access")
    hands.press(hers.get_by_role("link", name="People and roles"))
    hers.wait_for_url("**/console/access/people")
    hands.write(hers.get_by_label("Person or group"), "oleg@example.com")
    hands.choose(hers.locator('select[name="role"]'), "can_view")
    hands.press(hers.get_by_role("button", name="Show the change").first)
    hers.get_by_text("may no longer").wait_for()
    assert "task.run" in hers.locator("#change").inner_text()
    hands.press(hers.get_by_role("button", name="Change it"))
    hers.get_by_role("row", name=re.compile("oleg@example.com can_view")).wait_for()

    his.goto("/console")
    his.get_by_role("heading", level=1).wait_for()
    assert his.get_by_role("link", name="Run", exact=True).count() == 0
    refused = his.goto("/console/actions/run")
    assert refused is not None
    assert refused.status == 403
    assert "can_view may not" in his.locator("main").inner_text()
    hers.goto("/console/access/audit")
    assert "/console/access/people" in hers.locator("main").inner_text()
    hands.look()
    for one in (oleg, ann):
        one.close()


def test_without_a_login_a_page_leads_to_it(chromium: Browser, people: Console) -> None:
    context = chromium.new_context(base_url=people.url, locale="en-US")
    page = context.new_page()
    answer = page.goto("/console/datasets")

    assert answer is not None
    assert answer.status == 401
    assert page.get_by_role("link", name="Log in").get_attribute("href") == (
        "/api/v1/login?to=/console/datasets"
    )
    context.close()
