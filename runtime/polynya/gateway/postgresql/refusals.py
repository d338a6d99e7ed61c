"""What a database has that a capture of its changes cannot take: told before anything is made."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.gateway.faults import TableError
from polynya.gateway.postgresql.session import Session
from polynya.gateway.postgresql.sql import qualified
from polynya.gateway.postgresql.tables import PgTable
from polynya.gateway.source import Access
from polynya.model.errors import OperationError

# Debezium reads all types of a database when it starts, and stops at these.
_DEADLY_TYPES = """\
SELECT n.nspname || '.' || t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.typcategory = 'E' AND NOT EXISTS (SELECT 1 FROM pg_enum e WHERE e.enumtypid = t.oid)
ORDER BY 1
"""
_NOTHING = "nothing was changed in the database"


def deadly_types(session: Session) -> list[str]:
    """Types that no capture of the database gets over: domains over enums, enums without labels."""
    return [row[0] for row in session.run(_DEADLY_TYPES)]


def without_identity(tables: Sequence[PgTable]) -> list[PgTable]:
    """Tables that would no longer take updates and deletes once they are published."""
    return [one for one in tables if not one.not_captured and not one.has_identity]


def refuse(session: Session, access: Access, tables: Sequence[PgTable]) -> None:
    """Raise OperationError for the first thing that cannot be captured.

    POLYNYA-GTW-026 (views and the like), -025 (no replica identity), -035 (a key that may be NULL),
    -029 (types of the database).
    """
    _refuse_tables(access, tables)
    _refuse_types(session, access)


def refuse_later(session: Session, access: Access, tables: Sequence[PgTable]) -> None:
    """Raise TableError for the first table that cannot be captured beside those that are.

    Raises OperationError, POLYNYA-GTW-029, as `refuse`.
    """
    for one in tables:
        try:
            _refuse_tables(access, [one])
        except OperationError as error:
            raise TableError.of(one.name, error) from None
    _refuse_types(session, access)


def _refuse_tables(access: Access, tables: Sequence[PgTable]) -> None:
    for one in tables:
        if one.not_captured:
            raise OperationError(
                "POLYNYA-GTW-026", f"changes of {one.name} cannot be captured: {one.not_captured}",
                where=access.task, state=_NOTHING,
                fix="exclude it, or load it in a task of its own with `update_method: reload`",
            )  # fmt: skip
    bare = without_identity(tables)
    if bare:
        names = ", ".join(one.name for one in bare[:10]) + (", …" if len(bare) > 10 else "")
        first = qualified(bare[0].schema, bare[0].relation)
        raise OperationError(
            "POLYNYA-GTW-025",
            f"tables without a replica identity: {names}",
            where=access.task, state=_NOTHING,
            why="PostgreSQL would refuse their updates and deletes once they are published",
            fix=f"give each a primary key, or ALTER TABLE {first} REPLICA IDENTITY FULL, or "
            "exclude it",
        )  # fmt: skip
    for one in tables:
        if one.doubtful_key and not one.not_captured:
            raise OperationError(
                "POLYNYA-GTW-035",
                f"{one.name} has no key but a unique index on columns that may be NULL: "
                f"{', '.join(one.doubtful_key)}",
                where=access.task, state=_NOTHING,
                why="its stream takes that for the key, and such rows have none",
                fix="give it a primary key, make the columns NOT NULL, or exclude it",
            )  # fmt: skip


def _refuse_types(session: Session, access: Access) -> None:
    types = deadly_types(session)
    if types:
        raise OperationError(
            "POLYNYA-GTW-029",
            f"the database has types that its stream cannot be read with: {', '.join(types[:10])}",
            where=access.task, state=_NOTHING,
            why="Debezium stops at domains over enums and at enums without labels, also when no "
            "captured table uses them",
            fix="use the enum itself instead of the domain, or drop the type",
        )  # fmt: skip
