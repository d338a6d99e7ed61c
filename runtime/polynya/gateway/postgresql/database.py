"""A PostgreSQL database that is captured: the protocol of `polynya.gateway.source`."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from polynya.gateway.certificates import certificates_of
from polynya.gateway.postgresql import publication, slots
from polynya.gateway.postgresql.health import findings
from polynya.gateway.postgresql.health.monitor import lag_of, lost_of, place_of
from polynya.gateway.postgresql.lines import source_of
from polynya.gateway.postgresql.looks import Look, export
from polynya.gateway.postgresql.properties import properties_of
from polynya.gateway.postgresql.refusals import refuse, refuse_later
from polynya.gateway.postgresql.session import Session, authorities
from polynya.gateway.postgresql.tables import PgTable, chosen, is_named, read_tables
from polynya.gateway.postgresql.views import View
from polynya.gateway.source import Access, Beginning, Finding, Lag, Offset, SourceTable
from polynya.model.errors import OperationError

#: What rows and events call the capture (Debezium's `topic.prefix`).
PREFIX: Final = "capture"
#: What rows of loads name as the version of their connector.
_VERSION: Final = "polynya"
_LONGEST_NAME: Final = 63
_NOW: Final = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8"
_Answer = TypeVar("_Answer")


class PostgresDatabase:
    """It connects when it is first asked; several threads may ask."""

    connector: Final = "postgresql"

    def __init__(self, access: Access) -> None:
        self._access = access
        name = _default_name(access.task)
        self._slot, self._publication = access.slot or name, access.publication or name
        self._tables: Mapping[str, PgTable] = {}
        self._session: Session | None = None
        self._scratch: Path | None = None
        self._lock = threading.Lock()

    def findings(self) -> tuple[Finding, ...]:
        """What a test of the connection says."""
        return findings.findings_of(self._access, slot=self._slot, publication=self._publication)

    def tables(self, include: Sequence[str], exclude: Sequence[str]) -> tuple[SourceTable, ...]:
        """The tables that patterns choose; a view only where its own name is written."""
        found = {one.name: one for one in self._asked(read_tables)}
        names = {
            name
            for name in chosen(found, include, exclude)
            if not found[name].not_captured or is_named(name, include)
        }
        self._tables = {**self._tables, **{name: found[name] for name in names}}
        followed = self._asked(lambda session: publication.tables_of(session, self._publication))
        return tuple(found[name].as_source(is_followed=name in followed) for name in sorted(names))

    def begin(self, tables: Sequence[SourceTable]) -> Beginning:
        """Make publication and slot; the view is that of the very place where the slot begins.

        Raises:
            OperationError: POLYNYA-GTW-025 to -030, something cannot be captured so.
            DependencyError: POLYNYA-GTW-020, and with it nothing or a slot that the next try takes.
        """
        chosen_tables = self._of(tables)
        with Session(self._access) as session:
            refuse(session, self._access, chosen_tables)
            publication.ensure(session, self._access, self._publication, chosen_tables)
            slots.make_room(session, self._access, self._slot)
            exported = slots.create(self._access, self._slot, is_temporary=False)
            view = self._view(exported, exported.lsn)
        return Beginning(_offset(exported.lsn, view.source), view)

    def resume(self, tables: Sequence[SourceTable]) -> View:
        """A later view, beside the stream. Its rows stand behind the last transaction that it has.

        Raises:
            TableError: POLYNYA-GTW-025, -027, -030 or -035, a table cannot be captured.
        """
        chosen_tables = self._of(tables)
        with Session(self._access) as session:
            published = [one for one in chosen_tables if not one.not_captured]
            refuse_later(session, self._access, published)
            publication.grow(session, self._access, self._publication, published)
            exported, commit = slots.create_later(session, self._access, self._publication)
        return self._view(exported, commit)

    def look(self, tables: Sequence[SourceTable], beyond: Offset | None) -> Beginning:
        """A view without slot, publication or the right to replicate. What was made stays.

        Its place is behind an earlier load, also on a server whose log ends before that.
        """
        self._of(tables)
        exported, before = export(self._access), place_of(beyond or {})
        # The event that empties a table stands between the rows of both loads.
        place = exported.lsn if before is None else max(exported.lsn, before + 2)
        source = self._source(exported, place)
        return Beginning(_offset(place, source), Look(self._access, exported, self._tables, source))

    def engine_properties(
        self, tables: Sequence[SourceTable], without: Collection[str] = ()
    ) -> Mapping[str, str]:
        """Debezium's settings for the stream; they have the password."""
        read = self._of([one for one in tables if one.name not in without])
        return properties_of(
            self._access, slot=self._slot, publication=self._publication, tables=read,
            trusted=self._trusted(),
        )  # fmt: skip

    def lag(self, offset: Offset) -> Lag:
        """How far the database is beyond an offset, and what its slot costs it."""
        slot = self._asked(lambda session: slots.read_slot(session, self._slot))
        return lag_of(slot, offset, now=time.time())

    def lost(self, offset: Offset) -> str | None:
        """Why the stream cannot go on from an offset; None: it can."""
        slot, published = self._asked(
            lambda session: (
                slots.read_slot(session, self._slot),
                publication.read_publication(session, self._publication),
            )
        )
        if published is None:
            # What was written while there was none cannot be decoded any more.
            return f"publication {self._publication} is not there"
        return lost_of(self._slot, self._access.database, slot, offset)

    def drop(self) -> None:
        """Remove the slot, and the publication where this user owns it. Only when asked for."""
        with Session(self._access) as session:
            slots.drop(session, self._slot)
            publication.drop(session, self._publication)

    def close(self) -> None:
        """End the session; views are closed by themselves."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def _trusted(self) -> str | None:
        """A file for Debezium with the authorities' certificates; None: those of Java."""
        given = authorities(self._access)
        if given is None or self._access.tls != "verify":
            return None
        self._scratch = self._scratch or Path(tempfile.mkdtemp(prefix="polynya-trust-"))
        made = self._scratch / "authorities.pem"
        # Java stops at anything else that such a file may have.
        made.write_text("\n".join(certificates_of(Path(given).read_text("utf-8"))) + "\n")
        return str(made)

    def _view(self, exported: slots.Exported, lsn: int) -> View:
        return View(self._access, exported, self._tables, self._source(exported, lsn))

    def _source(self, exported: slots.Exported, lsn: int) -> Mapping[str, Any]:
        """What rows of a view carry; a view of which it cannot be told is closed."""
        try:
            micros = int(self._asked(lambda session: session.run(_NOW))[0][0])
        except BaseException:
            exported.holder.close()
            raise
        return source_of(
            database=self._access.database, prefix=PREFIX, lsn=lsn, micros=micros, version=_VERSION
        )

    def _of(self, tables: Sequence[SourceTable]) -> list[PgTable]:
        missing = [one for one in tables if one.name not in self._tables]
        if missing:
            names = [one.name for one in missing]
            self.tables(names, ())
        gone = [one.name for one in tables if one.name not in self._tables]
        if gone:
            raise OperationError(
                "POLYNYA-GTW-034",
                f"there is no table {', '.join(gone)}",
                where=self._access.task,
                state="nothing was changed in the database; what has landed stays",
                fix="look at `tables` of the task, and whether this user may see the schema",
            )
        return [self._tables[one.name] for one in tables]

    def _asked(self, question: Callable[[Session], _Answer]) -> _Answer:
        """The answer in a session that is kept; one that failed is not used again."""
        with self._lock:
            if self._session is None:
                self._session = Session(self._access)
            try:
                return question(self._session)
            except BaseException:
                self._session.close()
                self._session = None
                raise


def _offset(lsn: int, source: Mapping[str, Any]) -> Offset:
    """A place as Debezium's connector writes it."""
    return {
        "lsn": lsn, "lsn_proc": lsn, "lsn_commit": lsn, "messageType": None, "txId": None,
        "ts_usec": int(source["ts_us"]),
    }  # fmt: skip


def _default_name(task: str) -> str:
    """A name for slot and publication: a slot's has only small letters, digits and `_`."""
    return ("polynya_" + re.sub(r"[^a-z0-9_]", "_", task.lower()))[:_LONGEST_NAME]
