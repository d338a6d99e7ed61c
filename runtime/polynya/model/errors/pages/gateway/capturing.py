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
    ErrorPage(
        "POLYNYA-GTW-002",
        "a batch of a capture was written by a newer version",
        "The header of a captured batch has a version that this Polynya does not know. Nothing of "
        "it is copied, and it is read again later: upgrade the nodes that copy before those that "
        "capture.",
    ),
)
