"""Captures and streams over the API, from what has landed, without their sources. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.capture.landing.log import CaptureLander, CaptureLog
from polynya.capture.landing.position import CapturePosition, ResumePoint, TableProgress
from polynya.capture.source import Lag
from polynya.capture.wire import RequestFolder
from polynya.engine.commands import captures
from polynya.formats.landed import SCHEMAS, Counts, Lost, StreamFooter
from polynya.model.config.stream_content import JSON_CONTENT
from polynya.model.error_catalogue.capture_databases import POSTGRESQL_UNREACHABLE
from polynya.server.app import app_of
from polynya.server.sources import SourceWatch
from polynya.server.state import ServerState
from polynya.store.object_store import LocalObjectStore
from polynya.streams.kafka.position import KafkaPosition, TopicPosition
from polynya.streams.landing import LandedLog
from polynya.testing.fakes import FakeClock
from tests.cli.conftest import CAPTURE, CONNECTION
from tests.projects import CLICKS, write_project

CLOCK = FakeClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_project(tmp_path, shop_db=CAPTURE, clicks=CLICKS)
    (folder / "connections").mkdir()
    (folder / "connections" / "shop.yml").write_text(CONNECTION, encoding="utf-8")
    return folder


@pytest.fixture
def state(folder: Path) -> ServerState:
    return ServerState(folder, None, CLOCK)


@pytest.fixture
def client(state: ServerState, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """The API; a request that waits for a database fails."""

    def refuse(access: Any) -> Any:
        raise AssertionError("a request opened a connection")

    monkeypatch.setattr(captures, "open_database", refuse)
    monkeypatch.setattr(SourceWatch, "lag", lambda self, _, task: self._lags.get(task.name))
    yield TestClient(app_of(state))


def capture_lands(folder: Path, **tables: TableProgress) -> None:
    """A capture that has landed two minutes ago."""
    position = CapturePosition(ResumePoint({"lsn": 7, "lsn_commit": 6, "txId": 1}), tables)
    log = CaptureLog(LocalObjectStore(folder / "landing"), "shop_db")
    CaptureLander(log, "shop_db", lambda: CLOCK.now() - timedelta(minutes=2)).begin(position)


def test_a_capture_shows_its_state_its_place_and_its_tables(
    folder: Path, client: TestClient
) -> None:
    why = "POLYNYA-GTW-020: the database refuses it"
    capture_lands(
        folder,
        **{
            "public.a": TableProgress("loaded", rows=1200),
            "public.b": TableProgress("suspended", rows=3, why=why),
        },
    )

    (shown,) = client.get("/api/v1/captures").json()["items"]
    first, second = client.get("/api/v1/captures/shop_db/tables").json()["items"]

    assert shown == client.get("/api/v1/captures/shop_db").json()
    assert (shown["state"], shown["age_seconds"], shown["rows"]) == ("failed", 120.0, 1203)
    assert shown["reason"].startswith("1 table of 2 left out, first public.b: POLYNYA-GTW-020")
    assert shown["tables"] == {"running": 1, "error": 1}
    assert shown["server"]["place"] == {"lsn_commit": 6, "lsn": 7}
    assert (shown["server"]["kind"], shown["server"]["slot"]) == ("postgresql", "polynya_shop_db")
    assert shown["error"]["code"] == "POLYNYA-GTW-020"
    assert shown["error"]["message"] == "the database refuses it"
    assert [one["name"] for one in shown["actions"]] == [
        "landing-stop",
        "landing-resume",
        "landing-reload",
    ]
    assert (first["table"], first["state"], first["rows"]) == ("public.a", "running", 1200)
    assert second["error"] == shown["error"]
    failed = client.get("/api/v1/captures/shop_db/tables?state=error").json()
    assert failed["items"] == [second]


def test_the_states_of_a_capture(folder: Path, client: TestClient, state: ServerState) -> None:
    def shown() -> dict[str, Any]:
        CLOCK.sleep(6)
        found: dict[str, Any] = client.get("/api/v1/captures/shop_db").json()
        return found

    new = shown()
    capture_lands(folder, **{"public.a": TableProgress("loading", rows=5)})
    loading = shown()
    requests = RequestFolder(LocalObjectStore(folder / "landing"), "shop_db")
    requests.hold()
    stopped = shown()
    requests.release()
    log = CaptureLog(LocalObjectStore(folder / "landing"), "shop_db")
    log.store.put(log.path(2), b"broken")
    broken = shown()

    assert (new["state"], new["batches"]) == ("new", 0)
    assert (loading["state"], loading["reason"]) == ("loading", "1 table of 1 not loaded yet")
    assert stopped["state"] == "stopped"
    assert "landing-stop" not in [one["name"] for one in stopped["actions"]]
    assert (broken["state"], broken["error"]["code"]) == ("unknown", "POLYNYA-GTW-003")
    assert client.get("/api/v1/captures/none").status_code == 404


def test_the_lag_is_the_last_answer_of_the_database_with_its_age(
    folder: Path, client: TestClient, state: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Database:
        def lag(self, offset: Any) -> Lag:
            return Lag(4096, 3.0, ("its disk may fill up",), log_bytes=9000)

        def close(self) -> None:
            pass

    capture_lands(folder, **{"public.a": TableProgress("loaded", rows=1)})
    monkeypatch.setenv("SHOP_PW", "hunter2")
    (task,) = state.project().captures
    before = client.get("/api/v1/captures/shop_db").json()["lag"]
    monkeypatch.setattr(captures, "open_database", lambda _: Database())
    state.sources.ask(state.project(), task)
    CLOCK.sleep(10)
    known = client.get("/api/v1/captures/shop_db").json()["lag"]

    def unreachable(access: Any) -> Any:
        raise POSTGRESQL_UNREACHABLE(where="shop", why="timed out")

    monkeypatch.setattr(captures, "open_database", unreachable)
    state.sources.ask(state.project(), task)
    unknown = client.get("/api/v1/captures/shop_db").json()["lag"]

    assert before is None
    assert (known["bytes"], known["seconds"], known["age_seconds"]) == (4096, 3.0, 10.0)
    assert (known["log_bytes"], known["notes"]) == (9000, ["its disk may fill up"])
    assert (unknown["bytes"], unknown["error"]["code"]) == (None, POSTGRESQL_UNREACHABLE.code)


def stream_lands(folder: Path, *, read: int = 40, end: int = 50) -> None:
    topic = TopicPosition("id-1", {0: read, 1: 7}, {0: end, 1: 7})
    lost = (Lost("clicks/0", "10", "20", "retention"),)
    footer = StreamFooter(
        task="clicks", table="clicks", source="kafka", number=1, content=JSON_CONTENT, begin={},
        end=KafkaPosition({"clicks": topic}, CLOCK.now() - timedelta(seconds=30)).to_json(),
        written_at=CLOCK.now(), counts=Counts(20, 2000, 10), totals=Counts(20, 2000, 10), lost=lost,
    )  # fmt: skip
    log = LandedLog(LocalObjectStore(folder / "landing"), "clicks", "clicks")
    log.put(footer, SCHEMAS["kafka"].empty_table())


def test_a_stream_shows_its_lag_what_was_lost_and_its_partitions(
    folder: Path, client: TestClient
) -> None:
    (new,) = client.get("/api/v1/streams").json()["items"]
    CLOCK.sleep(6)
    stream_lands(folder)
    (shown,) = client.get("/api/v1/streams?task=clicks").json()["items"]
    places = client.get("/api/v1/streams/clicks/clicks/positions").json()["items"]

    assert (new["name"], new["state"]) == ("clicks", "new")
    assert (shown["name"], shown["state"], shown["reason"]) == (
        "clicks/clicks", "behind", "10 records were left"
    )  # fmt: skip
    assert (shown["behind"], shown["behind_unit"], shown["behind_seconds"]) == (10, "records", 30.0)
    assert shown["lost"] == [{"at": "clicks/0", "since": "10", "until": "20", "why": "retention"}]
    assert [(one["at"], one["position"]) for one in places] == [
        ("clicks/0", "40"),
        ("clicks/1", "7"),
    ]
    assert client.get("/api/v1/streams/clicks/clicks").json()["name"] == "clicks/clicks"
    assert client.get("/api/v1/streams/clicks/none").status_code == 404
    store = LocalObjectStore(folder / "landing")
    store.put(LandedLog(store, "clicks", "clicks").path(2), b"broken")
    CLOCK.sleep(6)
    (broken,) = client.get("/api/v1/streams").json()["items"]
    assert (broken["state"], broken["table"]) == ("unknown", None)
