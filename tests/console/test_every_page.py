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

#: Pages of the example project beyond those of the navigation.
PATHS = (
    *(entry.path for entry in ENTRIES),
    "/console/access/people",
    "/console/access/audit",
    "/console/actions/reload?task=bank",
    "/console/datasets?find=none",
    "/console/nothing",
)
_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(chromium: Browser, demo: Console, scheme: str) -> None:
    context = chromium.new_context(base_url=demo.url, locale="en-US", color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    found = {}
    for path in PATHS:
        page.goto(path)
        results = Axe().run(page, options=_RULES)
        if results.violations_count:
            found[path] = results.generate_report()
    context.close()

    assert not found, "\n".join(f"{path}: {report}" for path, report in found.items())


def test_a_page_asks_for_itself_its_style_and_its_script(visit: Page) -> None:
    visit.goto("/console")
    for path in PATHS:
        asked: list[str] = []
        visit.on("request", lambda request, asked=asked: asked.append(request.url))
        if path != "/console/nothing":
            visit.goto(path)
            visit.wait_for_load_state("networkidle")
            assert len(asked) <= 3, (path, asked)


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
