"""Accessibility of a page by axe: what breaks its rules, and nothing of what keeps them.

By default axe describes each element that keeps a rule, too, which is most of its time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from axe_playwright_python.base import AXE_SCRIPT, AxeResults

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: Pages load nothing from other hosts, so axe has no style sheets to fetch.
_WHAT: Final = {"resultTypes": ["violations"], "preload": False}
_RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def violations(page: Page, *rules: str) -> str | None:
    """A report of what breaks these rules of axe, by default those of WCAG 2.2 AA; None if nothing.

    The script of axe stays in the page for the next look.
    """
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(AXE_SCRIPT)
    options = json.dumps({**_WHAT, "runOnly": list(rules or _RULES)})
    found: list[Any] = page.evaluate(f"axe.run({options}).then(found => found.violations)")
    return AxeResults({"violations": found}).generate_report() if found else None
