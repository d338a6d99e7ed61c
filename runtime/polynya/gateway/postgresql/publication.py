"""The publication of a capture: which tables the stream has. Made, grown and dropped on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polynya.gateway.conditions import condition
from polynya.gateway.faults import TableError
from polynya.gateway.postgresql.session import Session
from polynya.gateway.postgresql.sql import identifier, literal, qualified
from polynya.gateway.postgresql.tables import PgTable
from polynya.gateway.source import Access
from polynya.model.errors import OperationError


@dataclass(frozen=True, slots=True)
class Published:
    """A publication as the catalog has it.

    Attributes:
        by_root: changes of partitions are told as those of the table that is parted.
        lacks: kinds of changes that it does not tell.
        tables: names of the tables of this database that it has.
    """

    by_root: bool
    lacks: tuple[str, ...]
    tables: frozenset[str]


def read_publication(session: Session, name: str) -> Published | None:
    """What there is by that name; None: nothing."""
    found = session.run(
        "SELECT pubviaroot, pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication "
        f"WHERE pubname = {literal(name)}"
    )
    if not found:
        return None
    by_root, *told = found[0]
    kinds = ("insert", "update", "delete", "truncate")
    lacks = tuple(kind for kind, is_told in zip(kinds, told, strict=True) if not is_told)
    return Published(by_root, lacks, tables_of(session, name))


def tables_of(session: Session, name: str) -> frozenset[str]:
    """The names of the tables whose changes a publication tells; none when it is not there."""
    tables = session.run(
        "SELECT schemaname || '.' || tablename FROM pg_publication_tables "
        f"WHERE pubname = {literal(name)}"
    )
    return frozenset(row[0] for row in tables)


def creation(name: str, tables: Sequence[PgTable], access: Access) -> str:
    """The statement that makes a publication of tables, with conditions for rows by table."""
    return (
        f"CREATE PUBLICATION {identifier(name)} FOR TABLE {_listed(tables, access)} "
        "WITH (publish_via_partition_root = true)"
    )


def ensure(session: Session, access: Access, name: str, tables: Sequence[PgTable]) -> None:
    """Have a publication with these tables.

    One that somebody else made is used as it is when it has them all. Rows that are to be left out
    are a matter of the publication, so its conditions are checked when they are given.

    Raises:
        OperationError: POLYNYA-GTW-027, it cannot be made so; the message has the statement for
            somebody who may. POLYNYA-GTW-030, a condition uses columns that deletes do not have.
    """
    there = read_publication(session, name)
    if there is None:
        _run(session, access, creation(name, tables, access), tables)
        return
    if there.lacks or not there.by_root:
        missing = ", ".join(there.lacks) or "publish_via_partition_root"
        raise OperationError(
            "POLYNYA-GTW-027",
            f"publication {name} does not tell everything: {missing}",
            where=access.task,
            state="nothing was changed",
            fix=f"ALTER PUBLICATION {identifier(name)} SET (publish = 'insert, update, delete, "
            "truncate', publish_via_partition_root = true)",
        )
    absent = [one for one in tables if one.name not in there.tables]
    if absent:
        listed = _listed(absent, access)
        _run(session, access, f"ALTER PUBLICATION {identifier(name)} ADD TABLE {listed}", absent)


def grow(session: Session, access: Access, name: str, tables: Sequence[PgTable]) -> None:
    """Have a publication with these tables, of which some came later: each is added for itself.

    Raises:
        TableError: as `ensure` says, of the first table that cannot be added.
        OperationError: as `ensure`, where it is not of one table.
    """
    there = read_publication(session, name)
    known = [one for one in tables if there is not None and one.name in there.tables]
    ensure(session, access, name, known)
    for one in tables:
        if one not in known:
            try:
                ensure(session, access, name, [*known, one])
            except OperationError as error:
                raise TableError.of(one.name, error) from None


def drop(session: Session, name: str) -> None:
    """Drop a publication that this user owns; one of somebody else stays."""
    owned = session.run(
        f"SELECT pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname = {literal(name)}"
    )
    if owned and owned[0][0]:
        session.run(f"DROP PUBLICATION {identifier(name)}")


def _listed(tables: Sequence[PgTable], access: Access) -> str:
    parts = []
    for one in tables:
        text = access.rows.get(one.name)
        where = f" WHERE {condition(text, access, one.name)}" if text else ""
        only = "ONLY " if one.kind == "r" else ""
        parts.append(f"{only}{qualified(one.schema, one.relation)}{where}")
    return ", ".join(parts)


def _run(session: Session, access: Access, statement: str, tables: Sequence[PgTable]) -> None:
    """Run a statement in a transaction that is kept only if its conditions harm nobody."""
    session.run("BEGIN")
    try:
        try:
            session.run_alone(statement)
        except OperationError as error:
            if error.code != "POLYNYA-GTW-023":
                raise
            raise _not_allowed(access, statement, error.why) from None
        _check_conditions(session, access, tables)
    except BaseException:
        session.run("ROLLBACK")
        raise
    session.run("COMMIT")


def _check_conditions(session: Session, access: Access, tables: Sequence[PgTable]) -> None:
    """A condition on a column that is not part of the identity makes the source's updates fail."""
    for table in tables:
        if table.name not in access.rows or table.identity == "f":
            continue
        used = session.run(
            "SELECT DISTINCT a.attname FROM pg_publication_rel r JOIN pg_depend d "
            "ON d.classid = 'pg_publication_rel'::regclass AND d.objid = r.oid "
            "AND d.refobjsubid > 0 JOIN pg_attribute a ON a.attrelid = d.refobjid "
            f"AND a.attnum = d.refobjsubid WHERE r.prrelid = {table.oid}"
        )
        outside = sorted({row[0] for row in used} - set(table.key))
        if outside:
            raise OperationError(
                "POLYNYA-GTW-030",
                f"rows of {table.name} cannot be left out by {', '.join(outside)}: with such a "
                "publication updates and deletes of that table fail in the source",
                where=access.task,
                state="nothing was changed",
                fix=f"ALTER TABLE {qualified(table.schema, table.relation)} REPLICA IDENTITY FULL, "
                "or a condition on columns of the key",
            )


def _not_allowed(access: Access, statement: str, reason: str | None) -> OperationError:
    return OperationError(
        "POLYNYA-GTW-027",
        "this user may not make or change the publication",
        where=access.task,
        why=reason,
        state="nothing was changed",
        fix=f"let the owner of the tables run: {statement}",
    )
