"""The pages of captures, streams, events and runs, from what has landed. No JVM, no source."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi.testclient import TestClient

from polynya.capture.landing.position import TableProgress
from tests.console.hostile import Elements

# The fixtures of the API: a project with a capture and a stream.
from tests.server.test_sources import (  # noqa: F401
    capture_lands,
    client,
    folder,
    state,
    stream_lands,
)

REFUSED = "POLYNYA-GTW-020: the database refuses it"


def test_a_capture_shows_its_tables_by_state_with_what_to_do(
    folder: Path,  # noqa: F811
    client: TestClient,  # noqa: F811
) -> None:
    tables = {
        "public.a": TableProgress("loaded", rows=1200),
        "public.b": TableProgress("suspended", rows=3, why=REFUSED),
    }
    capture_lands(folder, **tables)

    listed = client.get("/console/captures").text
    whole = client.get("/console/captures/shop_db").text
    failed = client.get("/console/captures/shop_db?state=error").text

    assert 'href="/console/captures/shop_db"' in listed
    assert "public.a" in whole and "public.b" in whole
    assert "public.a" not in failed and "public.b" in failed
    assert "/console/errors/POLYNYA-GTW-020" in failed
    assert "polynya_shop_db" in whole, "its slot"
    assert re.search(r"landing-resume\?task=shop_db&amp;tables=public.b", failed)
    assert {"landing-stop", "landing-reload"} <= set(re.findall(r"actions/([a-z-]+)", whole))
    assert client.get("/console/captures/none").status_code == 404


def test_a_stream_shows_how_far_it_is_behind_and_what_was_lost(
    folder: Path,  # noqa: F811
    client: TestClient,  # noqa: F811
) -> None:
    stream_lands(folder)

    listed = Elements(client.get("/console/streams?task=clicks").text).text
    found = Elements(client.get("/console/streams/clicks/clicks").text).text

    assert "10 records" in listed
    assert "Lost at the source" in found
    assert "clicks/0" in found
    assert client.get("/console/streams/clicks/none").status_code == 404


def test_filters_of_events_and_runs_stand_in_the_address(
    client: TestClient,  # noqa: F811
) -> None:
    events = client.get("/console/events?level=failure&hours=168&task=shop_db").text
    runs = client.get("/console/runs?kind=operation&outcome=failed&hours=720").text
    wrong = client.get("/console/events?level=loud")

    assert re.search(r"<option selected>failure", events)
    assert re.search(r'value="168" selected', events)
    assert 'name="task" value="shop_db"' in events
    assert re.search(r"<option selected>operation", runs)
    assert wrong.status_code == 422
    assert "POLYNYA-SRV-002" in wrong.text
