"""Outages in a real browser: whatever is down, each page says what it does not know, since when."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from polynya.capture.landing.position import TableProgress
from polynya.engine.commands import captures
from polynya.model.error_catalogue.capture_databases import POSTGRESQL_UNREACHABLE
from tests.console.axe import violations
from tests.console.lake import Console, console
from tests.console.outages import DATASET, KEY, PATHS, TABS, Outage, make_fragile
from tests.server.test_sources import capture_lands

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

#: Milliseconds until a page that does not know has asked again.
_AGAIN: Final = 30_000
_SINCE: Final = re.compile(
    r"(not known|has not answered|does not answer)[^.]* since \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", re.I
)
#: The pages that show something of what is down: of tables, of what landed, of nodes.
SILENT: Final = (
    "/console",
    "/console/tasks",
    "/console/tasks/shop",
    "/console/tasks/shop/latency",
    "/console/datasets",
    DATASET,
    *(f"{DATASET}/{tab}" for tab in TABS),
    "/console/transforms",
    "/console/transforms/sales/sales.totals",
    f"/console/record?{KEY}",
    f"/console/why?{KEY}",
    "/console/why?dataset=sales.totals&key=person%3Dx",
    "/console/lineage?of=shop.orders",
    "/console/automations",
    "/console/notifications",
    "/console/access",
    "/console/access/audit",
    "/console/captures",
    "/console/captures/shop_db",
    "/console/streams",
    "/console/clusters",
    "/console/clusters/shop",
)


def faults(page: Page, paths: tuple[str, ...], *, silent: tuple[str, ...]) -> list[str]:
    """What is wrong with pages: blank or inaccessible ones, and silence about what is unknown."""
    wrong, thrown = [], []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    for path in paths:
        answer = page.goto(path)
        text = page.locator("main").inner_text()
        if answer is None or not answer.ok or not page.locator("h1").inner_text():
            wrong.append(f"{path}: {answer and answer.status}")
        if (_SINCE.search(text) is None) == (path in silent):
            wrong.append(f"{path} says: {text}")
        if path in silent and "POLYNYA-BUG" in text:
            wrong.append(f"{path} says that Polynya has a fault: {text}")
        if (report := violations(page)) is not None:
            wrong.append(f"{path}: {report}")
    return wrong + thrown


def everything_is_down(
    found: Console, folder: Path, outage: Outage, patch: pytest.MonkeyPatch
) -> None:
    """Take the warehouse, the landing zone, the coordination place and a database away."""

    def unreachable(_: object) -> object:
        raise POSTGRESQL_UNREACHABLE(where="shop", why="timed out")

    patch.setattr(captures, "open_database", unreachable)
    project = found.state.project()
    found.state.sources.ask(project, project.captures[0])
    outage.catalog = True
    outage.folders = {found.root / one for one in ("warehouse", "landing")}
    outage.folders.add(folder / "coordination")
    found.state.overview._seen.clear()
    found.state.overview.look()


@pytest.mark.slow
def test_each_page_names_what_it_does_not_know_and_since_when_until_it_knows_again(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outage = make_fragile(tmp_path, monkeypatch), Outage(monkeypatch)
    capture_lands(root, **{"public.a": TableProgress("loaded", rows=1200)})
    monkeypatch.setenv("SHOP_PW", "secret")
    with console(root) as found:
        context = chromium.new_context(base_url=found.url, locale="en-US")
        page = context.new_page()
        before = faults(page, ("/console", DATASET, "/console/clusters"), silent=())
        assert not before, "\n".join(before)

        everything_is_down(found, tmp_path, outage, monkeypatch)
        found_wrong = faults(page, PATHS, silent=SILENT)
        assert not found_wrong, "\n".join(found_wrong)

        page.goto("/console/streams")
        page.get_by_text("is not known since").wait_for()
        outage.catalog, outage.folders = False, set()
        # The page asks again by itself.
        page.get_by_text("is not known since").wait_for(state="detached", timeout=_AGAIN)
        assert "clicks" in page.locator("main").inner_text()
        context.close()
