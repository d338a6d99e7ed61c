"""Records of one batch as they come out of the files, before they are typed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from polynya.formats.batch import WHOLE_FILE, FilePart, FileProgress, ReadLimits, Rejected
from polynya.formats.errors import RecordError


@dataclass(slots=True)
class RecordBuffer:
    """Parallel lists, one entry a parsed record; refused records stand in `rejected`."""

    limits: ReadLimits
    files: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    raws: list[bytes] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    progress: dict[str, FileProgress] = field(default_factory=dict)
    size_bytes: int = 0
    _max_rows: int = field(init=False)
    _max_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self._max_rows = self.limits.max_rows
        self._max_bytes = self.limits.max_bytes

    def add(self, file: str, offset: int, raw: bytes, parsed: dict[str, Any] | RecordError) -> None:
        """Take one record."""
        self.size_bytes += len(raw)
        if isinstance(parsed, RecordError):
            self.rejected.append(Rejected(file, offset, parsed.rule, parsed.error, raw))
            return
        self.files.append(file)
        self.offsets.append(offset)
        self.raws.append(raw)
        self.records.append(parsed)

    @property
    def is_full(self) -> bool:
        """Whether the batch ends here."""
        return (
            len(self.records) + len(self.rejected) >= self._max_rows
            or self.size_bytes >= self._max_bytes
        )

    def take(
        self, part: FilePart, records: Iterator[tuple[bytes, dict[str, Any] | RecordError]]
    ) -> None:
        """Take the records of a file until the batch is full, and note how far it was read.

        `records` begin at the part's start.
        """
        offset, complete = part.start, True
        for raw, parsed in records:
            self.add(part.path, offset, raw, parsed)
            offset += 1
            if self.is_full:
                # Looking one record ahead: a file that ends exactly here is complete.
                complete = not list(islice(records, 1))
                break
        self.progress[part.path] = part.read(offset, complete=complete)

    def refuse_file(self, part: FilePart, error: str, *, rule: str = "unreadable_file") -> None:
        """Replace whatever this batch took from the file by one rejection of the file itself.

        What earlier batches took (`part.start` records) is committed and stays.
        """
        self.forget(part.path)
        self.rejected.append(Rejected(part.path, WHOLE_FILE, rule, error, b""))
        self.progress[part.path] = part.read(part.start, complete=True)

    def forget(self, file: str) -> int:
        """Drop what was taken from the last file; tells how many records (not rejections)."""
        count = len(self.records)
        while self.files and self.files[-1] == file:
            self.files.pop()
            self.offsets.pop()
            self.size_bytes -= len(self.raws.pop())
            self.records.pop()
        self.rejected = [record for record in self.rejected if record.file != file]
        return count - len(self.records)
