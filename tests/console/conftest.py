"""The browser, and the console of the example project, which the tests of a process share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from polynya.lake.spark.api import SparkSession

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.console.lake import Console


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser; while it is there, the thread of the tests has a loop that others cannot start."""
    # Late: other tests need no browser.
    from tests.browser import browser

    with browser() as found:
        yield found


@pytest.fixture(scope="session")
def demo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """The console of the example project after its first run."""
    from tests.console.lake import console, make_lake

    root = tmp_path_factory.mktemp("demo") / "bank"
    make_lake(spark, root)
    with console(root) as found:
        yield found


@pytest.fixture
def visit(chromium: Browser, demo: Console) -> Iterator[Page]:
    """A page of a browser at the console of the example; a fault of a script fails the test."""
    context = chromium.new_context(base_url=demo.url, locale="en-US")
    page = context.new_page()
    page.set_default_timeout(15_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    yield page
    context.close()
    assert faults == []
