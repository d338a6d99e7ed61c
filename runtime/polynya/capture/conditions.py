"""Conditions of users as parts of statements at the source: checked where they are put in."""

from __future__ import annotations

from polynya.capture.source import Access
from polynya.model.errors import ConfigError, OperationError
from polynya.transform.source_conditions import checked_condition


def condition(text: str, access: Access, table: str) -> str:
    """A condition in parentheses, which cannot end what it stands in.

    Raises:
        OperationError: POLYNYA-GTW-093, it is not one condition that only reads.
    """
    try:
        return checked_condition(text, access.type)
    except ConfigError as error:
        raise OperationError(
            error.code,
            error.message,
            where=f"{access.task}, table {table}",
            state="nothing of the table was read; the other tables continue",
            fix=error.fix,
        ) from None
