"""What holds for each page of the console: reachable, readable by machines, three requests."""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from polynya.server.console.navigation import ENTRIES
from tests.console.axe import violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

    from tests.console.lake import Console

pytestmark = pytest.mark.spark

#: The pictures of the documentation; `POLYNYA_TEST_WRITE=1` takes them again.
FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
_SIZE = (1280, 800)
#: Name of a picture -> the page, and what has to be seen on it.
PICTURES = {
    "overview": ("/console", "Needs a person"),
    "record": ("/console/record?dataset=bank.accounts&key=id%3D247", "Clock of the engine"),
    "why": ("/console/why?dataset=mart.balances&key=id%3D247", "From what landed to mart.balances"),
    "quarantine": ("/console/datasets/shop.users/quarantine", "Replay this record"),
}
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
    "/console/tasks/bank/latency",
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
    "/console/transforms/mart/mart.customer/rows/0",
    "/console/transforms/mart/mart.customer/counts",
    "/console/why?dataset=mart.balances&key=id%3D247",
    "/console/errors",
    "/console/errors/POLYNYA-SRV-001",
    "/console/runs",
    "/console/datasets?find=none",
    *MISSES,
)
_DESK: Final[ViewportSize] = {"width": 1280, "height": 800}
_PHONE: Final[ViewportSize] = {"width": 360, "height": 740}
_MOST_REQUESTS: Final = 3
_DARK_EVERY: Final = 4
#: What a phone changes is in the frame of each page, so a few pages show it.
_NARROW_EVERY: Final = 16
#: A page hears of its new size with the next frame, and is drawn as its scripts left it after that.
_TWO_FRAMES: Final = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def test_each_page_is_accessible_narrow_and_asks_for_little(
    chromium: Browser, demo: Console
) -> None:
    context = chromium.new_context(base_url=demo.url, locale="en-US", color_scheme="light")
    page = context.new_page()
    # What Chromium says in an environment of POSIX is no locale.
    page.add_init_script(
        "Object.defineProperty(Navigator.prototype, 'language', {get: () => 'en-US@posix'})"
    )
    asked: list[str] = []
    faults: list[object] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    wrong: dict[str, list[object]] = defaultdict(list)
    for number, path in enumerate(PATHS):
        asked.clear()
        faults.clear()
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(_DESK)
        answer = page.goto(path)
        if answer is None or answer.ok == (path in MISSES):
            wrong[path].append(answer and answer.status)
        reports = [violations(page)]
        if number % _DARK_EVERY == 0:
            page.emulate_media(color_scheme="dark")
            # A theme changes nothing but colours.
            reports.append(violations(page, "color-contrast"))
        wrong[path] += [one for one in reports if one is not None]
        wrong[path] += faults
        # Script and style are cached.
        own = [one for one in asked if "/console/assets/" not in one]
        if len(own) > _MOST_REQUESTS:
            wrong[path].append(own)
        page.set_viewport_size(_PHONE)
        page.evaluate(_TWO_FRAMES)
        if number % _NARROW_EVERY == 0 and (report := violations(page)) is not None:
            wrong[path].append(report)
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > _PHONE["width"]:
            wrong[path].append(f"{wide} px wide")
    context.close()

    wrong = {path: found for path, found in wrong.items() if found}
    assert not wrong, "\n".join(f"{path}: {found}" for path, found in wrong.items())


def test_the_check_sees_a_fault_in_each_theme(chromium: Browser) -> None:
    page = chromium.new_context(color_scheme="dark").new_page()
    page.set_content(
        "<html lang=en><title>x</title><style>@media (prefers-color-scheme: dark)"
        "{p {color: #222; background: #000}}</style><main><h1>x</h1><p>dim</p><img src=x>"
    )
    whole, colours = violations(page), violations(page, "color-contrast")
    page.context.close()

    assert whole is not None and "image-alt" in whole
    assert colours is not None and "color-contrast" in colours and "image-alt" not in colours


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_the_console_shows(
    chromium: Browser, demo: Console, name: str
) -> None:
    path, text = PICTURES[name]
    file = FOLDER / f"{name}.png"
    context = chromium.new_context(
        base_url=demo.url, locale="en-US", viewport={"width": _SIZE[0], "height": _SIZE[1]}
    )
    page = context.new_page()
    page.goto(path)
    page.get_by_text(text).first.wait_for()
    if "POLYNYA_TEST_WRITE" in os.environ:
        page.wait_for_load_state("networkidle")
        page.screenshot(path=file)
    context.close()

    assert struct.unpack(">II", file.read_bytes()[16:24]) == _SIZE
