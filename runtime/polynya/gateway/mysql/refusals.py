"""What a server has that would be captured wrongly: told before anything has landed."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.gateway.faults import TableError
from polynya.gateway.mysql.catalog import Table
from polynya.gateway.source import ROW_NUMBER, Access
from polynya.model.errors import OperationError

_LEAVE_OUT = "leave them out with `tables: {exclude: …}`"


def refuse_unfollowed(access: Access, tables: Sequence[Table]) -> None:
    """Raise POLYNYA-GTW-048 for the first thing of which the stream has not all."""
    _refuse(
        access, [one.full_name for one in tables if one.is_view],
        "are views, which have no changes of their own",
        f"{_LEAVE_OUT}, or load them in a task of their own with `update_method: reload`",
    )  # fmt: skip
    refuse_unread(access, tables)
    if access.rows:
        raise _refused(
            access, "a binlog cannot be filtered by rows, as `rows` asks for",
            "take the setting away",
        )  # fmt: skip


def refuse_later(access: Access, tables: Sequence[Table]) -> None:
    """Raise TableError for the first table of which the stream has not all."""
    for one in tables:
        try:
            refuse_unfollowed(access, [one])
        except OperationError as error:
            raise TableError.of(one.full_name, error) from None


def refuse_unread(access: Access, tables: Sequence[Table]) -> None:
    """Raise POLYNYA-GTW-048 for the first thing whose rows would come wrongly."""
    versioned = [one.full_name for one in tables if one.is_versioned]
    unknown = [
        f"{table.full_name}.{column.facts.name} ({column.facts.told})"
        for table in tables
        for column in table.columns
        if column.coding is None
    ]
    _refuse(access, versioned, "have system versioning, which cannot be captured", _LEAVE_OUT)
    _refuse(access, unknown, "are of such a type, which cannot be captured", _LEAVE_OUT)


def refuse_unnumbered(access: Access, tables: Sequence[Table]) -> None:
    """Raise POLYNYA-GTW-048 for tables without key whose rows have no room for their number."""
    taken = [
        one.full_name
        for one in tables
        if not one.key and any(column.facts.name == ROW_NUMBER for column in one.columns)
    ]
    why = f"have a column {ROW_NUMBER} and no key, of which it is the name"
    _refuse(access, taken, why, f"{_LEAVE_OUT}, or rename the column")


def _refuse(access: Access, names: Sequence[str], why: str, fix: str) -> None:
    if names:
        raise _refused(access, f"{', '.join(names)} {why}", fix)


def _refused(access: Access, what: str, fix: str) -> OperationError:
    return OperationError(
        "POLYNYA-GTW-048", what, where=access.task, state="nothing was captured", fix=fix
    )
