"""Errors of what keeps tables in shape."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-MNT-001",
        "no maintenance during a reload",
        "A reload stores rows next to the current ones and moves them at its end. Until then runs"
        " leave the table alone, and so does `polynya maintain`. Finish the reload with `polynya "
        "reload`, or discard it with `--abandon`.",
    ),
    ErrorPage(
        "POLYNYA-CLI-014",
        "no such action of maintenance",
        "`--action` takes one of the actions that `polynya maintain --help` lists, and may be "
        "given several times. One that is not built yet cannot be taken.",
    ),
)
