"""The two ways in which a person uses a page: with a mouse, or with the keyboard alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from tests.console.axe import violations

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

#: A page has fewer stops than that; more mean that one cannot be reached.
_MOST_STOPS: Final = 150


class Hands(Protocol):
    """What a person does to a page."""

    def press(self, target: Locator) -> None:
        """Press a link, a button or a box."""

    def write(self, target: Locator, text: str) -> None:
        """Write a text in place of what a field has."""

    def choose(self, target: Locator, text: str) -> None:
        """Choose an entry of a list."""

    def look(self) -> None:
        """Look at what the page shows now."""


class Mouse:
    """A pointer for links and buttons, keys for text. Each state of a page is held to axe's rules.

    A look takes a second, so only the slow suite has journeys by mouse.
    """

    def __init__(self, page: Page) -> None:
        self._page = page

    def look(self) -> None:
        """See `Hands`."""
        report = violations(self._page)
        assert report is None, f"{self._page.url}: {report}"

    def press(self, target: Locator) -> None:
        """See `Hands`."""
        target.wait_for()
        self.look()
        target.click()

    def write(self, target: Locator, text: str) -> None:
        """See `Hands`."""
        target.fill(text)

    def choose(self, target: Locator, text: str) -> None:
        """See `Hands`."""
        target.select_option(text)


class Keyboard:
    """Only keys: each target has to be reached by Tab, and has to show that it is."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def look(self) -> None:
        """See `Hands`. A mouse looks at the same."""

    def press(self, target: Locator) -> None:
        """See `Hands`."""
        self._reach(target)
        kind = target.evaluate("one => one.type")
        self._page.keyboard.press("Space" if kind == "checkbox" else "Enter")

    def write(self, target: Locator, text: str) -> None:
        """See `Hands`."""
        self._reach(target)
        self._page.keyboard.press("Control+A")
        self._page.keyboard.type(text)

    def choose(self, target: Locator, text: str) -> None:
        """See `Hands`."""
        self._reach(target)
        self._page.keyboard.type(text)
        self._page.keyboard.press("Tab")
        assert target.input_value() == text

    def _reach(self, target: Locator) -> None:
        target.wait_for()
        for _ in range(_MOST_STOPS):
            if target.evaluate("one => one === document.activeElement"):
                assert target.evaluate("one => one.matches(':focus-visible')")
                return
            self._page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {target}")
