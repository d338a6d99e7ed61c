"""Journeys through the console in a real browser, over real tables and with real commands.

Each is made by keyboard only; by mouse, and with axe at each state of a page, in the slow suite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.console.hands import Hands, Keyboard, Mouse

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.console.lake import Console

pytestmark = pytest.mark.spark

#: Milliseconds that a command with Spark may take on a busy machine.
_COMMAND = 240_000


#: People are told of changes that wait; the page says that the newest event is older than that.
LATE = """\
apiVersion: polynya/v1
kind: notification
channels:
  hook: {type: webhook, url: "https://hooks.example.com/x", secret: "${secret:env:HOOK}"}
rules:
  users: {stale_after: 3m, datasets: [shop.users], causes: [stale]}
"""


@pytest.fixture(params=["keyboard", pytest.param("mouse", marks=pytest.mark.slow)])
def hands(request: pytest.FixtureRequest, visit: Page) -> Iterator[Hands]:
    made: Hands = Keyboard(visit) if request.param == "keyboard" else Mouse(visit)
    yield made
    made.look()


def title(page: Page) -> str:
    return page.get_by_role("heading", level=1).inner_text()


def started(page: Page, hands: Hands, button: str, command: str) -> str:
    """Press a button of an action and confirm its form; the state at the end of its operation."""
    hands.press(page.get_by_role("link", name=button, exact=True))
    hands.press(page.get_by_role("button", name=command))
    return ended(page)


def ended(page: Page) -> str:
    """Wait for the end of the operation that a page shows, and return its state."""
    page.wait_for_url(re.compile("/console/operations/"))
    state = page.locator(".figure .word").first
    words = [f'.figure [data-word="{word}"]' for word in ("succeeded", "failed", "interrupted")]
    page.locator(", ".join(words)).first.wait_for(timeout=_COMMAND)
    return state.inner_text()


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


def test_a_flow_of_four_steps_is_built_and_its_result_seen(visit: Page, hands: Hands) -> None:
    visit.goto("/console/transforms")
    hands.press(visit.get_by_role("link", name="New flow"))
    hands.write(visit.get_by_label("Name of the task"), "people")
    hands.write(visit.get_by_label("Name of its table"), "people")
    hands.write(visit.get_by_label("Key columns"), "userId")
    hands.choose(visit.get_by_label("Reads tables of"), "users")
    for number, (processor, field, text) in enumerate(
        (
            ("filter", "Condition", "city IS NOT NULL"),
            ("select", "Columns", "userId\nname\ncity"),
            ("rename", "Columns", "name: full_name"),
            ("derive", "Columns", "shout: upper(full_name)"),
        )
    ):
        hands.press(visit.get_by_role("button", name=processor, exact=True))
        step = visit.locator(f"#edit-{number}")
        if number == 0:
            hands.write(step.get_by_label("Input"), "users")
        hands.write(step.get_by_label(field), text)
        hands.press(visit.get_by_role("button", name="Check the steps"))
        step.get_by_text("Result:").wait_for()
    hands.press(visit.locator("#edit-3").get_by_role("button", name="Show rows"))

    assert "shout" in visit.locator("#edit-3 table").inner_text()

    hands.press(visit.get_by_role("button", name="Show what it changes"))
    visit.locator("#change .diff").wait_for()
    assert "+kind: transform" in visit.locator("#change .diff").inner_text()


def test_a_plan_is_reviewed_approved_and_applied(visit: Page, hands: Hands, demo: Console) -> None:
    users = demo.root / "tasks" / "users.yml"
    text = users.read_text()
    users.write_text(
        text.replace("    history: true\n", "    history: true\n    sort_by: [city]\n")
    )
    try:
        visit.goto("/console/plans")
        hands.press(visit.get_by_role("button", name="Make a plan"))
        visit.wait_for_url(re.compile("/console/plans/"))
        visit.get_by_role("button", name="Approve").wait_for(timeout=_COMMAND)
        assert "users" in visit.locator("main").inner_text()
        hands.write(visit.get_by_label("Comment, for others"), "cities are asked for")
        hands.press(visit.get_by_role("button", name="Approve"))
        visit.get_by_text("cities are asked for").wait_for()
        hands.press(visit.get_by_role("button", name="Apply the plan"))
        visit.locator('[data-word="applied"], [data-word="succeeded"]').first.wait_for(
            timeout=_COMMAND
        )
    finally:
        users.write_text(text)


@pytest.fixture
def target_of_minutes(demo: Console) -> Iterator[None]:
    rules = demo.root / "notifications" / "on.yml"
    rules.parent.mkdir(exist_ok=True)
    rules.write_text(LATE)
    yield
    rules.unlink()


@pytest.mark.usefixtures("target_of_minutes")
def test_a_dataset_is_late_because_nothing_was_copied_and_a_run_copies_what_landed(
    visit: Page, hands: Hands, demo: Console
) -> None:
    landed = sorted((demo.root / "landing" / "users").iterdir())[-1]
    visit.goto("/console")
    late = visit.get_by_role("row").filter(has_text="shop.users").locator('[data-word="late"]')
    # The page looks again by itself; another journey may have brought an event a moment ago.
    late.wait_for(timeout=240_000)
    hands.press(visit.get_by_role("link", name="shop.users").first)
    visit.wait_for_url("**/console/datasets/shop.users")
    assert visit.locator('[data-word="late"]').count() == 1
    assert "Last copy" in visit.locator("main").inner_text()

    now = datetime.now(UTC)
    number = now.microsecond + 1000
    event = {"userId": number, "operation": "INSERT", "sequenceNum": int(now.timestamp())}
    event |= {"name": f"Nia {number}", "eventTime": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    after = landed.with_name(f"{landed.stem}n.json")
    after.write_text(json.dumps(event) + "\n")
    assert started(visit, hands, "Run", "polynya run") == "succeeded"

    visit.goto("/console/datasets/shop.users")
    # The server looks at the new commit within seconds, and the page asks again by itself.
    visit.locator('[data-word="late"]').wait_for(state="detached", timeout=60_000)
    visit.goto(f"/console/record?dataset=shop.users&key=userId%3D{number}")
    assert after.name in visit.locator("main").inner_text()


def test_a_reload_without_a_full_load_says_why(visit: Page, hands: Hands) -> None:
    visit.goto("/console/datasets/bank.lines")

    assert started(visit, hands, "Reload", "polynya reload") == "failed"

    said = visit.get_by_role("alert").inner_text()
    assert "POLYNYA-LAKE-014" in said
    assert "What to do" in said
    hands.press(visit.get_by_role("link", name="POLYNYA-LAKE-014"))
    visit.wait_for_url("**/console/errors/POLYNYA-LAKE-014")


@pytest.mark.slow
def test_a_table_is_loaded_again_from_a_file(visit: Page, hands: Hands) -> None:
    visit.goto("/console/datasets/shop.users")
    hands.press(visit.get_by_role("link", name="Reload", exact=True))
    hands.choose(visit.get_by_label("Mode"), "compare_and_apply_without_deleted_rows")
    hands.write(visit.get_by_role("textbox", name="Files"), "0004.json")
    hands.press(visit.get_by_role("button", name="polynya reload"))
    assert ended(visit) == "succeeded", visit.locator("main").inner_text()


def test_a_rejected_record_is_replayed(visit: Page, hands: Hands) -> None:
    visit.goto("/console/datasets/shop.users/quarantine")
    hands.press(visit.get_by_role("link", name="Replay this record").first)
    hands.press(visit.get_by_role("button", name="polynya quarantine replay"))

    assert ended(visit) == "succeeded"


@pytest.mark.slow
def test_a_rejected_record_becomes_a_row_once_the_setting_is_corrected(
    visit: Page, hands: Hands, demo: Console
) -> None:
    users = demo.root / "tasks" / "users.yml"
    text, who = users.read_text(), f"Nia by {type(hands).__name__}"
    number = 900 + len(who)
    record = f'{{"userId":{number},"name":"{who}","city":"Oslo","operation":"INSERT"'
    landed = demo.root / "landing" / "users" / f"{number}.json"
    landed.write_text(f'{record},"sequenceNum":9{number},"eventTime":"yesterday"}}\n')
    visit.goto("/console/tasks/users")
    assert started(visit, hands, "Run", "polynya run") == "succeeded"
    visit.goto("/console/datasets/shop.users/quarantine")
    article = visit.locator("article.record", has_text=who)
    assert "timestamp" in article.inner_text()

    visit.goto("/console/documents/tasks/users.yml")
    corrected = text.replace("    timestamp: eventTime\n", "")
    hands.write(visit.get_by_label("Text", exact=True).first, corrected)
    hands.press(visit.get_by_role("button", name="Show what it changes"))
    visit.locator("#change .diff").wait_for()
    with visit.expect_response(lambda one: one.request.method == "POST"):
        hands.press(visit.get_by_role("button", name="Save"))
    assert users.read_text() == corrected
    try:
        visit.goto("/console/datasets/shop.users/quarantine")
        hands.press(article.get_by_role("link", name="Replay this record"))
        hands.press(visit.get_by_role("button", name="polynya quarantine replay"))
        assert ended(visit) == "succeeded", visit.locator("main").inner_text()

        visit.goto("/console/datasets/shop.users/quarantine")
        assert article.count() == 0
        visit.goto("/console/datasets/shop.users/rows")
        assert who in visit.locator("#list table").inner_text()
    finally:
        users.write_text(text)
