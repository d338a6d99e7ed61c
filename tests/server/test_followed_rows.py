"""Records and rows that are followed over HTTP, in tables that a run has made, with late events."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from polynya.server.app import app_of
from polynya.server.state import ServerState
from polynya.store.clock import SystemClock
from tests.projects import write_project

SHOP = """\
apiVersion: polynya/v1
kind: storage
name: shop
schema: shop
landing: {path: shop, format: json}
datasets:
  - name: users
    path: "users/*.json"
    keys: [id]
    sequence_by: [seq]
    timestamp: at
    apply_as_deletes: "op = 'D'"
    apply_as_truncates: "op = 'T'"
    except_columns: [op, seq, at]
    history: true
    changes_retention: 30d
"""
CITIES = """\
apiVersion: polynya/v1
kind: transform
name: cities
from: [shop]
datasets:
  - name: cities
    keys: [city]
    sql: SELECT city, count(*) AS people FROM users WHERE name <> 'nobody' GROUP BY city
"""
IDS = range(1, 7)


def events(seed: int) -> list[dict[str, Any]]:
    """Events of some records in order of their sequence; a truncate is in the middle."""
    draw, made = random.Random(seed), []
    for seq in range(1, 41):
        at = f"2026-01-01T00:{seq:02d}:00Z"
        if seq == 20:
            made.append({"op": "T", "seq": seq, "at": at})
            continue
        name = draw.choice(["Ada", "Eva", "nobody"])
        city = draw.choice(["Bonn", "Ulm"])
        row = {"id": draw.choice(IDS), "name": name, "city": city}
        made.append({**row, "op": draw.choice("UUUD"), "seq": seq, "at": at})
    return made


def land(folder: Path, name: str, some: list[dict[str, Any]]) -> None:
    place = folder / "landing" / "shop" / "users"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text("".join(json.dumps(one) + "\n" for one in some))


def run(folder: Path, *options: str) -> None:
    command = [sys.executable, "-m", "polynya", "-p", str(folder), "run", "--once", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_the_history_of_each_record_is_what_the_views_show(tmp_path: Path) -> None:
    folder = write_project(tmp_path, shop=SHOP, cities=CITIES)
    made = events(7)
    late = made[5:30:4]
    land(folder, "1.json", [one for one in made[:30] if one not in late])
    run(folder, "--apply", "always")
    land(folder, "2.json", late)
    run(folder, "--apply", "always")
    land(folder, "3.json", made[30:])
    run(folder, "--apply", "never")
    state = ServerState(folder, None, SystemClock())
    client = TestClient(app_of(state), raise_server_exceptions=False)

    def asked(sql: str) -> list[dict[str, Any]]:
        answer = client.post("/api/v1/queries", json={"sql": sql}).json()
        rows: list[dict[str, Any]] = answer["rows"]
        return rows

    history = asked("SELECT * FROM shop.users__history ORDER BY hdr__from_timestamp")
    now = {row["id"]: row for row in asked("SELECT * FROM shop.users")}
    lates = 0
    for key in IDS:
        record = client.get(f"/api/v1/datasets/shop.users/record?key=id={key}").json()
        versions = [row for row in history if row["id"] == key]
        entries = record["items"]

        assert [(one["valid_from"], one["valid_to"]) for one in entries] == [
            (of(row["hdr__from_timestamp"]), of(row["hdr__to_timestamp"])) for row in versions
        ]
        assert [one["gone"] for one in entries] == [row["hdr__deleted"] for row in versions]
        assert [one["values"] for one in entries if not one["gone"]] == [
            {name: row[name] for name in ("id", "name", "city")}
            for row in versions
            if not row["hdr__deleted"]
        ]
        assert record["current"] == now.get(key)
        assert [one["landed"] is not None for one in entries] == [
            one["kind"] != "truncate" for one in entries
        ]
        for one in entries:
            if one["landed"] is not None:
                lines = (folder / "landing" / one["landed"]["file"]).read_text().splitlines()
                landed = json.loads(lines[one["landed"]["number"]])
                assert landed["id"] == key
                assert of(landed["at"]) == one["source_time"]
        lates += sum(one["late"] for one in entries)
    assert lates > 0

    for city in asked("SELECT * FROM cities.cities"):
        why = client.get(f"/api/v1/datasets/cities.cities/why?key=city={city['city']}&rows=20")
        (users,) = why.json()["row"]["inputs"]
        assert (users["exact"], users["by"], users["count"]) == (True, ["city"], city["people"])
        assert all(row["values"]["city"] == city["city"] for row in users["rows"])
        assert all(row["entry"]["landed"] is not None for row in users["rows"])

    runs = client.get("/api/v1/runs?kind=process").json()["items"]
    assert [run["outcome"] for run in runs] == ["owner", "overtaken", "overtaken"]
    assert runs[0]["name"].startswith("process ")
    assert runs[-1]["rows"]["in"] >= len([one for one in made[:30] if one not in late])
    steps = [
        one["step"] for one in client.get("/api/v1/datasets/shop.users/commits").json()["items"]
    ]
    assert steps[-1] == "takeover"
    assert {"copy", "takeover"} <= set(steps)


def of(moment: str | None) -> str | None:
    """A moment as the API writes it."""
    return None if moment is None else moment.replace("Z", "+00:00")
