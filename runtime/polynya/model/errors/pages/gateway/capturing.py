"""Pages of the gateway (GTW): what ends or holds up a capture, whichever database it reads."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-GTW-001",
        "databases of this type cannot be captured",
        "`type` of the connection names a database for which this Polynya has no reader. Nothing "
        "was captured. The message lists the types that there are.",
    ),
)
