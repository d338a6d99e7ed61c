"""The pictures of the documentation, taken from the console of the example project.

`POLYNYA_TEST_WRITE=1` takes them again.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.console.lake import Console

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
_SIZE = (1280, 800)
#: Name of a picture -> the page, and what has to be seen on it.
PICTURES = {
    "overview": ("/console", "Needs a person"),
    "record": ("/console/record?dataset=bank.accounts&key=id%3D247", "Clock of the engine"),
    "why": ("/console/why?dataset=mart.balances&key=id%3D247", "From what landed to mart.balances"),
    "quarantine": ("/console/datasets/shop.users/quarantine", "Replay this record"),
}


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
