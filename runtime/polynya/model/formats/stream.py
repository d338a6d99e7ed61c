"""Landed batches of streams: `streaming_landing` tasks write them, in order and complete."""

from __future__ import annotations

from typing import Final

from polynya.model.contract.stream_headers import STREAM_HEADER_NAMES
from polynya.model.formats.rules import FormatRules

STREAM: Final = FormatRules(
    "stream",
    brings_order=True,
    in_order=True,
    awaits_columns=True,
    path="{name}/*",
    header_columns=tuple(sorted(STREAM_HEADER_NAMES)),
    landing_settings=frozenset({"schema_registry"}),
    events_in_tests="messages",
    lines_in_tests=True,
)
