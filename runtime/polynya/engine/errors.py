"""Turns any exception into one of Polynya's errors, at the edge of a unit or of the process."""

from __future__ import annotations

import errno
import sys
from typing import Final

from polynya.model.error_catalogue.machine import (
    ACCESS_DENIED,
    CONNECTION_FAILED,
    DISK_FULL,
    FILE_GONE,
    MACHINE_SHORT,
    UNEXPECTED_FAILURE,
)
from polynya.model.errors import PolynyaError

#: Longest text of the system that is shown.
_SHOWN_CHARACTERS: Final = 500
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_GONE: Final = frozenset({
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ESTALE,
})  # fmt: skip
_UNREACHABLE: Final = frozenset({
    errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL,
})  # fmt: skip


def as_polynya(error: BaseException) -> PolynyaError:
    """The error as a PolynyaError: itself, one of AWS, the machine or the system, or else a bug."""
    if isinstance(error, PolynyaError):
        return error
    converted = _external_error(error) or system_error(error)
    if converted is None:
        text = str(error)[:_SHOWN_CHARACTERS]
        converted = UNEXPECTED_FAILURE(kind=type(error).__name__, text=text)
    converted.__cause__ = error
    return converted


def system_error(error: BaseException) -> PolynyaError | None:
    """What the system says of a file, a disk or a connection; None for any other error."""
    if not isinstance(error, OSError):
        return None
    where = None if error.filename is None else str(error.filename)
    reason = (error.strerror or str(error) or type(error).__name__)[:_SHOWN_CHARACTERS]
    # Errors of certificates and names have numbers of their own, which mean something else here.
    if error.errno in _UNREACHABLE or _is_of_network(error):
        return CONNECTION_FAILED(where=where, reason=reason)
    if error.errno in _NO_ROOM:
        return DISK_FULL(where=where, why=reason)
    if error.errno in _DENIED or isinstance(error, PermissionError):
        return ACCESS_DENIED(where=where, why=reason)
    if error.errno in _GONE or isinstance(error, FileNotFoundError):
        # Stores name the path that they do not have, and nothing else.
        return FILE_GONE(where=where, reason=reason)
    if error.errno is None:
        # Of a library, which uses the class for its own errors.
        return None
    return MACHINE_SHORT(where=where, reason=reason)


def _is_of_network(error: OSError) -> bool:
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    # Start-up time: only a process that has them loaded can have their errors.
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    return bool(names & {"socket.gaierror", "ssl.SSLError"})


def _external_error(error: BaseException) -> PolynyaError | None:
    # Start-up time: only a process that loaded PySpark or PyIceberg can have such an error.
    if "pyspark" not in sys.modules and "pyiceberg" not in sys.modules:
        return None
    from polynya.lake.errors import aws_error, machine_error, served_error

    return aws_error(error) or served_error(error) or machine_error(error)
