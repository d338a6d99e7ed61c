"""Journeys through the console in a real browser, over real tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.spark


def test_a_first_look_finds_what_needs_a_person(visit: Page) -> None:
    visit.goto("/")

    assert visit.get_by_role("heading", level=1).inner_text() == "bank"
    visit.get_by_role("link", name="shop.users").click()
    assert visit.get_by_role("heading", level=1).inner_text() == "shop.users"
