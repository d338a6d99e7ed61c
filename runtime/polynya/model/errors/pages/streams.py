"""Pages of streams (STR): their sources, landed batches and what messages mean."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-STR-020",
        "a landed batch was written by a newer version",
        "The footer of a landed batch has a version that this Polynya does not know. Nothing of it "
        "is copied, and it is read again later: upgrade the nodes that copy before those that "
        "land.",
    ),
)
