"""What holds for each page of the console: reachable, readable by machines, three requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

from polynya.server.console.navigation import ENTRIES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.console.lake import Console

pytestmark = pytest.mark.spark

#: What answers with an error, which is a page too.
MISSES = ("/console/nothing", "/console/query?sql=SELECT+wrong+FROM+bank.lines")
#: Pages of the example project beyond those of the navigation.
PATHS = (
    *(entry.path for entry in ENTRIES),
    "/console/access/people",
    "/console/access/audit",
    "/console/actions/reload?task=bank",
    "/console/tasks/bank",
    "/console/tasks/bank/settings",
    "/console/tasks/bank/operations",
    "/console/datasets/shop.users",
    "/console/datasets/shop.users/schema",
    "/console/datasets/shop.users/quarantine",
    "/console/datasets/shop.users/snapshots",
    "/console/datasets/shop.users/files",
    "/console/datasets/shop.users/latency",
    "/console/datasets/bank.accounts/rows",
    "/console/query?sql=SELECT+*+FROM+bank.lines",
    "/console/lineage?of=bank.accounts",
    "/console/record?dataset=bank.accounts&key=id%3D247",
    "/console/why?dataset=bank.accounts&key=id%3D247",
    "/console/documents/tasks/bank.yml",
    "/console/new-document",
    "/console/new-flow?from=bank",
    "/console/transforms/mart/mart.balances",
    "/console/why?dataset=mart.balances&key=id%3D247",
    "/console/errors",
    "/console/errors/POLYNYA-SRV-001",
    "/console/runs",
    "/console/datasets?find=none",
    *MISSES,
)
_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(chromium: Browser, demo: Console, scheme: str) -> None:
    context = chromium.new_context(base_url=demo.url, locale="en-US", color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    found = {}
    for path in PATHS:
        answer = page.goto(path)
        assert answer is not None
        assert answer.ok or path in MISSES, path
        results = Axe().run(page, options=_RULES)
        if results.violations_count:
            found[path] = results.generate_report()
    context.close()

    assert not found, "\n".join(f"{path}: {report}" for path, report in found.items())


def test_a_page_takes_three_requests_at_most_once_its_script_is_cached(visit: Page) -> None:
    asked: list[str] = []
    visit.on("request", lambda request: asked.append(request.url))
    for path in PATHS:
        asked.clear()
        if path not in MISSES:
            visit.goto(path)
            visit.wait_for_load_state("networkidle")
            own = [one for one in asked if "/console/assets/" not in one]
            assert len(own) <= 3, (path, own)


def test_a_page_is_wide_enough_for_a_phone(chromium: Browser, demo: Console) -> None:
    context = chromium.new_context(
        base_url=demo.url, locale="en-US", viewport={"width": 360, "height": 740}
    )
    page = context.new_page()
    for path in PATHS:
        page.goto(path)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, (path, wide)
    context.close()
