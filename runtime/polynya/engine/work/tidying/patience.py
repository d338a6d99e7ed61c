"""How long an action of maintenance works on although copies or applies wait for a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: After it gave way once, in seconds; twice as long after each further time...
FIRST_SECONDS: Final = 1.0
#: ...and never longer: what waits has the other threads meanwhile.
MOST_SECONDS: Final = 16.0


@dataclass(slots=True)
class Patience:
    """Of the maintenance of one table: none at first, more each time that it gave way.

    On a machine that always has something to copy, an action that gives way at once would never
    end: it costs each time and gains nothing, and the table gets slower for all who wait.
    """

    seconds: float = 0.0

    def ended(self, *, whole: bool) -> None:
        """Take note of how an action ended: whole, or because others waited."""
        self.seconds = 0.0 if whole else min(MOST_SECONDS, 2 * self.seconds or FIRST_SECONDS)
