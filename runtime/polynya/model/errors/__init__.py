"""The errors that Polynya raises on purpose, and the page of each error code."""

from __future__ import annotations

from polynya.model.errors.tree import (
    ConfigError,
    ConfigErrors,
    ConflictError,
    DataError,
    DependencyError,
    FencedError,
    InternalError,
    OperationError,
    PolynyaError,
    StaleStepError,
    SuspendedError,
    TaskStoppedError,
)

__all__ = [
    "ConfigError",
    "ConfigErrors",
    "ConflictError",
    "DataError",
    "DependencyError",
    "FencedError",
    "InternalError",
    "OperationError",
    "PolynyaError",
    "StaleStepError",
    "SuspendedError",
    "TaskStoppedError",
]
