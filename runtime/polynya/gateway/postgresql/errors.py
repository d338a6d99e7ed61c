"""What PostgreSQL may answer, as errors: what passes by itself is told from what does not."""

from __future__ import annotations

import ssl
from typing import Any, Final

import pg8000.native

from polynya.gateway.source import Access
from polynya.model.errors import DependencyError, OperationError, PolynyaError

#: What a driver raises while a server is asked.
FAILURES: Final = (pg8000.native.Error, OSError)

#: Beginnings of SQL states that pass by themselves: connection, resources, the server's stop and
#: start, its storage, transactions that lost against others, locks that are waited for.
_PASSING: Final = ("08", "53", "57P0", "58", "40", "55P03", "55006")
_NO_ENTRY: Final = ("28", "3D000")
#: A right that is missing, and a role that may not replicate.
_NO_RIGHT: Final = ("42501",)
#: What is not as the catalog said a moment ago: tables and columns come and go.
_CHANGED: Final = ("42P01", "42703", "42883", "42804", "3F000")
_UNCHANGED: Final = "what has landed stays; the capture goes on from there"


def sql_state(error: BaseException) -> str:
    """The SQL state of an error of the server; empty for all others."""
    return str(_said(error).get("C", ""))


def why(error: BaseException) -> str:
    """What the server said, in one line, without the statement."""
    said = _said(error)
    if not said:
        return str(error) or type(error).__name__
    detail = f" ({said['D']})" if said.get("D") else ""
    return f"{said.get('M', '')}{detail}".replace("\n", " ")


def failed(access: Access, error: BaseException) -> PolynyaError:
    """The error for a server that did not do as it was asked."""
    where, state = f"{access.task}: {access.host}:{access.port}/{access.database}", sql_state(error)
    if _is_about_tls(error):
        return OperationError(
            "POLYNYA-GTW-022", "the connection to PostgreSQL is not safe", where=where,
            why=why(error), state=_UNCHANGED,
            fix="name the authority of the server's certificate as `tls.ca` of the connection, and "
            "the host as the certificate has it; for a server without TLS set `tls.mode`",
        )  # fmt: skip
    if state.startswith(_NO_ENTRY):
        return OperationError(
            "POLYNYA-GTW-021", "PostgreSQL lets this user not in", where=where,
            why=why(error), state=_UNCHANGED,
            fix="look at `user`, `password` and `database` of the connection, and at pg_hba.conf",
        )  # fmt: skip
    if state.startswith(_NO_RIGHT):
        return OperationError(
            "POLYNYA-GTW-023", "PostgreSQL does not allow this user what a capture needs",
            where=where, why=why(error), state=_UNCHANGED,
            fix="run the statements of docs/capture-postgresql.md that give the rights",
        )  # fmt: skip
    if state.startswith(_CHANGED):
        return changed(access, why(error))
    if not state or state.startswith(_PASSING):
        return DependencyError(
            "POLYNYA-GTW-020", "PostgreSQL does not answer", where=where, why=why(error),
            state=_UNCHANGED, fix="look whether the server runs and can be reached from here",
        )  # fmt: skip
    return OperationError(
        "POLYNYA-GTW-031", "PostgreSQL refuses what it was asked", where=where,
        why=f"{why(error)} (SQL state {state})", state=_UNCHANGED,
        fix="look at the server's log",
    )  # fmt: skip


def changed(access: Access, reason: str) -> DependencyError:
    """The error for a table that is not what it was when the view of it began."""
    return DependencyError(
        "POLYNYA-GTW-033", "a table changed while it was loaded", where=access.task, why=reason,
        state="its rows that have landed stay; the others come from a later view",
        fix="nothing: it is read again",
    )  # fmt: skip


def _said(error: BaseException) -> dict[str, Any]:
    first = error.args[0] if error.args else None
    return first if isinstance(first, dict) else {}


def _is_about_tls(error: BaseException) -> bool:
    # Without TLS at the server pg8000 has this text only.
    return isinstance(error, ssl.SSLCertVerificationError) or "refuses SSL" in str(error)
