"""Event lines that wait in a scratch file until they land as one batch.

The file has no name, so that it goes with the process, however that ends.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

from polynya.formats.debezium.captured.batch import Shape, packed_lines
from polynya.model.errors import OperationError

#: What S3 takes as one object, with room for a header.
MOST_BYTES: Final = 5_000_000_000


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines that have one schema, as a frame of the file."""

    first: int
    size: int
    events: int
    shape: Mapping[str, Any]


class Spool:
    """Lines of one table. Not for several threads at a time.

    Attributes:
        events: how many lines it has.
        size: their bytes, compressed.
    """

    def __init__(self, table: str, most_bytes: int = MOST_BYTES) -> None:
        """An empty one, of at most so many compressed bytes. It takes a file when it has lines."""
        self.events = self.size = 0
        self._table, self._most = table, most_bytes
        self._parts: list[_Part] = []

    @cached_property
    def file(self) -> BinaryIO:
        """The lines, compressed."""
        # Its end is that of the spool.
        return cast("BinaryIO", tempfile.TemporaryFile(prefix="polynya-load-"))

    @property
    def shapes(self) -> list[Shape]:
        """The schemas of the lines; 1 is the first line."""
        found: list[Shape] = []
        line = 1
        for part in self._parts:
            if not found or found[-1].schema is not part.shape:
                found.append(Shape(line, part.shape))
            line += part.events
        return found

    def add(self, lines: bytes, events: int, shape: Mapping[str, Any]) -> None:
        """Add lines, each with its end.

        Raises:
            OperationError: POLYNYA-GTW-011, they do not fit into one object or the scratch folder.
        """
        if not events:
            return
        packed = packed_lines(lines)
        if self.size + len(packed) > self._most:
            raise self._too_large(f"they have more than {self._most:,} bytes, compressed")
        try:
            self.file.seek(self.size)
            self.file.write(packed)
            self.file.flush()
        except OSError as error:
            raise self._too_large(f"the scratch folder has no room: {error.strerror}") from error
        self._parts.append(_Part(self.size, len(packed), events, shape))
        self.size += len(packed)
        self.events += events

    def parts(self) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
        """What was added, again: lines and their schema."""
        for part in self._parts:
            self.file.seek(part.first)
            packed = io.BytesIO(self.file.read(part.size))
            with pa.CompressedInputStream(packed, "zstd") as content:
                yield content.read(), part.shape

    def close(self) -> None:
        """Remove it."""
        if self._parts:
            self.file.close()

    def _too_large(self, why: str) -> OperationError:
        return OperationError(
            "POLYNYA-GTW-011",
            f"the rows of {self._table}, which has no key, cannot land at once: {why}",
            state="nothing of the table has landed; the other tables go on",
            fix="give the table a primary key, or load it in a task of its own with "
            "`update_method: reload`; TMPDIR is where the scratch folder is",
        )
