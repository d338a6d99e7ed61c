"""Journeys through the console in a real browser, over real tables and with real commands.

Each is made by keyboard only; by mouse, which can do less wrong, in the slow suite.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.console.hands import Hands, Keyboard, Mouse

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.spark

#: Milliseconds that a command with Spark may take on a busy machine.
_COMMAND = 240_000


@pytest.fixture(params=["keyboard", pytest.param("mouse", marks=pytest.mark.slow)])
def hands(request: pytest.FixtureRequest, visit: Page) -> Hands:
    return Keyboard(visit) if request.param == "keyboard" else Mouse()


def title(page: Page) -> str:
    return page.get_by_role("heading", level=1).inner_text()


def started(page: Page, hands: Hands, button: str, command: str) -> None:
    """Press a button of an action, confirm its form, and wait for the end of the operation."""
    hands.press(page.get_by_role("link", name=button, exact=True))
    hands.press(page.get_by_role("button", name=command))
    page.wait_for_url(re.compile("/console/operations/"))
    page.locator('[data-word="succeeded"]').wait_for(timeout=_COMMAND)


def test_a_first_look_finds_what_needs_a_person(visit: Page, hands: Hands) -> None:
    visit.goto("/")
    assert title(visit) == "bank"

    hands.press(visit.get_by_role("link", name="shop.users").first)
    visit.wait_for_url("**/console/datasets/shop.users")
    hands.press(visit.get_by_role("link", name="Quarantine", exact=True))

    assert "not JSON" in visit.locator("main").inner_text()
    assert '{"userId":126,"name":"Lily","city":"Can' in visit.locator("main").inner_text()


def test_a_row_is_followed_to_the_record_that_landed(visit: Page, hands: Hands) -> None:
    visit.goto("/console/datasets/bank.accounts/rows")
    hands.press(visit.get_by_role("link", name="history").first)
    visit.wait_for_url(re.compile("/console/record"))

    assert title(visit) == "History of one record"
    text = visit.locator("main").inner_text()
    assert "Inserted" in text
    assert "landing/" in text or "postgres_workload" in text

    hands.press(visit.get_by_role("link", name="Why is this row so?"))
    visit.wait_for_url(re.compile("/console/why"))
    assert "postgres_workload" in visit.locator("main").inner_text()


def test_a_command_is_shown_as_its_form_is_filled(visit: Page, hands: Hands) -> None:
    visit.goto("/console/tasks/bank")
    hands.press(visit.get_by_role("link", name="Reload", exact=True))
    hands.write(visit.get_by_label("Dataset", exact=True), "accounts")
    hands.write(visit.get_by_label("Reason"), "a <b>test</b>")
    hands.press(visit.get_by_label("Wait"))

    shown = visit.locator("#command code")
    shown.get_by_text("--wait").wait_for()
    assert "--dataset=accounts" in shown.inner_text()
    assert "'--reason=a <b>test</b>'" in shown.inner_text()
