"""Why a record or a file is refused. These never leave the room: they become `Rejected`."""

from __future__ import annotations


class RecordError(Exception):
    """One record breaks a rule; `rule` is the stable name that quarantine shows."""

    def __init__(self, rule: str, error: str) -> None:
        super().__init__(error)
        self.rule = rule
        self.error = error


class UnreadableFileError(Exception):
    """A file that is truncated, foreign or not of the declared format."""


class TooLargeError(UnreadableFileError):
    """A file over a limit of `formats/limits.py`: it would take more than a file may."""
