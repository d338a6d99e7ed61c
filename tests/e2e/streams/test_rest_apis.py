"""A REST API becomes tables by the commands of its page, with kills of the process in between."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from examples.servers.shop_api import TOKEN, ShopApi, shop_api
from tests.docs.pages import ROOT, blocks
from tests.e2e.killing import KILLED, run_to_end, running
from tests.oracle.packs.driver import CommandDriver
from tests.projects import PROJECT, write_project

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ORDERS = "SELECT id, total FROM sales.orders ORDER BY id"
LINES = "SELECT id FROM sales.lines ORDER BY id"
PAGE = ROOT / "docs" / "http-sources.md"


def of_page(folder: Path, api: ShopApi, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of the page, for an API on this machine."""
    write_project(folder, project=PROJECT)
    (folder / "connections").mkdir()
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if block.file is not None:
            text = block.text.replace("https://api.example.com/v1", api.url)
            text = text.replace("${file:/etc/polynya/secrets/shop-token}", "${env:SHOP_TOKEN}")
            (folder / block.file).write_text(text.replace("per: 1s", "per: 100ms"))
    monkeypatch.setenv("POLYNYA_LOCAL_APIS", "127.0.0.1")
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    return folder


def is_as_served(driver: CommandDriver, project: Path, api: ShopApi) -> None:
    orders, lines = driver.query(project, [ORDERS, LINES])
    assert [(row["id"], row["total"]) for row in orders] == [
        (number, api.orders[number]["total"]) for number in sorted(api.orders)
    ]
    wanted = sorted(line["id"] for number in api.orders for line in api.lines(number))
    assert [row["id"] for row in lines] == wanted


@pytest.mark.parametrize(
    ("hook", "mode", "number"),
    [
        ("polynya.streams.rest.pages.page_of", "before", 2),
        ("polynya.streams.rest.pages.page_of", "after", 30),
        ("polynya.streams.landing.write_batch", "before", 1),
        ("polynya.streams.landing.write_batch", "before", 2),
    ],
)
def test_a_killed_run_is_made_good_by_the_next(
    hook: str,
    mode: str,
    number: int,
    driver: CommandDriver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with shop_api() as api:
        project = of_page(tmp_path, api, monkeypatch)
        with running(project, apply="always", mode=mode, number=number, hook=hook) as run:
            assert run.wait() == KILLED, run.text()
        api.change(7, 777)
        api.change(51, 510)

        run_to_end(project, apply="always")

        is_as_served(driver, project, api)
        log = "".join(path.read_text("utf-8", "replace") for path in project.glob("run-*.log"))
        assert TOKEN not in log


def test_runs_that_are_killed_at_any_time_end_with_what_the_server_has(
    driver: CommandDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop_api() as api:
        project = of_page(tmp_path, api, monkeypatch)
        stopped = threading.Event()

        def change() -> None:
            number = 0
            while not stopped.wait(0.05):
                number += 1
                api.change(number % 70 + 1, number)

        writer = threading.Thread(target=change)
        writer.start()
        try:
            for seconds in (4.0, 5.5, 7.0, 9.0):
                with running(project, apply="always") as run:
                    time.sleep(seconds)
                    run.kill()
        finally:
            stopped.set()
            writer.join()

        run_to_end(project, apply="always")

        is_as_served(driver, project, api)


def test_the_commands_of_the_page_say_what_it_shows(
    driver: CommandDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*words: str) -> list[dict[str, Any]]:
        output = driver.call(*words, "--json", "--project", str(project)).output
        return [json.loads(line) for line in output.splitlines()]

    with shop_api() as api:
        project = of_page(tmp_path, api, monkeypatch)
        tested = driver.call("connection", "test", "shop", "--project", str(project)).output
        assert "ok    orders answers 200 with 20 records, and there are more pages" in tested
        assert "shop can be read" in tested
        driver.run_project(project, "always")
        is_as_served(driver, project, api)
        before = api.requests
        driver.run_project(project, "always")
        # One page from the overlap on, and the lines of its orders.
        assert api.requests - before < 60
        found = {one.get("table"): one for one in said("status") if one["type"] == "stream.status"}
        assert found["orders"]["behind_pages"] == 0
