"""How far each landed file was read, as a state row says it: [bytes, records, complete 0 or 1]."""

from __future__ import annotations

from collections.abc import Mapping

from polynya.formats.batch import FileProgress


def written(files: Mapping[str, FileProgress]) -> dict[str, list[int]]:
    """Progress as a state row holds it."""
    return {path: [p.size, p.records, int(p.complete)] for path, p in files.items()}


def read(files: Mapping[str, list[int]]) -> dict[str, FileProgress]:
    """Progress out of a state row."""
    return {
        path: FileProgress(size, records, bool(complete))
        for path, (size, records, complete) in files.items()
    }
