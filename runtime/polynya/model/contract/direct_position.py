"""How far a table has read a stream by itself, as its state holds it where nothing is landed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polynya.model.contract.stream_headers import StreamSource


@dataclass(frozen=True, slots=True)
class DirectPosition:
    """The position after the newest batch, and what the footers of landed batches would say.

    Attributes:
        task: the landing that says what is read.
        table: the landed table that the streams would have.
        source: the kind of source. Only it understands positions.
        number: of the batch, from 1.
        began: position before the first record.
        end: position after the newest one.
        read_at: when the batch was read, ISO 8601 in UTC.
        before: when the batch before it was read, None for the first.
        records: messages in the batch.
        totals: `records`, `bytes` and `lost` since the beginning.
        bytes: of the messages in the batch.
        lost: what was lost before or in the batch: `at`, `from`, `to` and `why` of each.
    """

    task: str
    table: str
    source: StreamSource
    number: int
    began: Mapping[str, Any]
    end: Mapping[str, Any]
    read_at: str
    before: str | None = None
    records: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    lost: Sequence[Mapping[str, str]] = ()
    bytes: int = 0
