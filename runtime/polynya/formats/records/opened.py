"""What every format gives: records with their raw bytes, and the types that the file declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from polynya.formats.errors import RecordError
from polynya.model.datatypes import DataType

#: raw bytes, and the record or why it is none
RawRecord: TypeAlias = "tuple[bytes, dict[str, Any] | RecordError]"


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """Records from the asked one on; iterating may raise UnreadableFileError."""

    records: Iterator[RawRecord]
    types: Mapping[str, DataType] = field(default_factory=dict)
