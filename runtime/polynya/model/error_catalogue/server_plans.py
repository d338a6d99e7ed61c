"""Errors of plans that are reviewed and applied (SRV-085 to 089)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConflictError

PROJECT_CHANGED_SINCE_PLAN: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-SRV-085",
    title="the project has changed since its plan was made",
    message="the files of the project are not those that the plan was made of",
    state="nothing was done",
    fix="make another plan, and have it approved",
    page="A plan has the fingerprint of the files that it was made of. An approved plan is applied "
    "with `--if-unchanged` of `polynya migrate` or `polynya run`, which compares it with the files "
    "as they are now. Files of access, automations, notifications and tests do not count.",
)
PLAN_NOT_OPEN: Final = ErrorEntry(
    ConflictError,
    "POLYNYA-SRV-086",
    title="a plan that cannot be decided or applied now",
    message="plan {plan} is {word}",
    state="nothing was changed",
    fix="only a plan that is ready is approved or rejected, and only an approved one is applied",
    page="A plan is made, then approved or rejected once, and then applied. The answer says in "
    "which of these states it is. Make another plan for another decision.",
)
