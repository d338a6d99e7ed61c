"""Explain a refused step: another owner was faster, or another engine has moved files."""

from __future__ import annotations

from polynya.lake.iceberg.table import IcebergTable
from polynya.lake.table.fence import refuse_overtaken
from polynya.lake.table.state import TableState, read_state
from polynya.model.error_catalogue.lake import FILES_CHANGED_BY_ENGINE
from polynya.model.errors import ConflictError, StaleStepError


def refuse_fenced(table: IcebergTable, granted: int | None) -> None:
    """Raise FencedError for an owner with a grant whose refused step met a newer owner."""
    if granted is not None:
        table.refresh()
        refuse_overtaken(read_state(table).ownership, granted, table.name)


def refuse_stale(table: IcebergTable, before: TableState, refused: ConflictError) -> None:
    """Raise StaleStepError for a refused step that followed `before` and has no owner to blame.

    Each commit of an owner puts its marker into a state. Another engine leaves the states as they
    are, if it writes their files again, so the markers are those of `before` in a later snapshot.
    """
    if isinstance(refused, StaleStepError):
        return
    state = read_state(table)
    if state.snapshot == before.snapshot or _marks(state) != _marks(before):
        return
    raise FILES_CHANGED_BY_ENGINE(
        where=table.name, why=refused.message, table=table.name
    ) from refused


def _marks(state: TableState) -> tuple[object, object]:
    return state.copy.ownership, state.apply.ownership
