"""No page is ever blank: whatever is down or silent, each page says what it does not know. No JVM.

The places of the project are folders here, so what is unreachable is the one store or catalog that
reads them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from polynya.capture.landing.position import TableProgress
from polynya.engine.commands import captures
from polynya.model.error_catalogue.capture_databases import POSTGRESQL_UNREACHABLE
from polynya.server import overview as overview_module
from polynya.server.access.control import AccessSettings
from polynya.server.access.guard import guard
from polynya.server.app import app_of
from polynya.server.console import page as page_module
from polynya.server.overview import OverviewKeeper
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.console.outages import DATASET, KEY, PATHS, TABS, Outage, make_fragile
from tests.server.test_sources import capture_lands

SECONDS = 5.0


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Outage]:
    monkeypatch.setattr(page_module, "PART_SECONDS", 0.5)
    monkeypatch.setattr(page_module.TimedPage, "seconds", 1.0)
    monkeypatch.setattr(page_module.SlowPage, "seconds", 1.5)
    made = Outage(monkeypatch)
    yield made
    made.over.set()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerState:
    return ServerState(make_fragile(tmp_path, monkeypatch), None, SystemClock())


@pytest.fixture
def client(state: ServerState) -> Iterator[TestClient]:
    app = app_of(state)
    guard(app, AccessSettings("127.0.0.1", loopback=True, tls=False))
    here = ("127.0.0.1", 5000)
    with TestClient(app, "http://localhost", raise_server_exceptions=False, client=here) as found:
        yield found


def walked(client: TestClient, paths: Iterable[str] = PATHS) -> dict[str, str]:
    """The text of each page, of which all answer with 200 and in time."""
    wrong, texts = [], {}
    for path in paths:
        began = time.monotonic()
        answer = client.get(path)
        took = time.monotonic() - began
        texts[path] = answer.text
        if answer.status_code != 200 or took > SECONDS or "<h1" not in answer.text:
            wrong.append(f"{path}: {answer.status_code} after {took:.1f} s")
    assert not wrong, "\n".join(wrong)
    return texts


def test_without_an_outage_all_is_known_but_the_silent_node(
    client: TestClient,
) -> None:
    texts = walked(client)
    (node,) = client.get("/api/v1/clusters/shop/nodes").json()["items"]

    # The tables of this lake have no quarantine, and no views.
    unknown = {path for path, text in texts.items() if "is not known since" in text}
    assert unknown <= {f"{DATASET}/quarantine", f"{DATASET}/rows"}
    assert node["state"] == "unclear" and "its lease is old" in texts["/console/clusters/shop"]


def test_a_database_that_is_down_leaves_the_page_of_its_capture_with_why_and_since(
    state: ServerState, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_: object) -> object:
        raise POSTGRESQL_UNREACHABLE(where="shop", why="timed out")

    capture_lands(state.root, **{"public.a": TableProgress("loaded", rows=1200)})
    monkeypatch.setenv("SHOP_PW", "secret")
    monkeypatch.setattr(captures, "open_database", unreachable)
    (task,) = state.project().captures
    state.sources.ask(state.project(), task)

    text = walked(client, ["/console/captures/shop_db"])["/console/captures/shop_db"]
    assert "public.a" in text and "1,200" in text
    assert POSTGRESQL_UNREACHABLE.code in text
    assert re.search("The database has not answered since <time", text)


def test_without_the_warehouse_tables_are_unknown_since_the_first_look(
    state: ServerState, client: TestClient, outage: Outage
) -> None:
    client.get("/console")
    outage.catalog, outage.folders = True, {state.root / "warehouse"}
    state.overview._seen.clear()
    state.overview.look()
    texts = walked(client)
    parts = client.get("/api/v1/datasets/shop.orders").json()["parts"]
    state.overview.look()

    for tab in TABS:
        assert "is not known since <time" in texts[f"{DATASET}/{tab}"], tab
        assert "shop.orders" in texts[f"{DATASET}/{tab}"]
    for path in ("/console", DATASET, "/console/tasks/shop"):
        assert "Not known since <time" in texts[path], path
    assert client.get("/api/v1/datasets/shop.orders").json()["parts"] == parts


def test_without_landing_zone_and_coordination_place_the_rest_stays(
    tmp_path: Path, state: ServerState, client: TestClient, outage: Outage
) -> None:
    outage.folders = {state.root / "landing", tmp_path / "coordination"}
    texts = walked(client)
    (cluster,) = client.get("/api/v1/clusters").json()["items"]

    assert "No route to host" in texts["/console/captures"]
    for path in ("/console/captures/shop_db", "/console/streams", "/console/clusters/shop"):
        assert "not known since <time" in texts[path], path
    assert "does not answer" in texts["/console/clusters"]
    assert (cluster["status"], cluster["since"] is None) == ("Unknown", False)
    assert "is not known since" not in texts[DATASET]

    since = re.findall(r'not known since <time datetime="([^"]+)"', texts["/console/streams"])
    again = client.get("/console/streams").text
    outage.folders = set()
    assert since[0] in again
    assert "not known since" not in client.get("/console/streams").text


HANGING = (
    f"{DATASET}/files",
    f"/console/record?{KEY}",
    "/console/streams",
    "/console/clusters",
)


def _hanging(outage: Outage) -> int:
    """How many threads wait for what hangs."""
    return len(outage.over._cond._waiters)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "paths", [HANGING, pytest.param(PATHS, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_what_hangs_is_given_up_and_not_asked_again_while_it_hangs(
    tmp_path: Path, state: ServerState, client: TestClient, outage: Outage, paths: Sequence[str]
) -> None:
    client.get("/console")
    outage.catalog = outage.hangs = True
    outage.folders = {state.root / "warehouse", state.root / "landing", tmp_path / "coordination"}
    walked(client, paths)
    before, began = _hanging(outage), time.monotonic()
    texts = walked(client, HANGING)

    for path, text in texts.items():
        assert "not known since <time" in text and "POLYNYA-SRV-010" in text, path
    assert _hanging(outage) == before > 0
    assert time.monotonic() - began < len(HANGING) * page_module.PART_SECONDS


def test_a_look_at_the_tables_that_fails_is_said_on_each_page(
    state: ServerState, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: OverviewKeeper) -> None:
        raise RuntimeError("a fault of ours")

    state.overview.look()
    monkeypatch.setattr(overview_module, "_LATE", 0.0)
    monkeypatch.setattr(OverviewKeeper, "look", fails)
    state.overview._pause = 0.01
    state.overview.start()
    time.sleep(0.2)
    try:
        texts = walked(client)
        late = client.get("/api/v1/project").json()["late_since"]
    finally:
        state.overview.stop()

    assert all("has not looked at the tables since <time" in text for text in texts.values())
    assert late is not None and "shop.orders" in texts["/console/datasets"]
