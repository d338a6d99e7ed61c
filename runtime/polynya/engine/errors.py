"""Turns any exception into one of Polynya's errors, at the edge of a unit or of the process."""

from __future__ import annotations

import sys

from polynya.model.errors import InternalError, PolynyaError


def as_polynya(error: BaseException) -> PolynyaError:
    """The error as one of ours: itself, what AWS or the machine did, or else a bug."""
    if isinstance(error, PolynyaError):
        return error
    found = _of_outside(error) or InternalError(
        "POLYNYA-BUG-001",
        f"polynya itself failed: {type(error).__name__}: {str(error)[:500]}",
        state="as after the last completed commit; every commit is atomic",
        fix="run again with `--debug` and report the traceback",
    )
    found.__cause__ = error
    return found


def _of_outside(error: BaseException) -> PolynyaError | None:
    # Start-up time: only a process that loaded PySpark or PyIceberg can have such an error.
    if "pyspark" not in sys.modules and "pyiceberg" not in sys.modules:
        return None
    from polynya.lake.errors import aws_error, machine_error

    return aws_error(error) or machine_error(error)
