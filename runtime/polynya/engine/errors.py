"""Turns any exception into one of Polynya's errors, at the edge of a unit or of the process."""

from __future__ import annotations

import sys

from polynya.model.error_catalogue.machine import UNEXPECTED_FAILURE
from polynya.model.errors import PolynyaError


def as_polynya(error: BaseException) -> PolynyaError:
    """The error as a PolynyaError: itself, an error of AWS or of the machine, or else a bug."""
    if isinstance(error, PolynyaError):
        return error
    converted = _external_error(error) or UNEXPECTED_FAILURE(
        kind=type(error).__name__, text=str(error)[:500]
    )
    converted.__cause__ = error
    return converted


def _external_error(error: BaseException) -> PolynyaError | None:
    # Start-up time: only a process that loaded PySpark or PyIceberg can have such an error.
    if "pyspark" not in sys.modules and "pyiceberg" not in sys.modules:
        return None
    from polynya.lake.errors import aws_error, machine_error, served_error

    return aws_error(error) or served_error(error) or machine_error(error)
