"""`polynya landing`: what would be captured, how it is, and what is asked of a capture."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from polynya.capture.landing.log import CaptureLander, CaptureLog
from polynya.capture.landing.position import CapturePosition, ResumePoint, TableProgress
from polynya.capture.wire import CaptureRequest, RequestFolder, error_fields
from polynya.engine.tasks import capture_process
from polynya.engine.tasks.capture import CapturedBatches, last_landed
from polynya.model.errors import DependencyError
from polynya.store.object_store import LocalObjectStore
from polynya.streams.landed_status import Expiry

FAKE = Path(__file__).parents[1] / "engine" / "tasks" / "fake_worker.py"

STORAGE = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop_db, format: debezium}
"""


@pytest.fixture
def store(project):
    return LocalObjectStore(project / "landing")


@pytest.fixture
def landed(store):
    """A capture that has landed for a while."""
    position = CapturePosition(
        ResumePoint({"lsn": 7}),
        {
            "public.a": TableProgress("loaded", rows=1200),
            "public.b": TableProgress("suspended", rows=3, why="no right to read it"),
        },
    )
    written = datetime.now(UTC) - timedelta(minutes=2)
    CaptureLander(CaptureLog(store, "shop_db"), "shop_db", lambda: written).begin(position)
    return written


def test_a_preview_shows_tables_with_their_masks_and_lands_nothing(said, database, store):
    text = said("landing", "preview", "shop_db")

    assert "public.people: about 1,200 rows, 3.0 MiB, key id" in text
    assert "id                      bigint not null\n" in text
    assert "name                    text  (left out)" in text
    assert "mail                    text  (masked: truncate)" in text
    assert list(store.list()) == []
    [table, end] = said("landing", "preview", "shop_db", "--json")
    assert [one["masked"] for one in table["columns"]] == [False, True, True]
    assert end["tables"] == 1


def test_a_preview_without_tables_fails(said, database):
    database.tables_ = ()

    assert "no table" in said("landing", "preview", "shop_db", code=1)


def test_the_status_has_the_state_of_each_table_and_the_lag(said, database, landed):
    text = said("landing", "status")

    assert text.startswith("shop_db  error\n")
    assert "2.0 min ago" in text
    assert "behind     5.0 MiB, 2.0 s" in text
    assert "note       the slot holds back 5 MiB" in text
    assert "running    public.a, 1,200 rows loaded" in text
    assert "error      public.b, 3 rows loaded: no right to read it" in text


def test_a_load_that_the_tables_do_not_have_yet_is_still_to_be_applied(said, project, store):
    (project / "tasks" / "shop.yml").write_text(STORAGE)
    tables = {
        "public.a": TableProgress("loaded", rows=9, changes=3, ended=1),
        "public.b": TableProgress("loading", rows=1, changes=1),
    }
    log = CaptureLog(store, "shop_db")
    lander = CaptureLander(log, "shop_db", lambda: datetime.now(UTC))
    lander.begin(CapturePosition(ResumePoint({"lsn": 7}), tables))

    text = said("landing", "status", "--offline")

    assert text.startswith("shop_db  caching changes\n")
    assert "  applying cached changes public.a, 9 rows loaded, 3 changes cached\n" in text
    assert "  caching changes         public.b, 1 row loaded, 1 change cached\n" in text


def test_a_capture_without_changes_says_when_it_loads_again(said, project, store, landed):
    file = project / "tasks" / "shop_db.yml"
    said_more = "update_method: reload\nschedule: FREQ=YEARLY;BYMONTH=2\n"
    file.write_text(file.read_text() + said_more)
    year = landed.year + (landed.month > 1)

    text = said("landing", "status")

    assert f"next load  {year}-02-01 00:00 UTC" in text
    assert "loaded     public.a, 1,200 rows loaded" in text


def test_the_status_does_not_need_the_database(said, database, landed, monkeypatch):
    [offline] = said("landing", "status", "--offline", "--json")
    monkeypatch.delenv("SHOP_PW")
    [unreached] = said("landing", "status", "--json")

    assert (offline["state"], offline["lag"], offline["lag_error"]) == ("error", None, None)
    assert unreached["lag_error"]["code"] == "POLYNYA-GTW-065"


def test_the_status_of_a_project_begins_with_its_captures(said, database, landed):
    [capture] = said("status", "shop_db", "--json")

    assert (capture["type"], capture["task"]) == ("landing.status", "shop_db")
    assert database.access is None


def test_before_anything_has_landed_the_status_says_what_to_do(said, database):
    assert "nothing has landed yet: `polynya run`" in said("landing", "status", "shop*")


def test_stop_and_resume_are_found_in_the_landing_zone(said, store):
    asking = RequestFolder(store, "shop_db")

    said("landing", "stop", "shop_db")
    assert asking.is_held()
    said("landing", "resume", "shop_db", "public.a")

    assert asking.pending().held is False
    assert [*asking.pending().requests.values()] == [CaptureRequest(("public.a",), reload=False)]


def test_a_reload_is_asked_for_tables_that_the_task_has(said, store):
    said("landing", "reload", "shop_db")
    assert "captures no table called `public.tmp_1`" in said(
        "landing", "reload", "shop_db", "public.tmp_1", code=2
    )

    assert [*RequestFolder(store, "shop_db").pending().requests.values()] == [
        CaptureRequest((), reload=True)
    ]


def test_nothing_is_removed_from_a_database_by_mistake(said, database):
    assert "say `--yes`" in said("landing", "drop", "shop_db", code=2)
    assert database.did == []

    said("landing", "drop", "shop_db", "--yes")
    assert database.did == ["drop", "close"]


def test_a_task_that_is_no_capture_is_named(said):
    assert "no capture is called `users`" in said("landing", "status", "users", code=2)


@pytest.fixture
def worker(monkeypatch, tmp_path):
    def play(**scenario):
        file = tmp_path / "scenario.json"
        file.write_text(json.dumps({"says": [], **scenario}))
        monkeypatch.setattr(capture_process, "COMMAND", (sys.executable, str(FAKE), str(file)))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("SHOP_PW", "hunter2")

    return play


def test_captures_run_without_spark(said, worker):
    landed = {"type": "landed", "number": 1, "events": 3, "bytes": 0, "object_bytes": 9}
    worker(says=[{"type": "streaming"}, landed], ends=0)

    *events, end = said("landing", "run", "--once", "--json")

    assert [one["type"] for one in events] == ["run.started", "capture.streaming", "capture.landed"]
    assert (end["type"], end["ok"], end["landed"]) == ("landing.run", True, 3)


def test_a_capture_that_fails_once_gives_its_exit_code(said, worker):
    refused = DependencyError("POLYNYA-GTW-020", "the database refuses connections")
    worker(says=[{"type": "failed", "error": error_fields(refused)}], ends=4)

    assert "the database refuses connections" in said("landing", "run", "--once", code=4)


def test_the_time_of_the_newest_batch_is_that_of_the_last_reload(store, landed):
    assert last_landed(store, "shop_db") == landed
    assert last_landed(store, "other") is None


def test_a_load_that_was_cut_off_is_begun_again_at_once(store):
    log = CaptureLog(store, "shop_db")
    tables = {"public.a": TableProgress("loading", rows=1), "public.b": TableProgress("loaded")}
    CaptureLander(log, "shop_db", lambda: datetime.now(UTC)).begin(
        CapturePosition(ResumePoint({}), tables)
    )

    assert last_landed(store, "shop_db") is None


def test_old_batches_are_removed_but_the_newest(store, landed):
    log = CaptureLog(store, "shop_db")
    lander = CaptureLander(log, "shop_db", lambda: landed, newest=log.newest())
    for _ in range(3):
        lander.begin(lander.position)
    old = Expiry(CapturedBatches(store, "shop_db"), timedelta(minutes=1))

    assert old.expire(landed + timedelta(seconds=59)).batches == 0
    assert old.expire(landed + timedelta(seconds=61)).batches == 3
    assert log.numbers() == [4]
