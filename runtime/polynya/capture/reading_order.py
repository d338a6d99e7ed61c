"""The order in which a load reads a table, and the place in it where the load continues. Pure.

The place after a chunk records the columns that ordered the rows, and how each was compared. A load
may continue later, perhaps in another process, and then notices a changed order: other rows would
follow the same key values, and some would be skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polynya.capture.source import Access, Key
from polynya.model.error_catalogue.capture_databases import KEY_CHANGED_DURING_LOAD
from polynya.model.errors import OperationError


class KeyChangedError(Exception):
    """The rows so far were read by other columns than those of the key that a table has now."""


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """The columns of a key, each with what orders it: a collation, or the kind of its values."""

    columns: tuple[tuple[str, str], ...]

    def place(self, values: Sequence[str]) -> Key:
        """The place behind the row that has these values in its key, as JSON has it."""
        return ([list(column) for column in self.columns], *values)

    def values(self, after: Key | None) -> tuple[str, ...] | None:
        """The values of a place; None: the table is read from its beginning.

        So it is where the same columns are ordered in another way now, and where an earlier version
        did not say how. That rows come twice is harmless, since they have a key.

        Raises KeyChangedError.
        """
        if after is None:
            return None
        stored, values = after[0], after[1:]
        if isinstance(stored, list):
            columns = tuple((str(name), str(by)) for name, by in stored)
            if [name for name, _ in columns] != [name for name, _ in self.columns]:
                raise KeyChangedError
            return tuple(values) if columns == self.columns else None
        # An earlier version wrote values only, all of them as text.
        if not isinstance(stored, str) or len(after) != len(self.columns):
            raise KeyChangedError
        return None


def another_key(access: Access, table: str) -> OperationError:
    """What becomes of a load whose table has another key than its rows were read by."""
    return KEY_CHANGED_DURING_LOAD(where=access.task, task=access.task, table=table)
