"""Errors of one table while the stream is read, and how often the table is tried again.

The stream is one for all tables, and what cannot be read in it comes again with each try. So a
table is tried again by reading the stream again from the newest landed batch; then it is given up,
and the stream goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from polynya.model.errors import OperationError

#: The stream cannot be read any further: as it was begun it brings no row of this table.
UNREADABLE: Final = "POLYNYA-GTW-049"
#: Seconds after which a failure is no longer one of a row of them.
_LONG_AGO: Final = 3600.0


class TableError(OperationError):
    """Raised when a change of one table cannot land, whereas those of others can.

    `table` is its name; of a binlog it may be the name without the database.
    """

    table: str = ""

    @classmethod
    def of(cls, table: str, error: OperationError) -> TableError:
        """The same error as one of a table."""
        made = cls(
            error.code,
            error.message,
            where=error.where or table,
            state=error.state,
            fix=error.fix,
            why=error.why,
        )
        made.table = table
        return made


@dataclass(slots=True)
class TableFaults:
    """How often changes of tables could not land in a row.

    Attributes:
        retries: so often a table is tried again.
        monotonic: seconds of a clock.
    """

    retries: int
    monotonic: Callable[[], float]
    _failed: dict[str, list[float]] = field(default_factory=dict)

    def gives_up(self, table: str) -> bool:
        """Whether a table that has failed once more is to be given up; then it counts anew."""
        now = self.monotonic()
        failed = [at for at in self._failed.get(table, ()) if now - at < _LONG_AGO]
        failed.append(now)
        if len(failed) > self.retries:
            self._failed.pop(table, None)
            return True
        self._failed[table] = failed
        return False
